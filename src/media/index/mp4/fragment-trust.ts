/**
 * Checks whether the index of a fragmented file is true. Programs cut, join and edit files and leave the index as it was;
 * some muxers index one track only. A wrong index would silently lose media, so its end is checked: errors on the way add
 * up there.
 */
import type { IndexWork } from "../../source/work.ts";
import type { FragmentPoint } from "./fragment-index.ts";
import { readFragment } from "./fragment.ts";
import type { HeaderReader, TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Boxes from the last entry to the end of what the index covers: tracks in turns, each with its data. */
const MAX_BOXES = 64;
/** How far the time of an entry may be from that of its fragment, s: edits and reordering. */
const TIME_SLACK_S = 2;
/** Boxes that may stand before a fragment and belong to it. */
const LEADS: ReadonlySet<string> = new Set(["styp", "sidx", "emsg", "prft", "free", "skip", "uuid", "mdat"]);
/** Boxes that begin another part of a file, or end this one. */
const BORDERS: ReadonlySet<string> = new Set(["ftyp", "moov", "mfra"]);

/** Whether `points`, which cover the file up to the end of the last one, can be followed. Reads the last fragments' headers. */
export async function isTrustworthy(
  points: readonly FragmentPoint[],
  work: IndexWork,
  reader: HeaderReader,
  movie: Movie,
): Promise<boolean> {
  const last = points[points.length - 1];
  if (last === undefined) return false;
  let fragment: TopLevelBox | null = null;
  let offset = last.offset;
  for (let i = 0; offset < last.end; i++) {
    const box = i < MAX_BOXES ? await reader.boxAt(offset) : null;
    if (box === null || BORDERS.has(box.type)) return false;
    if (box.type === "moof") fragment ??= box;
    else if (!LEADS.has(box.type)) return false;
    offset = box.end;
  }
  if (offset !== last.end || fragment === null) return false;
  const next = await reader.boxAt(offset);
  // The index covers only part of the file, such as one before each fragment.
  if (next !== null && (next.type === "moof" || next.type === "sidx" || next.type === "styp")) return false;
  const samples = readFragment(await reader.load(fragment), fragment.offset, movie, work.sizeBytes);
  await work.spend(samples.length);
  return samples.every(({ track, dtsUnits }, i) => {
    if (dtsUnits === null || (i > 0 && samples[i - 1]!.track === track)) return true;
    const { timescale, shiftS } = movie.tracks[track]!;
    return Math.abs(dtsUnits / timescale - last.timeS) <= TIME_SLACK_S + Math.abs(shiftS);
  });
}
