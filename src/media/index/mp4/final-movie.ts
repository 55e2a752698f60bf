/**
 * The movie box that some recorders append to the fragments when they stop (hybrid MP4): it describes the whole file; the
 * one at the front describes nothing, or only the beginning.
 */
import type { IndexWork } from "../../source/work.ts";
import type { HeaderReader, TopLevelBox } from "./locate.ts";

/** Bytes at the end to search for the last fragment or a movie box. */
const LEAST_TAIL_BYTES = 256 * 1024;
const MOST_TAIL_BYTES = 1024 * 1024;
/** Bytes to search if neither is there although fragments are smaller: the movie box of a day. */
const MOVIE_TAIL_BYTES = 16 * 1024 * 1024;
/** "moov", and the last letter of "moof". */
const MOOV = [0x6d, 0x6f, 0x6f, 0x76];
const MOOF_END = 0x66;
/** Bytes between two checks of the clock. */
const STRIDE = 65_536;
/** Most boxes after the movie box: metadata, padding. */
const MAX_BOXES = 8;
/** Places with that name to try. */
const MAX_CANDIDATES = 64;

/**
 * The movie box after `from` that leads to the end of the file; null when there is none. `fragmentBytes`: approximate
 * size of a fragment with its data.
 */
export async function findFinalMovie(
  work: IndexWork,
  reader: HeaderReader,
  from: number,
  fragmentBytes: number,
): Promise<TopLevelBox | null> {
  const nearBytes = Math.max(LEAST_TAIL_BYTES, Math.min(MOST_TAIL_BYTES, 2 * fragmentBytes));
  const near = await search(work, reader, from, nearBytes);
  if (near.movie !== null || near.hasFragments || nearBytes < 2 * fragmentBytes) return near.movie;
  return (await search(work, reader, from, MOVIE_TAIL_BYTES)).movie;
}

async function search(work: IndexWork, reader: HeaderReader, from: number, bytes: number) {
  const start = Math.max(from, work.sizeBytes - bytes);
  const tail = await work.read(start, work.sizeBytes - start, { signal: work.signal });
  let hasFragments = false;
  for (let at = tail.length - 8, tried = 0; at >= 0 && tried < MAX_CANDIDATES; at--) {
    if (at % STRIDE === 0) await work.spend(1);
    if (tail[at + 4] !== MOOV[0] || tail[at + 5] !== MOOV[1] || tail[at + 6] !== MOOV[2]) continue;
    if (tail[at + 7] === MOOF_END) hasFragments = true;
    if (tail[at + 7] !== MOOV[3]) continue;
    tried++;
    const movie = await leadsToEnd(reader, start + at, work.sizeBytes);
    if (movie !== null) return { movie, hasFragments };
  }
  return { movie: null, hasFragments };
}

async function leadsToEnd(reader: HeaderReader, offset: number, endBytes: number): Promise<TopLevelBox | null> {
  const movie = await reader.boxAt(offset);
  let box = movie;
  for (let i = 0; box !== null && i < MAX_BOXES; i++) {
    if (box.end === endBytes) return movie;
    box = await reader.boxAt(box.end);
  }
  return null;
}
