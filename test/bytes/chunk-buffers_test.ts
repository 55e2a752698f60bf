import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";

test("ChunkBuffers.acquire() reuses only memory that all its holders released", () => {
  const buffers = new ChunkBuffers();
  const first = buffers.acquire(1000);
  buffers.hold(first.subarray(10, 20));
  buffers.release(first);
  const second = buffers.acquire(1000);
  assert(second.buffer !== first.buffer, "the first buffer still has a holder");
  buffers.release(first.subarray(10, 20));
  // The same size after rounding.
  const third = buffers.acquire(60_000);
  assertEquals([third.buffer === first.buffer, third.length, buffers.idleBytes], [true, 60_000, 0]);
});

test("ChunkBuffers.release() ignores repeated calls and memory from elsewhere, and keeps a bounded amount", () => {
  const buffers = new ChunkBuffers(128 * 1024);
  const views = [1, 2, 3].map(() => buffers.acquire(64 * 1024));
  buffers.release(new Uint8Array(64 * 1024));
  assertEquals(buffers.idleBytes, 0);
  for (const view of views) buffers.release(view);
  for (const view of views) buffers.release(view);
  assertEquals(buffers.idleBytes, 128 * 1024);
  assert(buffers.acquire(1).buffer !== buffers.acquire(1).buffer);
  assertEquals(buffers.idleBytes, 0);
});

test("ChunkBuffers serves large sizes that differ by a tenth from the same memory, and frees unused sizes", () => {
  const mib = 1024 * 1024;
  const buffers = new ChunkBuffers(4 * mib);
  const run = buffers.acquire(2.1 * mib);
  buffers.release(run);
  const next = buffers.acquire(2.3 * mib);
  assert(next.buffer === run.buffer);
  const others = [1, 2, 3, 4].map((n) => buffers.acquire(n * 64 * 1024));
  for (const other of others) buffers.release(other);
  const large = buffers.acquire(3.9 * mib);
  buffers.release(large);
  assert(buffers.idleBytes <= 4 * mib);
  assert(buffers.acquire(3.9 * mib).buffer === large.buffer);
  buffers.release(next);
  assert(buffers.acquire(2.2 * mib).buffer === next.buffer);
});

test("ChunkBuffers.acquire() takes idle memory of up to twice the size, the smallest that fits", () => {
  const kib = 1024;
  const buffers = new ChunkBuffers();
  const [small, large, huge] = [384, 512, 1024].map((n) => buffers.acquire(n * kib));
  for (const view of [huge!, large!, small!]) buffers.release(view);
  const first = buffers.acquire(300 * kib);
  assert(first.buffer === small!.buffer);
  assertEquals(first.length, 300 * kib);
  const second = buffers.acquire(300 * kib);
  assert(second.buffer === large!.buffer);
  const third = buffers.acquire(300 * kib);
  assert(third.buffer !== huge!.buffer, "a megabyte is more than twice as much");
  assertEquals(buffers.idleBytes, 1024 * kib);
  for (const view of [first, second, third]) buffers.release(view);
  assertEquals(buffers.idleBytes, (1024 + 384 + 512 + 320) * kib);
});
