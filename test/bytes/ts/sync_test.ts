/** How packets are found by their sync bytes, and in a stream that is cut anywhere. */
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { areWholePackets, PACKET_BYTES } from "../../../src/bytes/ts/packet.ts";
import { TsResync } from "../../../src/bytes/ts/resync.ts";
import { findPackets, LEAST_SYNCS, PACKET_STRIDES, PLAIN_STRIDE, SYNC_RUN } from "../../../src/bytes/ts/sync.ts";
import { seededBelow } from "../../support/random.ts";

/** `size` bytes with sync bytes from `first` on, `stride` apart, `count` of them. */
function grid(size: number, first: number, stride: number, count = Infinity): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let at = first, n = 0; at < size && n < count; at += stride, n++) bytes[at] = 0x47;
  return bytes;
}

test("findPackets() finds packets of each stride wherever they begin, and needs a whole row of them", () => {
  const plain = { firstAt: 0, strideBytes: 188 };
  const cases: [string, Uint8Array, readonly number[], boolean, unknown][] = [
    ["plain", grid(2000, 0, 188), PACKET_STRIDES, false, plain],
    ["in the middle of a packet", grid(2000, 100, 188), PACKET_STRIDES, false, { firstAt: 100, strideBytes: 188 }],
    ["M2TS", grid(2000, 4, 192), PACKET_STRIDES, false, { firstAt: 4, strideBytes: 192 }],
    ["with parity", grid(2000, 0, 204), PACKET_STRIDES, false, { firstAt: 0, strideBytes: 204 }],
    ["after junk", grid(9000, 5000, 188), PACKET_STRIDES, false, { firstAt: 5000, strideBytes: 188 }],
    ["M2TS where plain ones are wanted", grid(2000, 4, 192), PLAIN_STRIDE, false, null],
    ["one sync byte too few", grid(2000, 0, 188, SYNC_RUN - 1), PACKET_STRIDES, false, null],
    ["three to the end of a file", grid(3 * 188, 0, 188), PACKET_STRIDES, true, plain],
    ["three to the end of a part", grid(3 * 188, 0, 188), PACKET_STRIDES, false, null],
    ["two to the end of a file", grid(2 * 188, 0, 188), PACKET_STRIDES, true, null],
    ["three not to the end", grid(5 * 188, 0, 188, 3), PACKET_STRIDES, true, null],
    ["nothing", new Uint8Array(), PACKET_STRIDES, true, null],
    ["zeros", new Uint8Array(5000), PACKET_STRIDES, false, null],
  ];
  for (const [what, bytes, strides, isWhole, expected] of cases) {
    assertEquals(findPackets(bytes, strides, isWhole), expected, what);
  }
});

test("areWholePackets() takes whole packets and nothing else", () => {
  for (const [bytes, expected] of [[188, true], [7 * 188, true], [0, false], [187, false], [189, false]] as const) {
    assertEquals(areWholePackets(grid(bytes, 0, 188)), expected, String(bytes));
  }
  assertEquals(areWholePackets(new Uint8Array(188)), false);
});

const CLIP = new Uint8Array(readFileSync(new URL("../../fixtures/ts-188.ts", import.meta.url)));

test("TsResync finds the packets wherever the stream begins and however it is cut", () => {
  const ts = CLIP.subarray(0, 300 * PACKET_BYTES);
  for (const start of [0, 1, 100, 187]) {
    for (const chunk of [1, 187, 188, 189, 1316, 99_999]) {
      const resync = new TsResync();
      const parts: Uint8Array[] = [];
      for (let at = start; at < ts.length; at += chunk) {
        for (const run of resync.push(ts.subarray(at, Math.min(ts.length, at + chunk)))) parts.push(run.packets);
      }
      const whole = concatBytes(parts);
      const from = start === 0 ? 0 : PACKET_BYTES;
      assertEquals(whole.length, ts.length - from, `start ${start}, chunk ${chunk}`);
      assertEquals(whole, ts.slice(from));
    }
  }
});

test("TsResync copies only the packets that begin in one chunk and end in the next", () => {
  const resync = new TsResync();
  const chunks = [0, 1, 2].map((n) => CLIP.slice(n * 2000, (n + 1) * 2000));
  const runs = chunks.map((chunk) => resync.push(chunk));
  assertEquals(runs.map((of) => of.map(({ packets }) => packets.length / PACKET_BYTES)), [[10], [1, 10], [1, 9]]);
  for (const [n, of] of runs.entries()) assert(of.at(-1)!.packets.buffer === chunks[n]!.buffer, `chunk ${n}`);
});

test("TsResync marks the packets after a loss, and counts what it dropped", () => {
  const resync = new TsResync();
  const packets = (from: number, to: number) => CLIP.slice(from * PACKET_BYTES, to * PACKET_BYTES);
  assertEquals(resync.push(packets(0, 10)).map(({ lost }) => lost), [false]);
  const [after] = resync.push(concatBytes([new Uint8Array(33), packets(10, 20)]));
  assertEquals([after!.lost, after!.packets.length, resync.droppedBytes], [true, 10 * PACKET_BYTES, 33]);
  resync.push(packets(20, 21).subarray(0, 50));
  resync.reset();
  assertEquals(resync.droppedBytes, 83);
  assertEquals(resync.push(packets(30, 40)).map(({ lost }) => lost), [true]);
});

test("TsResync keeps little and returns whole packets alone, whatever comes", () => {
  const below = seededBelow(9);
  for (let round = 0; round < 200; round++) {
    const resync = new TsResync();
    let taken = 0;
    let returned = 0;
    for (let i = 0; i < 20; i++) {
      const chunk = Uint8Array.from({ length: below(2000) }, () => below(3) === 0 ? 0x47 : below(256));
      taken += chunk.length;
      for (const { packets } of resync.push(chunk)) {
        assert(areWholePackets(packets));
        returned += packets.length;
      }
    }
    assert(taken - returned - resync.droppedBytes < LEAST_SYNCS * PACKET_BYTES);
  }
});
