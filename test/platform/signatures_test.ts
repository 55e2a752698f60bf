import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { ed25519 } from "../../platform/shared/signatures.ts";
import { fromHex } from "../../src/bytes/hex.ts";

/** RFC 8032, section 7.1, test 2: a key, a message of one byte, its signature. */
const KEY = fromHex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
const MESSAGE = Uint8Array.of(0x72);
const SIGNATURE = fromHex(
  "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
);

test("ed25519() verifies the signature of RFC 8032, and nothing else", () => {
  const isSigned = ed25519(KEY);
  assert(isSigned(SIGNATURE, MESSAGE));
  assertEquals(isSigned(SIGNATURE, Uint8Array.of(0x73)), false);
  for (const at of [0, 31, 32, 63]) {
    const forged = SIGNATURE.slice();
    forged[at]! ^= 1;
    assertEquals(isSigned(forged, MESSAGE), false, `byte ${at}`);
  }
  for (const length of [0, 1, 63]) assertEquals(isSigned(SIGNATURE.slice(0, length), MESSAGE), false);
  assertEquals(isSigned(new Uint8Array(65), MESSAGE), false);
});

test("ed25519() throws when the key has not 32 bytes", () => {
  for (const length of [0, 31, 33]) assertThrows(() => ed25519(new Uint8Array(length)), TypeError);
});
