/** Reads ahead return the same bytes as the source, keep few chunks in memory, and read nothing that is not here. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import type { ByteSource } from "../../src/bytes/source.ts";
import { MillraceError } from "../../src/errors.ts";
import { ReadAhead } from "../../src/media/source/read-ahead.ts";

const CHUNK = 512 * 1024;
const { signal } = new AbortController();

/** A file of `sizeBytes`, of which the first `hereBytes` are here, and the reads that it got. */
function fileOf(sizeBytes: number, hereBytes = sizeBytes) {
  const buffers = new ChunkBuffers();
  const reads: [offset: number, length: number][] = [];
  const failing = new Set<number>();
  /** Bytes that were read and not given back. */
  const held = new Map<ArrayBufferLike, number>();
  const hold = (bytes: Uint8Array) => {
    held.set(bytes.buffer, (held.get(bytes.buffer) ?? 0) + 1);
    buffers.hold(bytes);
  };
  const source: ByteSource = {
    sizeBytes,
    read(offset, length) {
      reads.push([offset, length]);
      if (failing.delete(offset)) return Promise.reject(new MillraceError("io", "unreadable"));
      const bytes = buffers.acquire(length);
      held.set(bytes.buffer, 1);
      for (let i = 0; i < length; i += 997) bytes[i] = (offset + i) % 251;
      return Promise.resolve(bytes);
    },
    availableFrom: (offset, maxBytes) => Math.max(0, Math.min(maxBytes, hereBytes - offset)),
    hold,
    release(bytes) {
      const left = held.get(bytes.buffer)! - 1;
      if (left === 0) held.delete(bytes.buffer);
      else held.set(bytes.buffer, left);
      buffers.release(bytes);
    },
  };
  return {
    source,
    reads,
    failing,
    heldBytes: () => [...held.keys()].reduce((sum, { byteLength }) => sum + byteLength, 0),
  };
}

/** Lets promises that are settled run their reactions. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

test("ReadAhead returns the source's bytes, reads each chunk once and one chunk ahead", async () => {
  const { source, reads, heldBytes } = fileOf(4 * CHUNK + 100);
  const ahead = ReadAhead.of(source, signal)!;
  ahead.release(await ahead.read(0, 16, { signal }));
  assertEquals(reads, [[0, 16]]);
  const sizes = [CHUNK / 2, CHUNK / 2, CHUNK - 10, 10, CHUNK, CHUNK, 100];
  let at = 0;
  for (const size of sizes) {
    const bytes = await ahead.read(at, size, { signal });
    assertEquals(bytes.length, size);
    for (let i = (997 - at % CHUNK % 997) % 997; i < size; i += 997) assertEquals(bytes[i], (at + i) % 251);
    at += size;
    ahead.release(bytes);
    await settled();
    assertEquals(heldBytes() <= 2 * CHUNK, true, `${heldBytes()} bytes held at ${at}`);
  }
  assertEquals(reads.slice(1), [0, 1, 2, 3, 4].map((n) => [n * CHUNK, n === 4 ? 100 : CHUNK]));
  ahead.close();
  await settled();
  assertEquals(heldBytes(), 0);
});

test("ReadAhead reads only what was asked for where bytes are not here, and where a read crosses two chunks", async () => {
  const { source, reads } = fileOf(4 * CHUNK, CHUNK + 5);
  const ahead = ReadAhead.of(source, signal)!;
  const asked: [number, number][] = [[0, 16], [CHUNK - 8, 16], [CHUNK + 8, 1000], [CHUNK + 1008, CHUNK]];
  for (const [offset, length] of asked) ahead.release(await ahead.read(offset, length, { signal }));
  assertEquals(reads, asked);
  ahead.close();
});

test("ReadAhead reads a chunk again that failed ahead of its use, and rejects a read whose chunk fails", async () => {
  const { source, reads, failing } = fileOf(4 * CHUNK);
  const ahead = ReadAhead.of(source, signal)!;
  ahead.release(await ahead.read(0, 16, { signal }));
  failing.add(CHUNK);
  ahead.release(await ahead.read(16, 16, { signal }));
  await settled();
  ahead.release(await ahead.read(CHUNK, 16, { signal }));
  assertEquals(reads.filter(([offset]) => offset === CHUNK).length, 2);
  failing.add(3 * CHUNK);
  await assertRejects(() => ahead.read(3 * CHUNK, 16, { signal }), MillraceError, "unreadable");
  ahead.release(await ahead.read(3 * CHUNK, 16, { signal }));
  ahead.close();
});

test("ReadAhead.of() returns null for a source that takes no bytes back", () => {
  const { sizeBytes, read } = fileOf(16).source;
  assertEquals(ReadAhead.of({ sizeBytes, read }, signal), null);
});
