/** Where a fragmented movie without an index ends in time: its last fragment, found from the end of the file, tells. */
import type { ByteSource } from "../../../bytes/source.ts";
import { readFragment } from "./fragment.ts";
import type { HeaderReader } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Most bytes of the file's end that are fetched for it: two pieces of a usual torrent. */
const MAX_TAIL_BYTES = 1024 * 1024;
/** "moof". */
const MOOF = [0x6d, 0x6f, 0x6f, 0x66];
/** Boxes walked from a fragment to the end of the file: a few fragments, each with its data. */
const MAX_BOXES = 64;

/**
 * Presentation end of the track that lasts longest, seconds on the file's own clock; null when the last fragment does
 * not tell its time or is not within the last `tailBytes` (at most 1 MiB).
 */
export async function lastFragmentEndS(
  source: ByteSource,
  reader: HeaderReader,
  movie: Movie,
  tailBytes: number,
  signal: AbortSignal,
): Promise<number | null> {
  const length = Math.min(source.sizeBytes, Math.max(4096, Math.min(tailBytes, MAX_TAIL_BYTES)));
  const start = source.sizeBytes - length;
  const tail = await source.read(start, length, { signal });
  for (let at = 0; at + 8 <= length; at++) {
    if (!MOOF.every((byte, i) => tail[at + 4 + i] === byte)) continue;
    const endS = await endOfFragments(reader, movie, start + at, source.sizeBytes);
    if (endS !== null) return endS;
  }
  return null;
}

/** Latest end of the fragments from `from` on; null unless their boxes lead exactly to the end of the file. */
async function endOfFragments(
  reader: HeaderReader,
  movie: Movie,
  from: number,
  sizeBytes: number,
): Promise<number | null> {
  let endS: number | null = null;
  let offset = from;
  for (let i = 0; offset < sizeBytes; i++) {
    const box = i < MAX_BOXES ? await reader.boxAt(offset) : null;
    if (box === null) return null;
    if (box.type === "moof") {
      for (const sample of readFragment(await reader.load(box), box.offset, movie)) {
        if (sample.dtsUnits === null) continue;
        const { timescale, shiftS } = movie.tracks[sample.track]!;
        const end = (sample.dtsUnits + sample.shiftUnits + sample.durationUnits) / timescale + shiftS;
        endS = Math.max(endS ?? end, end);
      }
    }
    offset = box.end;
  }
  return endS;
}
