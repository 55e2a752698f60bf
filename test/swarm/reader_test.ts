/** Reads of a torrent's file, with a store in the test's hands. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import type { Allocate } from "../../src/bytes/source.ts";
import { type Deferred, deferred } from "../../src/bytes/deferred.ts";
import { MillraceError } from "../../src/errors.ts";
import { type ReaderHost, TorrentReader } from "../../src/swarm/reading/reader.ts";
import type { ReaderDemand } from "../../src/swarm/scheduler/types.ts";
import { SharedReads } from "../../src/swarm/reading/shared-reads.ts";

const PIECE = 1000;
const bytes = Uint8Array.from({ length: 10 * PIECE }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
const signal = new AbortController().signal;

/** A reader of ten pieces on disk. Reads of the store wait until the test settles them. */
function make() {
  const asked: { piece: number; done: Deferred<void> }[] = [];
  const demands: [position: number, waitingEnd: number][] = [];
  const aheads: (number | null)[] = [];
  const host = {
    transfer: {
      metainfo: { pieceLengthBytes: PIECE },
      bank: {
        have: { has: () => true },
        peek: () => null,
        async read(piece: number, offset: number, length: number, allocate?: Allocate) {
          const done = deferred<void>();
          asked.push({ piece, done });
          await done.promise;
          const into = allocate?.(length) ?? new Uint8Array(length);
          into.set(bytes.subarray(piece * PIECE + offset, piece * PIECE + offset + length));
          return into;
        },
      },
      scheduler: {
        setReader: (_: number, { position, waitingEnd, readAheadBytes }: ReaderDemand) => {
          demands.push([position, waitingEnd]);
          aheads.push(readAheadBytes);
        },
        removeReader() {},
      },
      kick() {},
    },
    sharedReads: new SharedReads(),
    now: () => 0,
    stallWithoutPeers: () => false,
    readAheadRoom: () => 5000,
    closed() {},
  } as unknown as ReaderHost;
  const options = { handle: 1, fileIndex: 0, fileOffset: 0, sizeBytes: bytes.length, readAheadBytes: null, yieldMs: 0 };
  return { reader: new TorrentReader(host, options), asked, demands, aheads };
}

test("TorrentReader.setReadAhead() is obeyed at once, as far as the cache has room", async () => {
  const { reader, asked, aheads } = make();
  assertEquals(reader.setReadAhead(3000), 3000);
  // Before its first read it is nowhere.
  assertEquals(aheads, []);
  const reading = reader.read(0, 1, { signal });
  asked[0]!.done.resolve();
  await reading;
  assertEquals(reader.setReadAhead(9000), 5000);
  assertEquals(aheads, [3000, 5000]);
});

test("TorrentReader.read() reads the pieces on disk side by side and only tells where it is when it has them", async () => {
  const { reader, asked, demands } = make();
  const reading = reader.read(900, 1300, { signal });
  assertEquals(asked.map(({ piece }) => piece), [0, 1, 2]);
  assertEquals(demands, []);
  for (const { done } of asked.reverse()) done.resolve();
  assertEquals(await reading, bytes.slice(900, 2200));
  assertEquals(demands, [[2200, 2200]]);
});

test("TorrentReader.read() reads many pieces one after the other", async () => {
  const { reader, asked } = make();
  const reading = reader.read(0, 5 * PIECE, { signal });
  for (let piece = 0; piece < 5; piece++) {
    while (asked.length === 0) await Promise.resolve();
    const { piece: now, done } = asked.shift()!;
    assertEquals(now, piece);
    done.resolve();
  }
  assertEquals(await reading, bytes.slice(0, 5 * PIECE));
});

test("TorrentReader.read() goes through the pieces again when one of them cannot be read", async () => {
  const { reader, asked, demands } = make();
  const reading = reader.read(900, 200, { signal });
  const [first, second] = asked.splice(0);
  second!.done.reject(new MillraceError("not_found", "the piece is gone"));
  first!.done.resolve();
  for (let piece = 0; piece < 2; piece++) {
    while (asked.length === 0) await Promise.resolve();
    asked.shift()!.done.resolve();
  }
  assertEquals(await reading, bytes.slice(900, 1100));
  assertEquals(demands[0], [900, 1100]);
});
