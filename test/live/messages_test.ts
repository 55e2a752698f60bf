import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { fromHex, toHex } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import {
  decodeLiveMessage,
  encodeLiveMessage,
  type LiveMessage,
  MAX_LIVE_MESSAGE_BYTES,
  windowHas,
  windowNewest,
} from "../../src/live/messages.ts";
import { emptyPaths } from "../../src/live/node/neighbour/place.ts";
import { seeded } from "../metainfo/support.ts";

const TABLE: [string, LiveMessage][] = [
  ["0000000001000000050000000800", { type: "window", epoch: 1, base: 5, solid: 8, bitmap: new Uint8Array() }],
  [
    "00ffffffff00000000800000000240a0",
    { type: "window", epoch: 0xffffffff, base: 0, solid: 0x80000000, bitmap: fromHex("40a0") },
  ],
  ["01c0ffee", { type: "header", bytes: fromHex("c0ffee") }],
  ["02a500000007", { type: "subscribe", mask: 0xa5, from: 7 }],
  ["03ff01", { type: "unsubscribe", mask: 255, reason: 1 }],
  ["050003d090020102ff0003" + "000000010000000200000003ffffffff" + "00000000000000000000000080000000", {
    type: "place",
    upBytesPerS: 250_000,
    depths: new Uint8Array([1, 2]),
    bars: new Uint8Array([255, 0]),
    paths: new Uint32Array([1, 2, 3, 0xffffffff, 0, 0, 0, 0x80000000]),
    pathMask: 3,
  }],
  ["0500000000020102ff0002" + "00000000000000000000000080000000", {
    type: "place",
    upBytesPerS: 0,
    depths: new Uint8Array([1, 2]),
    bars: new Uint8Array([255, 0]),
    paths: new Uint32Array([0, 0, 0, 0, 0, 0, 0, 0x80000000]),
    pathMask: 2,
  }],
  ["05ffffffff01030900", {
    type: "place",
    upBytesPerS: null,
    depths: new Uint8Array([3]),
    bars: new Uint8Array([9]),
    paths: emptyPaths(1),
    pathMask: 0,
  }],
  ["0b1002" + "00000007" + "7fffffff", { type: "headers", lean: 0x10, seqs: [7, 0x7fffffff] }],
  ["0b0000", { type: "headers", lean: 0, seqs: [] }],
  ["040102030405060708", { type: "ping", nonce: 0x0102030405060708n }],
  ["0e8102030405060708a1b2c3d4", { type: "pong", nonce: 0x8102030405060708n, atMs: 0xa1b2c3d4 }],
];

test("encodeLiveMessage() and decodeLiveMessage() agree with the bytes of the protocol", () => {
  for (const [hex, message] of TABLE) {
    assertEquals(toHex(encodeLiveMessage(message)), hex);
    assertEquals(decodeLiveMessage(fromHex(hex)), message);
  }
});

test("decodeLiveMessage() throws protocol_violation when a message is malformed", () => {
  const cases = [
    "",
    "00",
    "000000000100000005000000080100ff",
    "00000000010000000500000008",
    "0000000001000000090000000800",
    "0000000001000000058000000100",
    "02a5000000",
    "02a580000001",
    "03ff",
    "05",
    "0500000001020101ff",
    "0401020304050607",
    "0b",
    "0b00",
    "0b000100",
    "0b0011" + "00000001".repeat(17),
    "0500000000020102ff0004" + "00".repeat(32),
    "01".padEnd(2 * (MAX_LIVE_MESSAGE_BYTES + 1), "0"),
  ];
  for (const hex of cases) {
    assertEquals(assertThrows(() => decodeLiveMessage(fromHex(hex)), MillraceError).code, "protocol_violation");
  }
});

test("decodeLiveMessage() returns null when the type is of a later version", () => {
  assertEquals(decodeLiveMessage(fromHex("06")), null);
  assertEquals(decodeLiveMessage(fromHex("ff00")), null);
});

test("windowHas() and windowNewest() read solid part and bitmap", () => {
  const table: [number, number, string, number[], number][] = [
    [5, 8, "", [5, 6, 7], 7],
    [5, 8, "40a0", [5, 6, 7, 9, 16, 18], 18],
    [0, 0, "", [], -1],
    [3, 3, "01", [10], 10],
    [3, 3, "8000", [3], 3],
  ];
  for (const [base, solid, bitmap, has, newest] of table) {
    const window = { type: "window", epoch: 0, base, solid, bitmap: fromHex(bitmap) } as const;
    assertEquals(Array.from({ length: 40 }, (_, seq) => seq).filter((seq) => windowHas(window, seq)), has);
    assertEquals(windowNewest(window), newest);
  }
});

test("decodeLiveMessage() survives random bytes and reads back what it accepts", () => {
  const random = seeded(3);
  for (let round = 0; round < 20_000; round++) {
    const [hex] = TABLE[Math.floor(random() * TABLE.length)]!;
    const bytes = fromHex(hex).slice(0, random() < 0.2 ? Math.floor(random() * 16) : 999);
    for (let i = Math.floor(random() * 4); i > 0; i--) bytes[Math.floor(random() * bytes.length)] = random() * 256;
    try {
      const message = decodeLiveMessage(bytes);
      if (message !== null) assertEquals(toHex(encodeLiveMessage(message)), toHex(bytes));
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation", String(error));
    }
  }
});
