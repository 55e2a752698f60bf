import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { SharedReads } from "../../src/swarm/reading/shared-reads.ts";

test("SharedReads gives one copy to all readers at one position", async () => {
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

test("SharedReads lets each reader try alone when a shared read fails", async () => {
  const shared = new SharedReads(30);
  let reads = 0;
  const read = () => ++reads === 1 ? Promise.reject(new Error("gone")) : Promise.resolve(new Uint8Array(1));
  const first = shared.through(0, 1, read);
  const second = shared.through(0, 1, read);
  await assertRejects(() => first, Error, "gone");
  assertEquals((await second).length, 1);
});

test("SharedReads drops bytes that all readers have used", async () => {
  const shared = new SharedReads(100);
  for (let reader = 0; reader < 3; reader++) shared.join();
  const read = () => Promise.resolve(new Uint8Array(10));
  await shared.through(0, 10, read);
  shared.get(0, 10);
  assertEquals(shared.sizeBytes, 10);
  assertEquals(shared.get(0, 10)?.length, 10);
  assertEquals([shared.get(0, 10), shared.sizeBytes], [null, 0]);
  // Readers that waited for a read under way have used it too.
  await Promise.all([1, 2, 3].map(() => shared.through(20, 10, read)));
  assertEquals(shared.sizeBytes, 0);
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

test("SharedReads keeps what the foremost reader read when others fall behind by more than its limit", async () => {
  const shared = new SharedReads(40);
  for (let reader = 0; reader < 2; reader++) shared.join();
  const read = (start: number) => shared.through(start, 10, () => Promise.resolve(new Uint8Array(10)));
  for (let start = 0; start < 200; start += 10) {
    await read(start);
    if (start >= 100) await read(start - 100);
  }
  assertEquals([160, 170, 180, 190].map((start) => shared.get(start, 10) !== null), [true, true, true, true]);
  assertEquals(shared.get(90, 10), null);
});

test("SharedReads moves its front to the readers when nobody reads at the old one any more", async () => {
  const shared = new SharedReads(40);
  for (let reader = 0; reader < 2; reader++) shared.join();
  const read = (start: number) => shared.through(start, 10, () => Promise.resolve(new Uint8Array(10)));
  await read(1000);
  for (let start = 0; start < 200; start += 10) await read(start);
  assertEquals([170, 180, 190].map((start) => shared.get(start, 10) !== null), [true, true, true]);
});

test("SharedReads keeps more for more readers, up to its bound", () => {
  const shared = new SharedReads();
  const limits: number[] = [];
  for (let readers = 1; readers <= 1000; readers++) {
    shared.join();
    if ([1, 64, 1000].includes(readers)) limits.push(shared.limitBytes / 1024 / 1024);
  }
  assertEquals(limits, [4, 8, 64]);
});
