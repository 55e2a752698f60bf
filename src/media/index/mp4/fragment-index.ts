/** Indexes of fragmented files: `sidx` (14496-12, 8.16.3) at the front, `mfra` (8.8.9) at the end. */
import type { IndexWork } from "../../source/work.ts";
import { type Box, boxesIn, child, readBoxHeader, uint64, versionOf, viewOf } from "../../../bytes/boxes.ts";
import type { HeaderReader, TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** A place where fragments begin. */
export interface FragmentPoint {
  readonly offset: number;
  readonly end: number;
  /** Presentation time of its start in the movie's time before edits, seconds. */
  readonly timeS: number;
  /** Null when the index does not say. */
  readonly durationS: number | null;
}

/** Nested and chained `sidx` boxes read at most. */
const MAX_SIDX_BOXES = 64;
/** Points kept; two per second for a day. */
const MAX_POINTS = 200_000;

interface SidxReference {
  readonly isIndex: boolean;
  readonly sizeBytes: number;
  readonly durationS: number;
  readonly startsWithSap: boolean;
}

interface Sidx {
  readonly trackId: number;
  readonly timeS: number;
  readonly firstOffset: number;
  readonly references: readonly SidxReference[];
}

function readSidx(box: Box): Sidx | null {
  const { view, start, end } = box;
  const isLong = versionOf(box) === 1;
  const fixed = isLong ? 32 : 24;
  if (start + fixed > end) return null;
  const timescale = view.getUint32(start + 8);
  if (timescale === 0) return null;
  const time = isLong ? uint64(view, start + 12) : view.getUint32(start + 12);
  const firstOffset = isLong ? uint64(view, start + 20) : view.getUint32(start + 16);
  const count = Math.min(view.getUint16(start + fixed - 2), Math.floor((end - start - fixed) / 12));
  const references: SidxReference[] = [];
  for (let i = 0; i < count; i++) {
    const at = start + fixed + i * 12;
    const typeAndSize = view.getUint32(at);
    references.push({
      isIndex: typeAndSize >= 0x80000000,
      sizeBytes: typeAndSize & 0x7fffffff,
      durationS: view.getUint32(at + 4) / timescale,
      startsWithSap: view.getUint32(at + 8) >= 0x80000000,
    });
  }
  return { trackId: view.getUint32(start + 4), timeS: time / timescale, firstOffset, references };
}

/**
 * Points from the `sidx` boxes between the movie box and the first fragment, including nested ones. Null when there are
 * none. They may cover only part of the file.
 */
export async function pointsFromSidx(
  reader: HeaderReader,
  from: number,
  movie: Movie,
  sourceBytes: number,
): Promise<FragmentPoint[] | null> {
  const found: { sidx: Sidx; end: number }[] = [];
  for (let offset = from, i = 0; i < MAX_SIDX_BOXES; i++) {
    const box = await reader.boxAt(offset);
    if (box === null || box.type === "moof" || box.type === "mdat") break;
    if (box.type === "sidx") {
      const sidx = readSidx(await reader.load(box));
      if (sidx !== null) found.push({ sidx, end: box.end });
    }
    offset = box.end;
  }
  const video = movie.tracks.find((entry) => entry.track.kind === "video")?.track.id;
  const chosen = found.find((entry) => entry.sidx.trackId === video) ?? found[0];
  if (chosen === undefined) return null;
  const points: FragmentPoint[] = [];
  await expand(reader, chosen.sidx, chosen.end, points, { boxes: MAX_SIDX_BOXES, endBytes: sourceBytes });
  return points.length === 0 ? null : points;
}

async function expand(
  reader: HeaderReader,
  sidx: Sidx,
  end: number,
  points: FragmentPoint[],
  budget: { boxes: number; readonly endBytes: number },
): Promise<void> {
  let offset = end + sidx.firstOffset;
  let timeS = sidx.timeS;
  const anySap = sidx.references.some((reference) => reference.startsWithSap);
  for (const { isIndex, sizeBytes, durationS, startsWithSap } of sidx.references) {
    if (offset >= budget.endBytes) return;
    const stop = Math.min(budget.endBytes, offset + sizeBytes);
    if (isIndex) {
      if (budget.boxes-- <= 0) return;
      const box = await reader.boxAt(offset);
      const inner = box?.type === "sidx" ? readSidx(await reader.load(box)) : null;
      if (box !== null && inner !== null) await expand(reader, inner, box.end, points, budget);
    } else if (anySap && !startsWithSap && points.length > 0) {
      const last = points.pop()!;
      points.push({ ...last, end: stop, durationS: timeS + durationS - last.timeS });
    } else if (points.length < MAX_POINTS) {
      points.push({ offset, end: stop, timeS, durationS });
    }
    offset = stop;
    timeS += durationS;
  }
}

/** Points from the random access box at the end of the file; null when there is none. */
export async function pointsFromMfra(
  work: IndexWork,
  reader: HeaderReader,
  movie: Movie,
): Promise<FragmentPoint[] | null> {
  const { sizeBytes, signal } = work;
  if (sizeBytes < 32) return null;
  // `mfro` is the last box and gives the size of the whole `mfra`.
  const tail = viewOf(await work.read(sizeBytes - 16, 16, { signal }));
  if (readBoxHeader(tail, 0, 16)?.type !== "mfro") return null;
  const start = sizeBytes - tail.getUint32(12);
  if (start < 0) return null;
  const place: TopLevelBox | null = await reader.boxAt(start);
  if (place === null || place.type !== "mfra") return null;
  const mfra = await reader.load(place);
  const video = movie.tracks.find((entry) => entry.track.kind === "video") ?? movie.tracks[0];
  for (const box of boxesIn(mfra.view, mfra.start, mfra.end)) {
    if (box.type !== "tfra" || box.start + 16 > box.end) continue;
    if (box.view.getUint32(box.start + 4) !== video?.track.id) continue;
    return pointsOfTfra(box, video.timescale, start);
  }
  return null;
}

function pointsOfTfra(box: Box, timescale: number, mediaEnd: number): FragmentPoint[] | null {
  const { view, start, end } = box;
  const isLong = versionOf(box) === 1;
  const lengths = view.getUint32(start + 8);
  const entryBytes = (isLong ? 16 : 8) + ((lengths >> 4) & 3) + ((lengths >> 2) & 3) + (lengths & 3) + 3;
  const count = Math.min(view.getUint32(start + 12), Math.floor((end - start - 16) / entryBytes), MAX_POINTS);
  const starts: { offset: number; timeS: number }[] = [];
  for (let i = 0; i < count; i++) {
    const at = start + 16 + i * entryBytes;
    const time = isLong ? uint64(view, at) : view.getUint32(at);
    const offset = isLong ? uint64(view, at + 8) : view.getUint32(at + 4);
    const last = starts[starts.length - 1];
    const timeS = time / timescale;
    if (offset >= mediaEnd || (last !== undefined && (offset <= last.offset || timeS < last.timeS))) continue;
    starts.push({ offset, timeS });
  }
  if (starts.length === 0) return null;
  return starts.map(({ offset, timeS }, i) => {
    const next = starts[i + 1];
    return { offset, end: next?.offset ?? mediaEnd, timeS, durationS: next === undefined ? null : next.timeS - timeS };
  });
}

/** True when `box` is a fragment: used to find one in the middle of a file, where its name alone could be chance. */
export function looksLikeFragment(box: Box): boolean {
  return box.type === "moof" && child(box, "mfhd") !== null;
}
