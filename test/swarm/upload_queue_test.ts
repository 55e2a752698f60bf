import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { PieceBank } from "../../src/swarm/data/piece-bank.ts";
import { TokenBucket } from "../../src/swarm/token-bucket.ts";
import { UploadCache } from "../../src/swarm/upload/upload-cache.ts";
import { UploadQueue } from "../../src/swarm/upload/upload-queue.ts";
import { UploadRun } from "../../src/swarm/upload/upload-run.ts";
import { PIECE_HEADER_BYTES, PIECE_MESSAGE_BYTES } from "../../src/wire/piece-messages.ts";
import type { PeerLink } from "../../src/wire/types.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

const BLOCK = 16384;
const MIB = 1 << 20;
/** More than the cache keeps. */
const PIECES = 40;
const LAST_BYTES = 5 * BLOCK + 100;

const pieceBytes = (piece: number) => piece === PIECES - 1 ? LAST_BYTES : MIB;
/** Every block of the torrent has other bytes. */
const byteOf = (piece: number, offset: number) => (piece * 64 + Math.floor(offset / BLOCK)) % 251;

/** Pieces that are read without waiting; counts the reads. */
class Bank {
  readonly reads: string[] = [];
  refused = false;

  read(piece: number, offset: number, length: number, allocate = (size: number) => new Uint8Array(size)) {
    this.reads.push(`${piece}:${offset}+${length}`);
    if (this.refused) return Promise.reject(new Error("gone"));
    const into = allocate(length);
    for (let at = 0; at < length; at++) into[at] = byteOf(piece, offset + at);
    return Promise.resolve(into);
  }
}

/** A link that keeps what it is given, as a socket that has not sent it yet. */
class Link {
  readonly counters = { sentBytes: 0 };
  writtenBytes = 0;
  onDrain: (() => void) | null = null;
  hasRoom = true;
  readonly sent: { piece: number; offset: number; bytes: Uint8Array }[] = [];
  readonly alone: string[] = [];
  readonly rejected: string[] = [];

  pieces(piece: number, offset: number, bytes: Uint8Array): boolean {
    this.counters.sentBytes += bytes.length;
    this.sent.push({ piece, offset, bytes });
    return this.hasRoom;
  }

  piece(piece: number, offset: number, bytes: Uint8Array): boolean {
    this.alone.push(`${piece}:${offset}+${bytes.length}`);
    return this.hasRoom;
  }

  reject(piece: number, offset: number, length: number): void {
    this.rejected.push(`${piece}:${offset}+${length}`);
  }

  /** Blocks in each write. */
  get counts(): number[] {
    return this.sent.map(({ bytes }) => Math.ceil(bytes.length / PIECE_MESSAGE_BYTES));
  }

  /** Fails unless all that was given is what the torrent has there. */
  check(): void {
    for (const { piece, offset, bytes } of this.sent) {
      for (let at = 0, from = offset; at < bytes.length; at += PIECE_MESSAGE_BYTES, from += BLOCK) {
        const view = new DataView(bytes.buffer, bytes.byteOffset + at);
        const length = Math.min(BLOCK, bytes.length - at - PIECE_HEADER_BYTES);
        assertEquals([view.getUint32(0), view.getUint8(4), view.getUint32(5), view.getUint32(9)], [
          9 + length,
          7,
          piece,
          from,
        ]);
        assertEquals(view.getUint8(PIECE_HEADER_BYTES), byteOf(piece, from));
        assertEquals(view.getUint8(PIECE_HEADER_BYTES + length - 1), byteOf(piece, from));
      }
    }
  }
}

function lab({ bytesPerSecond = 0 } = {}) {
  const clock = new FakeClock();
  const bank = new Bank();
  const cache = new UploadCache(bank as unknown as PieceBank, MIB, pieceBytes);
  const bucket = new TokenBucket(clock, bytesPerSecond);
  let uploaded = 0;
  const join = () => {
    const link = new Link();
    const peer = { fast: true, uploaded: (bytes: number) => uploaded += bytes };
    return { link, queue: new UploadQueue(peer, link as unknown as PeerLink, cache, bucket) };
  };
  return { clock, bank, join, uploaded: () => uploaded };
}

function request(queue: UploadQueue, piece: number, from = 0, to = Math.ceil(pieceBytes(piece) / BLOCK)): void {
  for (let block = from; block < to; block++) {
    const offset = block * BLOCK;
    assert(queue.push(piece, offset, Math.min(BLOCK, pieceBytes(piece) - offset)));
  }
}

test("UploadQueue sends requests for adjacent blocks in few writes, read from the store once for all peers", async () => {
  const { bank, join, uploaded } = lab();
  const [one, two] = [join(), join()];
  for (const { queue } of [one, two]) {
    request(queue, 3);
    request(queue, PIECES - 1);
  }
  await settle();
  for (const { link } of [one, two]) {
    assertEquals(link.counts, [16, 16, 16, 16, 6]);
    link.check();
  }
  assertEquals(bank.reads.toSorted(), [`${PIECES - 1}:0+${LAST_BYTES}`, `3:0+${MIB}`]);
  assertEquals(uploaded(), 2 * (MIB + LAST_BYTES));
  assertEquals(one.link.sent[0]!.bytes.buffer, two.link.sent[0]!.bytes.buffer, "the same memory for both");
});

test("UploadQueue keeps apart what is not adjacent, in the order of the requests", async () => {
  const { join } = lab();
  const { link, queue } = join();
  request(queue, 1, 4, 6);
  request(queue, 1, 7, 8);
  request(queue, 2, 8, 9);
  request(queue, 1, 6, 7);
  await settle();
  link.check();
  assertEquals(
    link.sent.map(({ piece, offset, bytes }) => [piece, offset / BLOCK, bytes.length / PIECE_MESSAGE_BYTES]),
    [
      [1, 4, 2],
      [1, 7, 1],
      [2, 8, 1],
      [1, 6, 1],
    ],
  );
});

test("UploadQueue serves a request that is no block of ours as it was made", async () => {
  const { join, uploaded } = lab();
  const { link, queue } = join();
  queue.push(1, 100, 5000);
  queue.push(1, BLOCK, 2 * BLOCK);
  await settle();
  assertEquals(link.alone, ["1:100+5000", `1:${BLOCK}+${2 * BLOCK}`]);
  assertEquals(uploaded(), 5000 + 2 * BLOCK);
});

test("UploadQueue never changes bytes that a link has not written, while other pieces pass through the cache", async () => {
  const { join } = lab();
  const [slow, fast] = [join(), join()];
  slow.link.hasRoom = false;
  request(slow.queue, 0, 0, 16);
  await settle();
  for (let piece = 1; piece < PIECES - 1; piece++) {
    request(fast.queue, piece, 0, 16);
    await settle();
    fast.link.check();
    fast.link.writtenBytes = fast.link.counters.sentBytes;
    fast.link.sent.length = 0;
  }
  slow.link.check();
});

test("UploadQueue uses memory again that links have written", async () => {
  const { join } = lab();
  const { link, queue } = join();
  const memories = new Set<ArrayBufferLike>();
  for (let piece = 0; piece < PIECES - 1; piece++) {
    request(queue, piece);
    await settle();
    for (const { bytes } of link.sent) memories.add(bytes.buffer);
    link.check();
    link.sent.length = 0;
    link.writtenBytes = link.counters.sentBytes;
  }
  assert(memories.size < 20, `${memories.size} memories for ${PIECES - 1} pieces`);
});

test("UploadQueue copies for a peer that does not read and asks for a little of many runs", async () => {
  const { join } = lab();
  const { link, queue } = join();
  for (let piece = 0; piece < 10; piece++) request(queue, piece, 0, piece === 9 ? 3 : 4);
  await settle();
  link.check();
  const held = new Set(link.sent.map(({ bytes }) => bytes.buffer));
  const heldBytes = [...held].reduce((sum, memory) => sum + memory.byteLength, 0);
  assert(heldBytes < 2.1 * MIB + 8 * 4 * PIECE_MESSAGE_BYTES, `${heldBytes} bytes held by one peer`);
});

test("UploadQueue waits for room and goes on after a drain", async () => {
  const { join } = lab();
  const { link, queue } = join();
  link.hasRoom = false;
  request(queue, 0);
  await settle();
  assertEquals(link.counts, [16]);
  link.onDrain!();
  assertEquals(link.counts, [16, 16]);
  queue.refuseAll();
  assertEquals(link.rejected.length, 32);
  link.onDrain!();
  assertEquals(link.counts, [16, 16]);
});

test("UploadQueue.cancel() withdraws a request that arrived together with it", async () => {
  const { join } = lab();
  const { link, queue } = join();
  request(queue, 0, 0, 5);
  assert(queue.cancel(0, 2 * BLOCK, BLOCK));
  await settle();
  assertEquals(link.counts, [2, 2]);
  assertEquals(queue.cancel(0, 0, BLOCK), false);
});

test("UploadQueue keeps to the rate limit", async () => {
  const { clock, join, uploaded } = lab({ bytesPerSecond: 20 * BLOCK });
  const { queue } = join();
  request(queue, 0);
  await settle();
  const first = uploaded();
  assert(first > 0 && first <= 6 * BLOCK, `${first} at once`);
  for (let i = 0; i < 20; i++) {
    clock.advance(50);
    await settle();
  }
  const second = uploaded() - first;
  assert(second > 18 * BLOCK && second < 22 * BLOCK, `${second} in a second`);
});

test("UploadQueue refuses what cannot be read and goes on", async () => {
  const { bank, join } = lab();
  const { link, queue } = join();
  bank.refused = true;
  request(queue, 0, 0, 2);
  await settle();
  assertEquals(link.rejected, [`0:0+${BLOCK}`, `0:${BLOCK}+${BLOCK}`]);
  bank.refused = false;
  request(queue, 0, 2, 4);
  await settle();
  link.check();
  assertEquals(link.counts, [2]);
});

test("UploadRun.isLent is true until each link has written what it was lent", () => {
  const run = new UploadRun(0, 0, new Uint8Array(10));
  const [one, two] = [{ writtenBytes: 0 }, { writtenBytes: 0 }];
  assertEquals(run.isLent, false);
  run.lend(one, 100);
  run.lend(two, 50);
  run.lend(one, 200);
  one.writtenBytes = 199;
  two.writtenBytes = 50;
  assertEquals([run.isLentTo(one), run.isLentTo(two), run.isLent], [true, false, true]);
  one.writtenBytes = 200;
  assertEquals(run.isLent, false);
});
