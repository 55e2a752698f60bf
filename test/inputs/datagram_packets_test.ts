import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { DatagramPackets } from "../../src/inputs/datagram-packets.ts";
import { seededBelow } from "../support/random.ts";
import { CLIP } from "./support.ts";

/** `bytes` in parts of at most `size`. */
function cut(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

function joined(payloads: readonly Uint8Array[]): { bytes: Uint8Array; strange: number } {
  const packets = new DatagramPackets();
  const out = payloads.map((payload) => packets.push(payload));
  const good = out.filter((bytes) => bytes !== null);
  return { bytes: concatBytes(good), strange: out.length - good.length };
}

test("DatagramPackets.push() joins a stream that is cut into datagrams of any size", () => {
  for (const size of [1, 100, 188, 316, 1316, 1460, 1472, 8192]) {
    const { bytes, strange } = joined(cut(CLIP, size));
    assertEquals(strange, 0, String(size));
    assertEquals(bytes, CLIP, String(size));
  }
});

test("DatagramPackets.push() leaves out what a lost datagram cut, and nothing else", () => {
  const parts = cut(CLIP, 1472);
  const { bytes, strange } = joined(parts.toSpliced(10, 1));
  assertEquals(strange, 0);
  // Packets that begin before the lost datagram and end in it, or the other way around, cannot be completed.
  const before = Math.floor(10 * 1472 / 188) * 188;
  const after = Math.ceil(11 * 1472 / 188) * 188;
  assertEquals(bytes, concatBytes([CLIP.subarray(0, before), CLIP.subarray(after)]));
});

test("DatagramPackets.push() leaves out datagrams that are no transport stream, and the stream continues", () => {
  const parts = cut(CLIP, 1472);
  const junk = new TextEncoder().encode("no transport stream ".repeat(60));
  const { bytes, strange } = joined(parts.toSpliced(10, 0, junk).toSpliced(0, 0, junk));
  assertEquals(strange, 2);
  assertEquals(bytes, CLIP);
});

test("DatagramPackets.reset() drops the packet under way", () => {
  const packets = new DatagramPackets();
  packets.push(CLIP.subarray(0, 1472));
  packets.reset();
  assertEquals(packets.push(CLIP.subarray(0, 376)), CLIP.subarray(0, 376));
});

test("DatagramPackets.push() returns whole packets whatever comes", () => {
  const random = seededBelow(5);
  const packets = new DatagramPackets();
  for (let round = 0; round < 5000; round++) {
    const from = random(CLIP.length - 1500);
    const payload = CLIP.slice(from, from + random(1500));
    for (let k = random(3); k > 0 && payload.length > 0; k--) payload[random(payload.length)] = random(256);
    const out = packets.push(payload);
    assert(out === null || out.length % 188 === 0);
  }
});
