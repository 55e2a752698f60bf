/**
 * `stbl` to columns: every access unit's place, size, time and kind (14496-12, 8.6–8.7). Times stay whole numbers of the
 * track's own units until the one rounding to 90 kHz, so that nothing drifts over a film.
 */
import { MillraceError } from "../../../errors.ts";
import type { SampleTable } from "../../timeline.ts";
import { type Box, child, entriesOf, uint64, versionOf } from "./boxes.ts";
import type { MovieTrack } from "./movie.ts";

/** Access units of all tracks together; ten hours of video with two audio tracks have 4 million. 20 bytes each. */
export const MAX_SAMPLES = 4_000_000;
/** A single access unit beyond this is damage: 8K intra pictures take 10 MB. */
export const MAX_SAMPLE_BYTES = 32 * 1024 * 1024;

/** Sizes from `stsz` or `stz2`, at most `limit`; a declared uniform size is bounded by `uniformLimit`. */
function readSizes(stbl: Box, limit: number, uniformLimit: number): Uint32Array {
  const plain = child(stbl, "stsz");
  if (plain !== null && plain.start + 12 <= plain.end) {
    const uniform = plain.view.getUint32(plain.start + 4);
    const declared = plain.view.getUint32(plain.start + 8);
    if (uniform > 0) {
      const count = Math.min(declared, Math.floor(uniformLimit / uniform));
      checkCount(count, limit);
      return new Uint32Array(count).fill(uniform);
    }
    const { at, count } = entriesOf(plain, 8, 4);
    checkCount(count, limit);
    const sizes = new Uint32Array(count);
    for (let i = 0; i < count; i++) sizes[i] = plain.view.getUint32(at + i * 4);
    return sizes;
  }
  const compact = child(stbl, "stz2");
  if (compact === null || compact.start + 12 > compact.end) return new Uint32Array(0);
  const bits = compact.view.getUint8(compact.start + 7);
  if (bits !== 4 && bits !== 8 && bits !== 16) return new Uint32Array(0);
  const at = compact.start + 12;
  const room = Math.floor(((compact.end - at) * 8) / bits);
  const count = Math.min(compact.view.getUint32(compact.start + 8), room);
  checkCount(count, limit);
  const sizes = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    if (bits === 16) sizes[i] = compact.view.getUint16(at + i * 2);
    else if (bits === 8) sizes[i] = compact.view.getUint8(at + i);
    else sizes[i] = (compact.view.getUint8(at + (i >> 1)) >> (i % 2 === 0 ? 4 : 0)) & 15;
  }
  return sizes;
}

function checkCount(count: number, limit: number): void {
  if (count > limit) throw new MillraceError("bad_media", `the index has more than ${MAX_SAMPLES} access units`);
}

/** Byte positions from `stsc` and `stco`/`co64`; answers how many access units have one. */
function readOffsets(stbl: Box, sizes: Uint32Array, offsets: Float64Array): number {
  const map = child(stbl, "stsc");
  const large = child(stbl, "co64");
  const chunks = large ?? child(stbl, "stco");
  if (map === null || chunks === null) return 0;
  const chunkBytes = large !== null ? 8 : 4;
  const chunkList = entriesOf(chunks, 4, chunkBytes);
  const runs = entriesOf(map, 4, 12);
  let sample = 0;
  for (let run = 0; run < runs.count && sample < sizes.length; run++) {
    const entry = runs.at + run * 12;
    const first = map.view.getUint32(entry);
    const perChunk = map.view.getUint32(entry + 4);
    const next = run + 1 < runs.count ? map.view.getUint32(entry + 12) : chunkList.count + 1;
    // Empty or backward runs place nothing, and walking their chunks could take for ever.
    if (first === 0 || next < first) return sample;
    if (perChunk === 0) continue;
    for (let chunk = first; chunk < next && chunk <= chunkList.count && sample < sizes.length; chunk++) {
      const place = chunkList.at + (chunk - 1) * chunkBytes;
      let offset = large !== null ? uint64(chunks.view, place) : chunks.view.getUint32(place);
      const end = Math.min(sizes.length, sample + perChunk);
      for (; sample < end; sample++) {
        offsets[sample] = offset;
        offset += sizes[sample]!;
      }
    }
  }
  return sample;
}

/** Decoding times in track units from `stts`, into `times`; the last duration goes on where the box is too short. */
function readDecodingTimes(stbl: Box, times: Float64Array): void {
  const box = child(stbl, "stts");
  const list = box === null ? { at: 0, count: 0 } : entriesOf(box, 4, 8);
  let time = 0;
  let sample = 0;
  let delta = 0;
  for (let i = 0; i < list.count && sample < times.length; i++) {
    const count = box!.view.getUint32(list.at + i * 8);
    delta = box!.view.getUint32(list.at + i * 8 + 4);
    // Some writers put small negative numbers here; time never runs back.
    if (delta >= 0x80000000) delta = 0;
    const end = Math.min(times.length, sample + count);
    for (; sample < end; sample++) {
      times[sample] = time;
      time += delta;
    }
  }
  for (; sample < times.length; sample++) {
    times[sample] = time;
    time += delta;
  }
}

/** Presentation minus decoding time in track units from `ctts` (both versions read as signed); null when there is none. */
function readShifts(stbl: Box, count: number): Int32Array | null {
  const box = child(stbl, "ctts");
  if (box === null) return null;
  const shifts = new Int32Array(count);
  const list = entriesOf(box, 4, 8);
  let sample = 0;
  for (let i = 0; i < list.count && sample < count; i++) {
    const end = Math.min(count, sample + box.view.getUint32(list.at + i * 8));
    shifts.fill(box.view.getInt32(list.at + i * 8 + 4), sample, end);
    sample = end;
  }
  return shifts;
}

/** Random access points from `stss`; null when each access unit is one. */
function readKeyframes(stbl: Box, count: number, isVideo: boolean): Uint32Array | null {
  const box = child(stbl, "stss");
  if (box === null || !isVideo) return null;
  const list = entriesOf(box, 4, 4);
  const keyframes = new Uint32Array(list.count);
  let used = 0;
  for (let i = 0; i < list.count; i++) {
    const sample = box.view.getUint32(list.at + i * 4) - 1;
    if (sample >= 0 && sample < count && (used === 0 || sample > keyframes[used - 1]!)) keyframes[used++] = sample;
  }
  return keyframes.slice(0, used);
}

/**
 * The table of `movieTrack`, with times from its edit list, still relative to the movie's zero (may be negative).
 * `limit` bounds its length; access units beyond the end of the source are left out. Null when the track has none.
 */
export function buildTable(movieTrack: MovieTrack, sourceBytes: number, limit: number): SampleTable | null {
  const { sampleTable: stbl, timescale, shiftS, track } = movieTrack;
  if (stbl === null) return null;
  const allSizes = readSizes(stbl, limit, sourceBytes);
  const allOffsets = new Float64Array(allSizes.length);
  const placed = readOffsets(stbl, allSizes, allOffsets);
  let count = 0;
  while (count < placed && allOffsets[count]! + allSizes[count]! <= sourceBytes) {
    if (allSizes[count]! > MAX_SAMPLE_BYTES) {
      throw new MillraceError("bad_media", "an access unit is larger than 32 MiB");
    }
    count++;
  }
  if (count === 0) return null;
  const dts90k = new Float64Array(count);
  readDecodingTimes(stbl, dts90k);
  const shifts = readShifts(stbl, count);
  // Shifts below zero mean that the decoding times are late by as much: decoding comes first.
  const lag = shifts === null ? 0 : shifts.reduce((least, shift) => Math.min(least, shift), 0);
  const perUnit = 90000 / timescale;
  const offset90k = shiftS * 90000;
  let anyShift = false;
  let last = -Infinity;
  for (let i = 0; i < count; i++) {
    const units = dts90k[i]!;
    const dts = Math.max(last, Math.round((units + lag) * perUnit + offset90k));
    if (shifts !== null) {
      const pts = Math.round((units + shifts[i]!) * perUnit + offset90k);
      shifts[i] = Math.max(0, pts - dts);
      if (shifts[i] !== 0) anyShift = true;
    }
    last = dts90k[i] = dts;
  }
  return {
    count,
    offsets: count === allOffsets.length ? allOffsets : allOffsets.slice(0, count),
    sizes: count === allSizes.length ? allSizes : allSizes.slice(0, count),
    dts90k,
    ptsShift90k: anyShift ? shifts : null,
    keyframes: readKeyframes(stbl, count, track.kind === "video"),
  };
}

/** True when the index says more than the file holds, as with a download that stopped short. */
export function declaresMore(movieTrack: MovieTrack, table: SampleTable | null): boolean {
  // There an access unit is many samples.
  if (movieTrack.track.codec === "pcm") return false;
  const box = movieTrack.sampleTable === null ? null : child(movieTrack.sampleTable, "stsz");
  if (box === null || box.start + 12 > box.end || versionOf(box) !== 0) return false;
  return box.view.getUint32(box.start + 8) > (table?.count ?? 0);
}
