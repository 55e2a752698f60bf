/** Finds when a fragmented movie without an index ends, from the last fragments at the end of the file. */
import type { IndexWork } from "../../source/work.ts";
import { readFragment } from "./fragment.ts";
import type { HeaderReader } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Most bytes fetched from the end of the file: two pieces of a usual torrent. */
const MAX_TAIL_BYTES = 1024 * 1024;
/** "moof". */
const MOOF = [0x6d, 0x6f, 0x6f, 0x66];
/** Places with that name to try: chance puts one into every four gigabytes, and tracks may alternate. */
const MAX_CANDIDATES = 64;
/** Boxes between a fragment and the next one, or the end: its data, an index, padding. */
const MAX_BOXES = 8;

/**
 * Presentation end of the track that lasts longest, seconds on the file's own clock; null when the last fragments have no
 * time or are not within the last `tailBytes` (at most 1 MiB).
 */
export async function lastFragmentEndS(
  work: IndexWork,
  reader: HeaderReader,
  movie: Movie,
  tailBytes: number,
): Promise<number | null> {
  const { sizeBytes, signal } = work;
  const length = Math.min(sizeBytes, Math.max(4096, Math.min(tailBytes, MAX_TAIL_BYTES)));
  const start = sizeBytes - length;
  const tail = await work.read(start, length, { signal });
  const missing = new Set(movie.tracks.keys());
  // Each fragment must lead to the next and the last one to the end: the name alone could be chance, or planted.
  const known = new Set([sizeBytes]);
  let endS: number | null = null;
  for (let at = length - 8, tried = 0; at >= 0 && missing.size > 0 && tried < MAX_CANDIDATES; at--) {
    if (!MOOF.every((byte, i) => tail[at + 4 + i] === byte)) continue;
    tried++;
    const fragment = await fragmentBefore(reader, start + at, known);
    if (fragment === null) continue;
    known.add(start + at);
    const samples = readFragment(await reader.load(fragment), fragment.offset, movie, sizeBytes);
    await work.spend(samples.length);
    for (const sample of samples) {
      missing.delete(sample.track);
      if (sample.dtsUnits === null) continue;
      const { timescale, shiftS } = movie.tracks[sample.track]!;
      const end = (sample.dtsUnits + sample.shiftUnits + sample.durationUnits) / timescale + shiftS;
      endS = Math.max(endS ?? end, end);
    }
  }
  return endS;
}

/** The fragment at `offset` if its boxes lead to one of the places `known`; else null. */
async function fragmentBefore(reader: HeaderReader, offset: number, known: ReadonlySet<number>) {
  const fragment = await reader.boxAt(offset);
  let box = fragment;
  for (let i = 0; box !== null && i < MAX_BOXES; i++) {
    if (known.has(box.end)) return fragment;
    box = await reader.boxAt(box.end);
  }
  return null;
}
