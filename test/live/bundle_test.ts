import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { fromHex, toHex } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { MAX_LIVE_MESSAGE_BYTES } from "../../src/live/messages.ts";
import { bundled, decodeBundle, encodeBundle, MAX_BUNDLED } from "../../src/live/bundle.ts";
import { seeded } from "../metainfo/support.ts";
import { Stage } from "./support.ts";

const UNSUB = "030101";
const PING = "040000123456789abc";

test("encodeBundle() and decodeBundle() agree with the bytes of the protocol", () => {
  const table: [string, string[]][] = [
    ["0f" + "0003" + UNSUB, [UNSUB]],
    ["0f" + "0009" + PING + "0003" + UNSUB, [PING, UNSUB]],
    ["0f" + "0401" + "01".repeat(1025) + "0001" + "ff", ["01".repeat(1025), "ff"]],
    ["0f" + "000105".repeat(MAX_BUNDLED), new Array<string>(MAX_BUNDLED).fill("05")],
  ];
  for (const [hex, parts] of table) {
    assertEquals(toHex(encodeBundle(parts.map((part) => fromHex(part)!))), hex);
    assertEquals(decodeBundle(fromHex(hex)!)!.map(toHex), parts);
  }
  assertEquals(decodeBundle(fromHex(UNSUB)!), null);
  assertEquals(decodeBundle(new Uint8Array()), null);
});

test("bundled() puts messages into as few as hold them, in their order", () => {
  const table: [number[], number[][]][] = [
    [[], []],
    [[9], [[9]]],
    [[9, 3], [[9, 3]]],
    [[1000, 1043], [[1000, 1043]]],
    [[1000, 1044], [[1000], [1044]]],
    [[2048, 1, 2, 2040], [[2048], [1, 2], [2040]]],
    [new Array<number>(MAX_BUNDLED + 1).fill(1), [new Array<number>(MAX_BUNDLED).fill(1), [1]]],
  ];
  for (const [lengths, expected] of table) {
    const messages = lengths.map((length, i) => new Uint8Array(length).fill(i));
    const whole = bundled(messages);
    assert(whole.every((message) => message.length <= MAX_LIVE_MESSAGE_BYTES));
    const parts = whole.map((message) => decodeBundle(message) ?? [message]);
    assertEquals(parts.map((group) => group.map(({ length }) => length)), expected);
    assertEquals(parts.flat().map(toHex), messages.map(toHex));
  }
});

test("decodeBundle() throws protocol_violation when a BUNDLE is malformed", () => {
  const cases = [
    "0f",
    "0f00",
    "0f0000",
    "0f0001",
    "0f000203",
    "0f0003" + UNSUB + "00",
    "0f00040f000105",
    "0f" + "000105".repeat(MAX_BUNDLED + 1),
  ];
  for (const hex of cases) {
    assertEquals(assertThrows(() => decodeBundle(fromHex(hex)!), MillraceError).code, "protocol_violation", hex);
  }
});

test("decodeBundle() survives random bytes and reads back what it accepts", () => {
  const random = seeded(4);
  for (let round = 0; round < 20_000; round++) {
    const bytes = encodeBundle([fromHex(PING)!, fromHex(UNSUB)!]).slice(0, random() < 0.3 ? random() * 20 : 99);
    for (let i = Math.floor(random() * 4); i > 0; i--) bytes[1 + Math.floor(random() * bytes.length)] = random() * 16;
    try {
      const parts = decodeBundle(bytes);
      if (parts !== null) assertEquals(toHex(encodeBundle(parts)), toHex(bytes));
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation", String(error));
    }
  }
});

test("LiveNode takes each message of a BUNDLE, and none behind one that gets its sender banned", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  stage.node.message(peer!.peer, encodeBundle([fromHex(PING)!, fromHex("041234567800000000")!]));
  assertEquals(peer!.link.of("ping").filter(({ nonce }) => nonce < 1n << 62n).length, 2);
  stage.node.message(peer!.peer, encodeBundle([fromHex("0301")!, fromHex(PING)!]));
  assertEquals(peer!.link.closedWith?.code, "protocol_violation");
  assertEquals(peer!.link.of("ping").filter(({ nonce }) => nonce === 0x123456789abcn).length, 1);
});
