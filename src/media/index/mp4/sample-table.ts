/**
 * `stbl` to columns: every access unit's place, size, time and kind (14496-12, 8.6–8.7). Times stay whole numbers of the
 * track's own units until the one rounding to 90 kHz, so that nothing drifts over a film.
 */
import { MillraceError } from "../../../errors.ts";
import { ColumnBuilder } from "../../model/column.ts";
import { requirePlausible } from "../../model/plausible.ts";
import type { SampleTable } from "../../model/timeline.ts";
import type { IndexWork } from "../../source/work.ts";
import { type Box, child, entriesOf, versionOf } from "../../../bytes/boxes.ts";
import { followEdits } from "./edit-list.ts";
import type { MovieTrack } from "./movie.ts";
import { ChunkWalk, DecodingClock, leastShift, Shifts, SizeTable } from "./sample-cursors.ts";

/**
 * Most access units of all tracks together; ten hours of video with two audio tracks have 4 million. Usually 10 bytes
 * each.
 */
export const MAX_SAMPLES = 4_000_000;
/** A single access unit beyond this is damage: 8K intra pictures take 10 MB. */
export const MAX_SAMPLE_BYTES = 16 * 1024 * 1024;
/** Two days, longer than any film: beyond it times are checked one by one, 90 kHz. */
const MAX_TICKS = 33 * 24 * 3600 * 90_000;
/** Most consecutive access units whose time does not increase: damaged tables have a few. */
const MAX_STANDING = 8192;
/** Steps between two checks of the clock: half a millisecond or so. */
const STRIDE = 4096;

/**
 * Random access points from `stss`; null when every access unit is one. So they are taken to be if it is empty: which ones
 * are, only the media says, and a film without parameter sets does not play at all. The first one always counts.
 */
function readKeyframes(stbl: Box, count: number, isVideo: boolean): Uint32Array | null {
  const box = child(stbl, "stss");
  if (box === null || !isVideo) return null;
  const list = entriesOf(box, 4, 4);
  if (list.count === 0) return null;
  const keyframes = new Uint32Array(Math.min(list.count + 1, count));
  let used = Math.min(1, count);
  for (let i = 0; i < list.count; i++) {
    const sample = box.view.getUint32(list.at + i * 4) - 1;
    if (sample >= 0 && sample < count && sample > keyframes[used - 1]!) keyframes[used++] = sample;
  }
  return keyframes.slice(0, used);
}

/**
 * The table of `movieTrack`, with times from its edit list, still relative to the movie's zero (may be negative). `limit`
 * bounds its length; access units beyond the end of the source are left out. Null when the track has none. Rejects with
 * `bad_media` if it declares too much or the impossible.
 */
export async function buildTable(movieTrack: MovieTrack, limit: number, work: IndexWork): Promise<SampleTable | null> {
  const { edits } = movieTrack;
  if (edits === null) return await buildWholeTable(movieTrack, limit, work);
  const whole = await buildWholeTable({ ...movieTrack, shiftS: 0 }, limit, work);
  return whole === null ? null : await followEdits(whole, edits, limit, work);
}

async function buildWholeTable(movieTrack: MovieTrack, limit: number, work: IndexWork): Promise<SampleTable | null> {
  const { sampleTable: stbl, timescale, shiftS, track } = movieTrack;
  if (stbl === null) return null;
  const sizes = SizeTable.of(stbl, work.sizeBytes);
  requireFewer(sizes.count, limit);
  const walk = new ChunkWalk(stbl);
  const clock = new DecodingClock(stbl);
  const shifts = Shifts.of(stbl);
  // Negative shifts mean that the decoding times are that much too late: decoding comes first.
  const lag = shifts === null ? 0 : leastShift(stbl, sizes.count);
  const columns = {
    offsets: new ColumnBuilder(),
    sizes: new ColumnBuilder(),
    dts90k: new ColumnBuilder(),
    ptsShift90k: shifts === null ? null : new ColumnBuilder(),
  };
  const perUnit = 90000 / timescale;
  const offset90k = shiftS * 90000;
  let anyShift = false;
  let first90k = 0;
  let last90k = -Infinity;
  let payloadBytes = 0;
  let ranBack = 0;
  let standing = 0;
  let count = 0;
  for (; count < sizes.count; count++) {
    if (count % STRIDE === 0) await work.spend(STRIDE);
    const size = sizes.at(count);
    const offset = walk.next(size);
    if (offset === null || offset + size > work.sizeBytes) break;
    if (size > MAX_SAMPLE_BYTES) throw new MillraceError("bad_media", "an access unit is larger than 16 MiB");
    const units = clock.next();
    const told90k = Math.round((units + lag) * perUnit + offset90k);
    if (told90k <= last90k) {
      ranBack++;
      if (++standing > MAX_STANDING) {
        throw new MillraceError("bad_media", `more than ${MAX_STANDING} access units have the same time`);
      }
    } else standing = 0;
    const dts90k = Math.max(last90k + 1, told90k);
    if (count === 0) first90k = dts90k;
    // Sums beyond 2^53 are no longer exact.
    if (count % STRIDE === 0 || dts90k > MAX_TICKS) requirePlausible((dts90k - first90k) / 90_000, work.sizeBytes);
    if (shifts !== null) {
      const pts90k = Math.round((units + shifts.next()) * perUnit + offset90k);
      const shift = Math.max(0, pts90k - dts90k);
      if (shift !== 0) anyShift = true;
      columns.ptsShift90k!.push(shift);
    }
    columns.offsets.push(offset);
    columns.sizes.push(size);
    columns.dts90k.push(dts90k);
    payloadBytes += size;
    last90k = dts90k;
  }
  if (count === 0) return null;
  return {
    count,
    payloadBytes,
    offsets: columns.offsets.finish(),
    sizes: columns.sizes.finish(),
    dts90k: columns.dts90k.finish(),
    ptsShift90k: anyShift ? columns.ptsShift90k!.finish() : null,
    keyframes: readKeyframes(stbl, count, track.kind === "video"),
    ranBack,
  };
}

/** Throws `bad_media` if a track has more than `limit` access units. */
export function requireFewer(count: number, limit: number): void {
  if (count > limit) throw new MillraceError("bad_media", `the index has more than ${MAX_SAMPLES} access units`);
}

/** True when the index describes more than the file holds, as after an interrupted download. */
export function declaresMore(movieTrack: MovieTrack, table: SampleTable | null): boolean {
  // In PCM and ADPCM one access unit is many samples.
  if (movieTrack.track.codec === "pcm" || movieTrack.track.soundPacket !== undefined) return false;
  const { sampleTable } = movieTrack;
  const box = sampleTable === null ? null : child(sampleTable, "stsz") ?? child(sampleTable, "stz2");
  if (box === null || box.start + 12 > box.end || versionOf(box) !== 0) return false;
  return box.view.getUint32(box.start + 8) > (table?.count ?? 0);
}
