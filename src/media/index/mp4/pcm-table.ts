/** Tables of PCM: a PCM sample is one moment of sound, far too small for an access unit, so each unit holds many. */
import { ColumnBuilder } from "../../column.ts";
import { requirePlausible } from "../../plausible.ts";
import type { SampleTable } from "../../timeline.ts";
import type { IndexWork } from "../work.ts";
import { type Box, child, entriesOf } from "./boxes.ts";
import type { MovieTrack } from "./movie.ts";
import { chunksOf } from "./sample-cursors.ts";
import { requireFewer } from "./sample-table.ts";

/** Moments in an access unit: 21 ms at 48 kHz. */
const MOMENTS_PER_UNIT = 1024;
/** Access units and chunks between two checks of the clock. */
const STRIDE = 4096;

/** The table of a PCM track as `buildTable` gives it. Null when it has no sound or its form is unknown. */
export async function buildPcmTable(
  { sampleTable: stbl, timescale, shiftS, track }: MovieTrack,
  limit: number,
  work: IndexWork,
): Promise<SampleTable | null> {
  const momentBytes = (track.channels ?? 0) * (track.bitDepth ?? 0) / 8;
  const sizes = stbl === null ? null : child(stbl, "stsz");
  if (stbl === null || sizes === null || sizes.start + 12 > sizes.end) return null;
  if (!Number.isInteger(momentBytes) || momentBytes < 1) return null;
  const declared = Math.min(sizes.view.getUint32(sizes.start + 8), Math.floor(work.sizeBytes / momentBytes));
  const perMoment90k = 90_000 * momentUnits(stbl) / timescale;
  requirePlausible(declared * perMoment90k / 90_000, work.sizeBytes);
  const offsets = new ColumnBuilder();
  const unitSizes = new ColumnBuilder();
  const times = new ColumnBuilder();
  let moment = 0;
  let steps = 0;
  chunks: for (const chunk of chunksOf(stbl)) {
    if (steps++ % STRIDE === 0) await work.spend(STRIDE);
    const end = Math.min(declared, moment + chunk.samples);
    for (let { offset } = chunk; moment < end;) {
      if (steps++ % STRIDE === 0) await work.spend(STRIDE);
      const room = Math.floor((work.sizeBytes - offset) / momentBytes);
      const count = Math.min(MOMENTS_PER_UNIT, end - moment, room);
      if (count <= 0) break chunks;
      requireFewer(offsets.length + 1, limit);
      offsets.push(offset);
      unitSizes.push(count * momentBytes);
      times.push(Math.round(moment * perMoment90k + shiftS * 90_000));
      offset += count * momentBytes;
      moment += count;
    }
    if (moment >= declared) break;
  }
  if (offsets.length === 0) return null;
  return {
    count: offsets.length,
    payloadBytes: moment * momentBytes,
    offsets: offsets.finish(),
    sizes: unitSizes.finish(),
    dts90k: times.finish(),
    ptsShift90k: null,
    keyframes: null,
  };
}

/** Track units of a moment: the first duration of `stts`, 1 in every intact file. */
function momentUnits(stbl: Box): number {
  const box = child(stbl, "stts");
  const list = box === null ? { at: 0, count: 0 } : entriesOf(box, 4, 8);
  return list.count === 0 ? 1 : box!.view.getUint32(list.at + 4) || 1;
}
