import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { noise } from "../support/random.ts";
import { ports } from "./support.ts";

test("Ports.sha1() returns the digests of FIPS 180-4", async () => {
  const vectors: readonly (readonly [string, string])[] = [
    ["", "da39a3ee5e6b4b0d3255bfef95601890afd80709"],
    ["abc", "a9993e364706816aba3e25717850c26c9cd0d89d"],
    ["abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"],
  ];
  for (const [text, hex] of vectors) assertEquals(toHex(await ports.sha1(new TextEncoder().encode(text))), hex);
});

test("Ports.sha256() returns the digests of FIPS 180-4", async () => {
  const vectors: readonly (readonly [string, string])[] = [
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  ];
  for (const [text, hex] of vectors) assertEquals(toHex(await ports.sha256(new TextEncoder().encode(text))), hex);
});

test("Ports.sha1() and Ports.sha256() are right for every size, also for a part of a buffer", async () => {
  const bytes = noise(5 * 1024 * 1024, 7);
  for (const size of [1, 16 * 1024, 4 * 1024 * 1024, 4 * 1024 * 1024 + 1, 5 * 1024 * 1024 - 3]) {
    const part = bytes.subarray(3, 3 + size);
    assertEquals(await ports.sha1(part), new Uint8Array(await crypto.subtle.digest("SHA-1", part.slice())));
    assertEquals(await ports.sha256(part), new Uint8Array(await crypto.subtle.digest("SHA-256", part.slice())));
  }
});
