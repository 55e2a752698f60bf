import { test } from "node:test";
import bencode from "bencode";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { addressBytes, addressText, formatEndpoint, parseEndpoint } from "../../src/wire/address.ts";
import { decodeDictionary } from "../../src/wire/bencode-check.ts";
import { createPeerId, hex20 } from "../../src/wire/peer-id.ts";
import { RequestLedger } from "../../src/wire/request-ledger.ts";
import { ascii, seeded } from "./support/links.ts";

test("addressBytes() reads literal addresses", () => {
  const table: [string, number[] | null][] = [
    ["1.2.3.255", [1, 2, 3, 255]],
    ["1.2.3.256", null],
    ["1.2.3", null],
    ["::", new Array(16).fill(0)],
    ["::1", [...new Array(15).fill(0), 1]],
    ["2001:db8::ff00:42:8329", [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x42, 0x83, 0x29]],
    ["fe80::1%eth0", [0xfe, 0x80, ...new Array(13).fill(0), 1]],
    ["1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ["::ffff:1.2.3.4", [1, 2, 3, 4]],
    ["1:2", null],
    ["example.org", null],
    ["", null],
  ];
  for (const [host, expected] of table) {
    const bytes = addressBytes(host);
    assertEquals(bytes && [...bytes], expected, host);
    if (bytes !== null) assertEquals([...addressBytes(addressText(bytes)!)!], expected!);
  }
  assertEquals(addressText(new Uint8Array(5)), null);
  assertEquals(addressText(new Uint8Array(16)), "::");
});

test("parseEndpoint() is the inverse of formatEndpoint()", () => {
  for (const text of ["1.2.3.4:5", "[2001:db8::1]:65535"]) assertEquals(formatEndpoint(parseEndpoint(text)!), text);
  for (const text of ["1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4", "[::1]", "x:1"]) assertEquals(parseEndpoint(text), null);
});

test("createPeerId() is random after the client prefix", () => {
  const [a, b] = [createPeerId(), createPeerId()];
  assertEquals([new TextDecoder().decode(a.subarray(0, 8)), a.length], ["-MI0100-", 20]);
  assert(hex20(a) !== hex20(b));
  assertThrows(() => hex20(new Uint8Array(19)), MillraceError);
});

test("RequestLedger bounds, finds and clears requests", () => {
  const ledger = new RequestLedger(2);
  assertEquals(ledger.add(399_999, 0xffffff00, 5), "added");
  assertEquals(ledger.add(399_999, 0xffffff00, 6), "known");
  assertEquals(ledger.add(0, 0, 7), "added");
  assertEquals(ledger.add(0, 1, 7), "full");
  assertEquals([ledger.remove(0, 0), ledger.remove(0, 0), ledger.size], [true, false, 1]);
  assertEquals(ledger.clear(), [{ piece: 399_999, offset: 0xffffff00, length: 5 }]);
  assertEquals(ledger.size, 0);
});

test("decodeDictionary() never hangs or throws an unexpected error on seeded garbage", () => {
  const tokens = ["d", "l", "e", "i", "1:a", "3:abc", "-3:", "0:", "i5e", "i-", ":", "9", "x", "12:"];
  const random = seeded(42);
  let decoded = 0;
  for (let i = 0; i < 20_000; i++) {
    const body = Array.from(
      { length: 1 + Math.floor(random() * 8) },
      () => tokens[Math.floor(random() * tokens.length)],
    );
    const bytes = ascii("d" + body.join("") + (random() < 0.5 ? "e" : ""));
    try {
      const { end } = decodeDictionary(bytes);
      assert(end <= bytes.length);
      decoded++;
    } catch (error) {
      assert(error instanceof MillraceError, String(error));
    }
  }
  assert(decoded > 50);
  const whole = bencode.encode({ m: { ut_pex: 1 }, v: "x" });
  assertEquals(decodeDictionary(whole).end, whole.length);
});
