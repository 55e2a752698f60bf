import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { decodeHolePunch, encodeHolePunch } from "../../src/wire/hole-punch.ts";

const fromHex = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

test("decodeHolePunch() reads the messages of BEP 55, and returns null for anything else", () => {
  const six = "20010db9" + "0".repeat(22) + "01";
  const cases: [string, ReturnType<typeof decodeHolePunch>][] = [
    ["0000" + "0a000001" + "1ae1", { type: "rendezvous", address: { host: "10.0.0.1", port: 6881 }, error: 0 }],
    ["0100" + "0a000001" + "1ae1" + "00000000", {
      type: "connect",
      address: { host: "10.0.0.1", port: 6881 },
      error: 0,
    }],
    ["0201" + six + "1ae1" + "00000002", { type: "error", address: { host: "2001:db9::1", port: 6881 }, error: 2 }],
    ["", null],
    ["00", null],
    ["0300" + "0a000001" + "1ae1", null],
    ["0002" + "0a000001" + "1ae1", null],
    ["0000" + "0a000001" + "1a", null],
    ["0000" + "0a000001" + "0000", null],
    ["0001" + "0a000001" + "1ae1", null],
  ];
  for (const [text, message] of cases) assertEquals(decodeHolePunch(fromHex(text)), message, text);
  for (const message of cases.flatMap(([, message]) => message ?? [])) {
    assertEquals(decodeHolePunch(encodeHolePunch(message)!), message);
  }
  assertEquals(encodeHolePunch({ type: "connect", address: { host: "name", port: 1 }, error: 0 }), null);
});
