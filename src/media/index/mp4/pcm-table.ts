/** Tables of PCM: a sample there is one moment of sound, far too small to be an access unit, so many go into one. */
import { MillraceError } from "../../../errors.ts";
import type { SampleTable } from "../../timeline.ts";
import { type Box, child, entriesOf, uint64 } from "./boxes.ts";
import type { MovieTrack } from "./movie.ts";
import { MAX_SAMPLES } from "./sample-table.ts";

/** Moments in an access unit: 21 ms at 48 kHz. */
const MOMENTS_PER_UNIT = 1024;

/** The table of a PCM track as `buildTable` gives it. Null when it has no sound or its form is unknown. */
export function buildPcmTable(
  { sampleTable: stbl, timescale, shiftS, track }: MovieTrack,
  sourceBytes: number,
  limit: number,
): SampleTable | null {
  const momentBytes = (track.channels ?? 0) * (track.bitDepth ?? 0) / 8;
  const sizes = stbl === null ? null : child(stbl, "stsz");
  if (stbl === null || sizes === null || sizes.start + 12 > sizes.end) return null;
  if (!Number.isInteger(momentBytes) || momentBytes < 1) return null;
  const declared = sizes.view.getUint32(sizes.start + 8);
  const perMoment90k = 90_000 * momentUnits(stbl) / timescale;
  const offsets: number[] = [];
  const counts: number[] = [];
  const times: number[] = [];
  let moment = 0;
  for (const chunk of chunksOf(stbl)) {
    const end = Math.min(declared, moment + chunk.moments);
    for (let offset = chunk.offset; moment < end; moment += counts.at(-1)!) {
      const room = Math.floor((sourceBytes - offset) / momentBytes);
      const count = Math.min(MOMENTS_PER_UNIT, end - moment, room);
      if (count <= 0) return finish();
      if (offsets.length >= limit) {
        throw new MillraceError("bad_media", `the index has more than ${MAX_SAMPLES} access units`);
      }
      offsets.push(offset);
      counts.push(count);
      times.push(Math.round(moment * perMoment90k + shiftS * 90_000));
      offset += count * momentBytes;
    }
    if (moment >= declared) break;
  }
  return finish();

  function finish(): SampleTable | null {
    if (offsets.length === 0) return null;
    return {
      count: offsets.length,
      offsets: Float64Array.from(offsets),
      sizes: Uint32Array.from(counts, (count) => count * momentBytes),
      dts90k: Float64Array.from(times),
      ptsShift90k: null,
      keyframes: null,
    };
  }
}

/** Track units of a moment: the first duration of `stts`, 1 in every file that is in order. */
function momentUnits(stbl: Box): number {
  const box = child(stbl, "stts");
  const list = box === null ? { at: 0, count: 0 } : entriesOf(box, 4, 8);
  return list.count === 0 ? 1 : box!.view.getUint32(list.at + 4) || 1;
}

/** Chunks with their place and the moments in them (14496-12, 8.7.4 and 8.7.5). */
function* chunksOf(stbl: Box): Generator<{ offset: number; moments: number }> {
  const map = child(stbl, "stsc");
  const large = child(stbl, "co64");
  const chunks = large ?? child(stbl, "stco");
  if (map === null || chunks === null) return;
  const width = large !== null ? 8 : 4;
  const list = entriesOf(chunks, 4, width);
  const runs = entriesOf(map, 4, 12);
  for (let run = 0; run < runs.count; run++) {
    const entry = runs.at + run * 12;
    const first = map.view.getUint32(entry);
    const moments = map.view.getUint32(entry + 4);
    const next = run + 1 < runs.count ? map.view.getUint32(entry + 12) : list.count + 1;
    // Backward runs place nothing, and walking their chunks again could take for ever.
    if (first === 0 || next < first) return;
    if (moments === 0) continue;
    for (let chunk = first; chunk < next && chunk <= list.count; chunk++) {
      const place = list.at + (chunk - 1) * width;
      yield { offset: large !== null ? uint64(chunks.view, place) : chunks.view.getUint32(place), moments };
    }
  }
}
