/** Disk caches for tests, with files in memory and a fake clock. */
import { assertEquals } from "@std/assert";
import { createDiskCache } from "../../src/storage/disk-cache.ts";
import type { PieceStore } from "../../src/storage/piece-store.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MemoryFiles } from "./memory-files.ts";
import { type Sample, silent } from "./support.ts";

/** Disk caches on an in-memory file system. */
export function make(limitBytes = 0) {
  const clock = new FakeClock();
  const files = new MemoryFiles(clock);
  const open = (on = files) =>
    createDiskCache({ files: on, directory: "/cache", limitBytes, clock, log: silent, windowBytes: 65_536 });
  return { clock, files, open };
}

/** Puts the given pieces, by default all. */
export async function fill(store: PieceStore, torrent: Sample, pieces?: number[]): Promise<void> {
  const all = pieces ?? Array.from({ length: torrent.layout.pieceCount }, (_, i) => i);
  await Promise.all(all.map((piece) => store.put(piece, torrent.piece(piece))));
}

/** The pieces that are present; each is read whole and in part. */
export async function check(store: PieceStore, torrent: Sample): Promise<number[]> {
  const good: number[] = [];
  for (let piece = 0; piece < torrent.layout.pieceCount; piece++) {
    if (!store.have.has(piece)) continue;
    const expected = torrent.piece(piece);
    assertEquals(await store.read(piece, 0, expected.length), expected, `piece ${piece}`);
    assertEquals(await store.read(piece, 7, 100), expected.slice(7, 107), `part of piece ${piece}`);
    good.push(piece);
  }
  return good;
}
