import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { machineKey } from "../../src/bytes/machine-key.ts";

test("machineKey() is the same for all that one machine may be called, and the text itself for anything but an address", () => {
  const table: [host: string, key: string][] = [
    ["127.0.0.1", "127.0.0.1"],
    ["255.255.255.255", "255.255.255.255"],
    ["0.0.0.0", "0.0.0.0"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["::ffff:a00:1", "10.0.0.1"],
    // Octal, as C reads it.
    ["010.0.0.1", "8.0.0.1"],
    ["1.2.3", "1.2.0.3"],
    ["256.1.1.1", "256.1.1.1"],
    ["1.2.3.4.", "1.2.3.4."],
    ["2001:db8:1:2::3", "8193:3512:1:2"],
    ["2001:db8:1:2:ffff::9", "8193:3512:1:2"],
    ["", ""],
    ["x".repeat(100), "x".repeat(64)],
  ];
  for (const [host, key] of table) assertEquals(machineKey(host), key, host);
});
