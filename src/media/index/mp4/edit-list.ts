/** Edit lists (14496-12, 8.6.6): which stretches of a track's media are presented, and when. */
import { MillraceError } from "../../../errors.ts";
import { ColumnBuilder } from "../../model/column.ts";
import type { SampleTable } from "../../model/timeline.ts";
import type { IndexWork } from "../../source/work.ts";
import { type Box, descend, entriesOf, int64, uint64, versionOf } from "../../../bytes/boxes.ts";

/** A stretch of a track's media, seconds on its own clock. */
export interface Edit {
  readonly fromS: number;
  /** Infinity if the list does not say. */
  readonly toS: number;
  /** Added to media times to get presentation times. */
  readonly shiftS: number;
}

/** Edits read; cutting programs make some per cut. */
const MAX_EDITS = 4096;
/** Edits whose shifts differ by at most this, a rounding error, count as one, s. */
const SAME_SHIFT_S = 0.002;
/** An edit may begin or end this much before the access unit it means, 90 kHz: durations are rounded to milliseconds. */
const EDGE_90K = 180;
/** Pictures at the end that may be presented last: codecs reorder sixteen at most. */
const REORDER_SPAN = 64;
/** Access units between two checks of the clock. */
const STRIDE = 4096;

/** The edits of `trak`, adjoining ones merged; empty if all media is presented from 0 on. */
export function readEdits(trak: Box, movieTimescale: number, timescale: number): Edit[] {
  const list = descend(trak, "edts", "elst");
  if (list === null) return [];
  const isLong = versionOf(list) === 1;
  const { at, count } = entriesOf(list, 4, isLong ? 20 : 12);
  const edits: Edit[] = [];
  let timeS = 0;
  for (let i = 0; i < Math.min(count, MAX_EDITS); i++) {
    const entry = at + i * (isLong ? 20 : 12);
    const duration = isLong ? uint64(list.view, entry) : list.view.getUint32(entry);
    const mediaTime = isLong ? int64(list.view, entry + 8) : list.view.getInt32(entry + 4);
    const durationS = movieTimescale > 0 ? duration / movieTimescale : 0;
    if (mediaTime >= 0) {
      const fromS = mediaTime / timescale;
      const toS = durationS === 0 ? Infinity : fromS + durationS;
      const shiftS = timeS - fromS;
      const last = edits[edits.length - 1];
      if (last !== undefined && Math.abs(last.shiftS - shiftS) <= SAME_SHIFT_S) {
        edits[edits.length - 1] = { ...last, toS };
      } else edits.push({ fromS, toS, shiftS });
    }
    timeS += durationS;
  }
  // A delay without media: all media follows it.
  if (edits.length === 0 && timeS > 0) edits.push({ fromS: 0, toS: Infinity, shiftS: timeS });
  return edits;
}

/**
 * `table`, whose times are media times, as presented by the edits. Each edit begins with its first random access point
 * and ends before the first access unit that is presented after it: a decoder can play the rest, and sound and picture
 * stay together. Null when nothing is left.
 */
export async function followEdits(
  table: SampleTable,
  edits: readonly Edit[],
  limit: number,
  work: IndexWork,
): Promise<SampleTable | null> {
  const { count, keyframes, ptsShift90k } = table;
  const columns = {
    offsets: new ColumnBuilder(),
    sizes: new ColumnBuilder(),
    dts90k: new ColumnBuilder(),
    ptsShift90k: new ColumnBuilder(),
  };
  const starts: number[] = [];
  let payloadBytes = 0;
  let last90k = -Infinity;
  for (const { fromS, toS, shiftS } of edits) {
    const [from90k, to90k, shift90k] = [
      fromS * 90_000 - EDGE_90K,
      toS * 90_000 - EDGE_90K,
      Math.round(shiftS * 90_000),
    ];
    const pts90k = (i: number) => table.dts90k.at(i) + (ptsShift90k?.at(i) ?? 0);
    const places = keyframes?.length ?? count;
    let place = 0;
    for (; place < places && pts90k(keyframes?.[place] ?? place) < from90k; place++) {
      if (place % STRIDE === 0) await work.spend(STRIDE);
    }
    if (place === places) continue;
    const start90k = pts90k(keyframes?.[place] ?? place);
    for (let i = keyframes?.[place] ?? place; i < count; i++) {
      if (i % STRIDE === 0) await work.spend(STRIDE);
      const presented90k = pts90k(i);
      if (presented90k >= to90k) break;
      // Pictures presented before the random access point need the media that was cut away.
      if (presented90k < start90k) continue;
      if (columns.offsets.length === limit) {
        throw new MillraceError("bad_media", "the edits of the file present too many access units");
      }
      if (keyframes !== null && keyframes[place] === i) {
        starts.push(columns.offsets.length);
        place++;
      }
      last90k = Math.max(last90k + 1, table.dts90k.at(i) + shift90k);
      columns.dts90k.push(last90k);
      columns.ptsShift90k.push(Math.max(0, presented90k + shift90k - last90k));
      columns.offsets.push(table.offsets.at(i));
      columns.sizes.push(table.sizes.at(i));
      payloadBytes += table.sizes.at(i);
    }
  }
  if (columns.offsets.length === 0) return null;
  return {
    count: columns.offsets.length,
    payloadBytes,
    offsets: columns.offsets.finish(),
    sizes: columns.sizes.finish(),
    dts90k: columns.dts90k.finish(),
    ptsShift90k: ptsShift90k === null ? null : columns.ptsShift90k.finish(),
    keyframes: keyframes === null ? null : Uint32Array.from(starts),
    ranBack: table.ranBack ?? 0,
  };
}

/**
 * Sound that an edit leaves out at the beginning, and media at the end, up to this much are no trim, 90 kHz (0.5 s): the
 * delay of a coder, and lengths that were rounded or taken from another track.
 */
const UNTRIMMED_90K = 45_000;

/**
 * `table`, whose times are those of presentation, without what its only edit leaves out; `table` itself if that is next to
 * nothing. Pictures begin with the last random access point that is not after the cut: later ones would be lost otherwise.
 */
export async function trimToEdit(
  table: SampleTable,
  { fromS, toS, shiftS }: Edit,
  limit: number,
  work: IndexWork,
): Promise<SampleTable | null> {
  const { count, keyframes, ptsShift90k } = table;
  const pts90k = (i: number) => table.dts90k.at(i) + (ptsShift90k?.at(i) ?? 0);
  const [from90k, to90k] = [(fromS + shiftS) * 90_000, (toS + shiftS) * 90_000];
  let start90k = pts90k(0);
  if (keyframes !== null) {
    for (let place = 0; place < keyframes.length; place++) {
      if (place % STRIDE === 0) await work.spend(STRIDE);
      const point90k = pts90k(keyframes[place]!);
      if (point90k > from90k + EDGE_90K) break;
      start90k = point90k;
    }
  } else if (from90k - start90k > UNTRIMMED_90K) start90k = from90k;
  let latest90k = -Infinity;
  for (let i = Math.max(0, count - REORDER_SPAN); i < count; i++) latest90k = Math.max(latest90k, pts90k(i));
  const endsEarly = latest90k - to90k > UNTRIMMED_90K;
  if (start90k <= pts90k(0) && !endsEarly) return table;
  let end90k = Infinity;
  latest90k = -Infinity;
  for (let i = 0; i < count && endsEarly; i++) {
    if (i % STRIDE === 0) await work.spend(STRIDE);
    latest90k = Math.max(latest90k, pts90k(i));
    // A picture after the cut may be needed for those before it that are decoded later.
    if (pts90k(i) < to90k - EDGE_90K) end90k = latest90k + 2 * EDGE_90K;
  }
  const edit = { fromS: start90k / 90_000, toS: end90k / 90_000, shiftS: 0 };
  return await followEdits(table, [edit], limit, work);
}

/** How long before its cut `table` begins, ms. */
export function earlyByMs(table: SampleTable, { fromS, shiftS }: Edit): number {
  return (fromS + shiftS) * 1000 - (table.dts90k.at(0) + (table.ptsShift90k?.at(0) ?? 0)) / 90;
}

/** Where the last access unit of `table` ends, 90 kHz. */
export function endOf({ count, dts90k, ptsShift90k }: SampleTable): number {
  const lastDuration = count > 1 ? dts90k.at(count - 1) - dts90k.at(count - 2) : 0;
  return dts90k.at(count - 1) + (ptsShift90k?.at(count - 1) ?? 0) + lastDuration;
}
