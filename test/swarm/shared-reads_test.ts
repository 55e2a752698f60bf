import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { SharedReads } from "../../src/swarm/shared-reads.ts";

test("SharedReads gives one copy to all who read at one place", async () => {
  const shared = new SharedReads(100);
  let reads = 0;
  const read = () => Promise.resolve(new Uint8Array(10).fill(++reads));
  const [a, b] = await Promise.all([shared.through(0, 10, read), shared.through(0, 10, read)]);
  assertEquals(reads, 1);
  assertEquals(a === b, true);
  assertEquals(shared.get(0, 10) === a, true);
  assertEquals(shared.get(0, 9), null);
  assertEquals(shared.get(10, 10), null);
});

test("SharedReads drops the least recently used beyond its limit", async () => {
  const shared = new SharedReads(30);
  const read = (start: number) => shared.through(start, 10, () => Promise.resolve(new Uint8Array(10)));
  for (const start of [0, 10, 20]) await read(start);
  shared.get(0, 10);
  await read(30);
  assertEquals(shared.sizeBytes, 30);
  assertEquals([0, 10, 20, 30].map((start) => shared.get(start, 10) !== null), [true, false, true, true]);
});

test("SharedReads lets everybody try alone when a read fails", async () => {
  const shared = new SharedReads(30);
  let reads = 0;
  const read = () => ++reads === 1 ? Promise.reject(new Error("gone")) : Promise.resolve(new Uint8Array(1));
  const first = shared.through(0, 1, read);
  const second = shared.through(0, 1, read);
  await assertRejects(() => first, Error, "gone");
  assertEquals((await second).length, 1);
});

test("SharedReads is worthwhile for several readers, and empty once they are gone", async () => {
  const shared = new SharedReads(30);
  shared.join();
  assertEquals(shared.worthwhile, false);
  shared.join();
  assertEquals(shared.worthwhile, true);
  await shared.through(0, 1, () => Promise.resolve(new Uint8Array(1)));
  shared.leave();
  assertEquals([shared.worthwhile, shared.sizeBytes], [false, 0]);
});
