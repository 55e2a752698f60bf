import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual, assertRejects, assertThrows } from "@std/assert";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import { MillraceError } from "../../src/errors.ts";
import { type OutputRun, SharedOutputs, type SharedReader } from "../../src/playback/shared-output.ts";
import { settle } from "../support/fake-clock.ts";
import { seededBelow } from "../support/random.ts";

const CHUNK = 64 * 1024;
const NEVER = new AbortController().signal;

/** Byte `at` of every output here. */
const byteAt = (at: number) => (at * 31 + (at >> 9)) & 255;

/** An output of `sizeBytes` whose runs make chunks in reused memory; it counts the runs. */
function output(sizeBytes: number, chunkBytes: () => number = () => CHUNK) {
  const buffers = new ChunkBuffers();
  const all = new SharedOutputs(buffers);
  const counts = { begun: 0, open: 0, madeBytes: 0, fail: false };
  const source = {};
  async function* make(offset: number): AsyncGenerator<Uint8Array> {
    for (let at = offset; at < sizeBytes;) {
      await settle();
      if (counts.fail) throw new MillraceError("bad_media", "damaged");
      const bytes = buffers.acquire(Math.min(chunkBytes(), sizeBytes - at));
      for (let i = 0; i < bytes.length; i++) bytes[i] = byteAt(at + i);
      at += bytes.length;
      counts.madeBytes += bytes.length;
      yield bytes;
    }
  }
  const open = (offset: number): OutputRun => {
    counts.begun++;
    counts.open++;
    let closed = false;
    return {
      chunks: make(offset),
      stallReason: () => "slow_peers",
      positionBytes: offset,
      isWaiting: () => true,
      close() {
        if (!closed) counts.open--;
        closed = true;
      },
    };
  };
  const read = (start: number, end: number | null = null, name = "ts") => all.read(source, name, start, end, open);
  return { all, buffers, counts, source, read };
}

/** Reads `chunks` chunks, or all; checks every byte and releases its memory. Returns how many bytes came. */
async function take(
  { buffers }: { buffers: ChunkBuffers },
  iterator: AsyncIterator<Uint8Array>,
  start: number,
  chunks = Infinity,
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<number> {
  let at = start;
  for (let n = 0; n < chunks; n++) {
    const { done, value } = await iterator.next();
    if (done === true) break;
    await between();
    for (let i = 0; i < value.length; i += 61) {
      if (value[i] !== byteAt(at + i)) throw new Error(`byte ${at + i} is wrong`);
    }
    at += value.length;
    buffers.release(value);
  }
  return at - start;
}

const iteratorOf = (reader: SharedReader, signal = NEVER) => reader.read(signal)[Symbol.asyncIterator]();

test("SharedOutputs.read() makes bytes once for readers near each other, and keeps none that all have read", async () => {
  const size = 40 * CHUNK + 77;
  const shared = output(size);
  const readers = [shared.read(0), shared.read(0), shared.read(3 * CHUNK + 5)];
  const iterators = readers.map((reader) => iteratorOf(reader));
  // The first is ahead; the third begins in the middle of a chunk that the first had made.
  await take(shared, iterators[0]!, 0, 8);
  const got = await Promise.all([
    take(shared, iterators[0]!, 8 * CHUNK),
    take(shared, iterators[1]!, 0),
    take(shared, iterators[2]!, 3 * CHUNK + 5),
  ]);
  assertEquals(got, [size - 8 * CHUNK, size, size - 3 * CHUNK - 5]);
  assertLessOrEqual(shared.counts.begun, 2);
  assertLessOrEqual(shared.counts.madeBytes, size + CHUNK);
  assertEquals(shared.all.keptBytes, 0);
  for (const reader of readers) reader.close();
  assertEquals(shared.counts.open, 0);
});

test("SharedOutputs.read() gives distant readers separate runs, which end with their last reader", async () => {
  const shared = output(2 ** 40);
  const [near, far, follower] = [shared.read(0), shared.read(2 ** 39), shared.read(0)];
  const iterators = [near, far, follower].map((reader) => iteratorOf(reader!));
  for (const [i, at] of [0, 2 ** 39, 0].entries()) await take(shared, iterators[i]!, at, 3);
  assertEquals([shared.counts.begun, shared.counts.open, near!.stallReason()], [2, 2, "slow_peers"]);
  near!.close();
  far!.close();
  assertEquals(shared.counts.open, 1);
  await take(shared, iterators[2]!, 3 * CHUNK, 3);
  assertEquals(shared.counts.begun, 2);
  follower!.close();
  follower!.close();
  assertEquals([shared.counts.open, shared.all.keptBytes], [0, 0]);
});

test("SharedOutputs.read() ends at the end that was asked for, and at the output's", async () => {
  const shared = output(10 * CHUNK);
  for (const [start, end] of [[0, 100], [CHUNK - 1, CHUNK + 1], [9 * CHUNK, 10 * CHUNK], [5, 5]] as const) {
    const reader = shared.read(start, end);
    assertEquals(await take(shared, iteratorOf(reader), start), end - start);
    reader.close();
  }
  const reader = shared.read(9 * CHUNK + 1);
  assertEquals(await take(shared, iteratorOf(reader), 9 * CHUNK + 1), CHUNK - 1);
  reader.close();
});

test("SharedOutputs keeps parts that several sessions play, within its bound, until the last session leaves", async () => {
  const part = 6 * 1024 * 1024;
  const shared = output(part);
  const whole = async (name: string) => {
    const reader = shared.read(0, null, name);
    assertEquals(await take(shared, iteratorOf(reader), 0), part);
    reader.close();
  };
  await whole("0");
  assertEquals([shared.counts.begun, shared.all.keptBytes], [1, 0]);
  shared.all.joinAudience(shared.source);
  shared.all.joinAudience(shared.source);
  await whole("0");
  await whole("0");
  assertEquals([shared.counts.begun, shared.all.keptBytes], [2, part]);
  for (let n = 1; n < 6; n++) await whole(String(n));
  assertEquals(shared.all.limitBytes, 16 * 1024 * 1024);
  assertLessOrEqual(shared.all.keptBytes, shared.all.limitBytes);
  // Half of the oldest output was evicted: a run begins at its start, and the kept rest is used.
  await whole("0");
  shared.all.leaveAudience(shared.source);
  assert(shared.all.keptBytes > 0);
  shared.all.leaveAudience(shared.source);
  assertEquals([shared.all.keptBytes, shared.counts.open], [0, 0]);
});

test("SharedOutputs.read() passes an error on to all waiting readers; later ones try again", async () => {
  const shared = output(10 * CHUNK);
  const readers = [shared.read(0), shared.read(0)];
  shared.counts.fail = true;
  for (const result of readers.map((reader) => iteratorOf(reader).next())) {
    await assertRejects(() => result, MillraceError, "damaged");
  }
  shared.counts.fail = false;
  const later = shared.read(0);
  assertEquals(await take(shared, iteratorOf(later), 0), 10 * CHUNK);
  // Readers that gave up are still in the list.
  assert(shared.all.keptBytes > 0);
  for (const reader of [...readers, later]) reader.close();
  assertEquals([shared.counts.open, shared.all.keptBytes], [0, 0]);
  const full = () => {
    throw new MillraceError("too_busy", "too many readers");
  };
  assertThrows(() => shared.all.read({}, "ts", 0, null, full), MillraceError, "too many readers");
});

test("SharedOutputs.read() rejects with the signal's reason, and leaves the run to the others", async () => {
  const shared = output(10 * CHUNK);
  const leaving = new AbortController();
  const [first, second] = [shared.read(0), shared.read(0)];
  const waits = [iteratorOf(first!, leaving.signal).next(), iteratorOf(second!).next()];
  leaving.abort(new MillraceError("aborted", "the client left"));
  await assertRejects(() => waits[0]!, MillraceError, "the client left");
  first!.close();
  assertEquals((await waits[1])!.value!.length, CHUNK);
  assertEquals([shared.counts.begun, shared.counts.open], [1, 1]);
  second!.close();
  assertEquals(shared.counts.open, 0);
});

test("SharedOutputs never gives a reader memory that is being reused: 40 readers come, go and dawdle", async () => {
  const random = seededBelow(5);
  const size = 60 * CHUNK;
  const shared = output(size, () => 1000 + random(CHUNK - 1000));
  const dawdle = async () => {
    for (let n = random(4); n > 0; n--) await settle();
  };
  await Promise.all(Array.from({ length: 40 }, async () => {
    for (let n = random(20); n > 0; n--) await settle();
    const start = random(size);
    const reader = shared.read(start);
    const iterator = iteratorOf(reader);
    if (random(3) === 0) await take(shared, iterator, start, random(10), dawdle);
    else assertEquals(await take(shared, iterator, start, Infinity, dawdle), size - start);
    reader.close();
  }));
  assertEquals([shared.counts.open, shared.all.keptBytes], [0, 0]);
  assert(shared.counts.madeBytes < 40 * size / 2);
});
