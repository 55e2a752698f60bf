/** What a walk over clusters reads, and gives back. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { HeldParts } from "../../src/media/source/held-parts.ts";
import { ByteWindow } from "../../src/media/source/byte-window.ts";

const SIZE = 10_000;
const CHUNK = 1000;
const bytes = Uint8Array.from({ length: SIZE }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
const signal = new AbortController().signal;

/** A window from `position` on, and what it read and gave back. */
function windowAt(position: number, untilBytes = Infinity) {
  const reads: [number, number][] = [];
  const out = new Set<Uint8Array>();
  const source = {
    sizeBytes: SIZE,
    read(offset: number, length: number) {
      reads.push([offset, length]);
      const answer = bytes.slice(offset, offset + length);
      out.add(answer);
      return Promise.resolve(answer);
    },
  };
  const lender = {
    hold() {},
    release(part: Uint8Array) {
      assert(out.delete(part), "given back once, as it was read");
      part.fill(0);
    },
  };
  return { window: new ByteWindow(source, position, { chunkBytes: CHUNK, untilBytes, signal, lender }), reads, out };
}

/** Parses `count` bytes at the window's place. */
async function take(window: ByteWindow, count: number): Promise<void> {
  const { position } = window;
  assert(await window.need(count));
  assertEquals(window.bytes.slice(window.at, window.at + count), bytes.slice(position, position + count));
  window.at += count;
}

test("ByteWindow reads to multiples of its read size, each byte once, and gives every read back", async () => {
  for (const step of [1, 7, 64, 333, 999, 1000, 1001, 2500]) {
    const { window, reads, out } = windowAt(1234);
    while (window.position + step <= SIZE) {
      await take(window, step);
      window.giveBack();
      assert(out.size <= 2, `${out.size} reads are held`);
    }
    let position = 1234;
    for (const [offset, length] of reads) {
      assertEquals(offset, position);
      position += length;
      if (step <= CHUNK / 4) assertEquals(position % CHUNK, 0);
    }
    window.close();
    assertEquals(out.size, 0);
  }
});

test("ByteWindow.seek() keeps what was read and goes anywhere else", async () => {
  const { window, reads, out } = windowAt(0);
  await take(window, 900);
  await take(window, 200);
  window.seek(1500);
  await take(window, 100);
  assertEquals(reads, [[0, 1000], [1000, 1000]]);
  window.seek(7100);
  await take(window, 100);
  assertEquals(reads.slice(2), [[7100, 900]]);
  window.giveBack();
  assertEquals(out.size, 1);
  window.close();
  assertEquals(out.size, 0);
});

test("ByteWindow.need() reads what is here, and no more than to the next 64 KiB of what is not", async () => {
  const KIB = 1024;
  const reads: number[] = [];
  let hereBytes = 0;
  const source = {
    sizeBytes: 1024 * KIB,
    read(offset: number, length: number) {
      reads.push(offset / KIB, (offset + length) / KIB);
      hereBytes = Math.max(hereBytes, offset + length);
      return Promise.resolve(new Uint8Array(length));
    },
    availableFrom: (offset: number, most: number) => Math.max(0, Math.min(most, hereBytes - offset)),
  };
  const window = new ByteWindow(source, 5 * KIB, {
    chunkBytes: 512 * KIB,
    untilBytes: Infinity,
    signal,
    lender: null,
  });
  assert(await window.need(10));
  assertEquals(reads.splice(0), [5, 64]);
  window.seek(64 * KIB);
  assert(await window.need(70 * KIB));
  assertEquals(reads.splice(0), [64, 192]);
  hereBytes = 300 * KIB;
  window.seek(192 * KIB);
  assert(await window.need(1));
  assertEquals(reads.splice(0), [192, 300]);
  hereBytes = 1024 * KIB;
  window.seek(300 * KIB);
  assert(await window.need(1));
  assertEquals(reads.splice(0), [300, 512]);
});

test("ByteWindow.need() reads little after the expected end, and false at that of the source", async () => {
  const { window, reads } = windowAt(2000, 2600);
  await take(window, 600);
  assertEquals(reads, [[2000, 600]]);
  await take(window, 10);
  assertEquals(reads.slice(1), [[2600, 125]]);
  await take(window, 1000);
  window.seek(SIZE - 5);
  assertEquals(await window.need(6), false);
  assertEquals(window.available, 5);
  assert(window.atEnd);
});

test("HeldParts.keep() holds reads as long as a part is kept, and copies where too much memory would be held", () => {
  const holders = new Map<ArrayBufferLike, number>();
  const change = (by: number) => (part: Uint8Array) =>
    void holders.set(part.buffer, (holders.get(part.buffer) ?? 0) + by);
  const held = new HeldParts({ hold: change(1), release: change(-1) });
  const reads = Array.from({ length: 12 }, (_, i) => new Uint8Array(512 * 1024).fill(i));
  const kept = reads.flatMap((read) => [held.keep(read.subarray(0, 10)), held.keep(read.subarray(10, 30))]);
  assertEquals(kept.map((part) => part[0]), reads.flatMap((_, i) => [i, i]));
  // 1 MiB are two such reads; of the others the parts were copied.
  assertEquals([...holders.values()], Array(2).fill(2));
  // A part that is most of its read is held nevertheless: a copy would be as large.
  const most = reads[2]!.subarray(100);
  assert(held.keep(most) === most);
  for (const part of [...kept, most]) held.drop(part);
  assertEquals([...holders.values()], Array(3).fill(0));
  held.keep(reads[11]!.subarray(5));
  assertEquals(holders.get(reads[11]!.buffer), 1);
  // As much as its user allows.
  holders.clear();
  const more = new HeldParts({ hold: change(1), release: change(-1) }, 2 * 1024 * 1024);
  for (const read of reads) more.keep(read.subarray(0, 10));
  assertEquals(holders.size, 4);
});
