import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { CHUNK_PACKETS, PacketOutput } from "../../src/media/ts-file/cut/packet-output.ts";

/** `count` packets that differ from one another. */
function packets(count: number): Uint8Array {
  const bytes = new Uint8Array(count * 188);
  for (let i = 0; i < bytes.length; i++) bytes[i] = i % 188 === 0 ? 0x47 : (i * 31 + (i >> 8)) & 0xff;
  return bytes;
}

test("PacketOutput returns the packets in order, with the counters they were added with, in chunks of at most 64 KiB", () => {
  const source = packets(2000);
  const other = packets(3);
  const buffers = new ChunkBuffers();
  const out = new PacketOutput(buffers);
  const expected: Uint8Array[] = [];
  const given: Uint8Array[] = [];
  const add = (bytes: Uint8Array, at: number, counter: number) => {
    out.add(bytes, at, counter);
    const packet = bytes.slice(at, at + 188);
    packet[3] = (packet[3]! & 0xf0) | counter;
    expected.push(packet);
  };
  for (let i = 0; i < 2000; i++) {
    if (i % 100 !== 7) add(source, i * 188, i & 15);
    if (i % 250 === 3) {
      out.addWhole(other);
      expected.push(other);
    }
    if (i % 900 !== 899) continue;
    for (const chunk of out.take()) {
      assert(chunk.length <= CHUNK_PACKETS * 188);
      given.push(chunk.slice());
      // The memory of a released chunk may be overwritten by the next one.
      buffers.release(chunk);
    }
  }
  given.push(...[...out.take()].map((chunk) => chunk.slice()));
  assertEquals(concatBytes(given), concatBytes(expected));
  assertEquals([...out.take()], []);
});

test("PacketOutput.settle() copies what was added, so that its source may change afterwards", () => {
  const source = packets(5);
  const before = source.slice();
  const out = new PacketOutput();
  out.addWhole(source);
  out.settle();
  source.fill(0);
  assertEquals([...out.take()], [before]);
});
