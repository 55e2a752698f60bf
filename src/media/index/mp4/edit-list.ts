/** Edit lists (14496-12, 8.6.6): which stretches of a track's media are presented, and when. */
import { MillraceError } from "../../../errors.ts";
import { ColumnBuilder } from "../../column.ts";
import type { SampleTable } from "../../timeline.ts";
import type { IndexWork } from "../work.ts";
import { type Box, descend, entriesOf, int64, uint64, versionOf } from "./boxes.ts";

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
