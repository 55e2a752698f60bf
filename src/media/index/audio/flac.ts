/**
 * FLAC: frames state their time, so any run is found by reading a few places of the file. Frames do not state their
 * length: one ends where the next begins.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { FaultLedger } from "../../model/faults.ts";
import { MillraceError } from "../../../errors.ts";
import type { MediaIndex, MediaOpenOptions, RunSample } from "../../model/timeline.ts";
import { ByteWindow } from "../../source/byte-window.ts";
import { type FlacInfo, readStreamInfo, STREAMINFO_BYTES } from "./flac-frame.ts";
import { findFrame, type FlacPlace, walkFlac } from "./flac-walk.ts";
import { foreignRuns, mostSamples, ticksAt } from "./runs.ts";

/** First read, bytes: the header blocks without pictures. */
const HEAD_BYTES = 16 * 1024;
/** Most metadata blocks. */
const MAX_BLOCKS = 1000;
/** Largest seek table that is used, bytes: a day with one point per second is 1.5 MB. */
const MAX_SEEK_TABLE_BYTES = 2 * 1024 * 1024;
const SEEK_POINT_BYTES = 18;
const STREAMINFO = 0;
const SEEK_TABLE = 3;
/** How much of the end to search for the last frame if the number of samples is not given, bytes. */
const TAIL_BYTES = 256 * 1024;
/** Walking from a place this long before a run is cheaper than searching for a nearer one, s. */
const NEAR_S = 2;
/** Most places read to find one run: at least every other one halves the distance. */
const MAX_LOOKS = 24;
/** How far before its estimated place to start searching for a frame, bytes. */
const LEAD_BYTES = 32 * 1024;

/** Head of the file. */
interface FlacHead {
  readonly info: FlacInfo;
  /** Only `fLaC` and STREAMINFO, as in Matroska. */
  readonly codecPrivate: Uint8Array;
  readonly firstFrameAt: number;
  /** From the seek table, ascending in place and time. */
  readonly places: readonly FlacPlace[];
}

async function readHead(source: ByteSource, position: number, signal: AbortSignal): Promise<FlacHead> {
  const bad = (what: string) => new MillraceError("bad_media", `the FLAC file ${what}`);
  const window = new ByteWindow(source, position, { chunkBytes: HEAD_BYTES, joinedBytes: HEAD_BYTES, signal });
  if (!await window.need(4)) throw bad("is cut off");
  window.at += 4;
  let info: FlacInfo | null = null;
  let codecPrivate = new Uint8Array(0);
  let table: Uint8Array | null = null;
  for (let blocks = 0, isLast = false; !isLast; blocks++) {
    if (blocks >= MAX_BLOCKS || !await window.need(4)) throw bad("has no end of its header");
    const { bytes, at } = window;
    isLast = (bytes[at]! & 0x80) !== 0;
    const type = bytes[at]! & 0x7f;
    const size = (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    window.at += 4;
    const body = window.position;
    if (type === STREAMINFO && info === null && await window.need(STREAMINFO_BYTES)) {
      const data = window.bytes.slice(window.at, window.at + STREAMINFO_BYTES);
      info = readStreamInfo(data);
      codecPrivate = new Uint8Array([0x66, 0x4c, 0x61, 0x43, 0x80, 0, 0, STREAMINFO_BYTES, ...data]);
    } else if (type === SEEK_TABLE && size <= MAX_SEEK_TABLE_BYTES && await window.need(size)) {
      table = window.bytes.slice(window.at, window.at + size);
    }
    window.seek(body + size);
  }
  if (info === null) throw bad("does not say what it holds (STREAMINFO)");
  const firstFrameAt = window.position;
  if (firstFrameAt >= source.sizeBytes) throw bad("has no sound");
  return { info, codecPrivate, firstFrameAt, places: table === null ? [] : seekPlaces(table, firstFrameAt, source) };
}

/** Section 8.5; points out of order or outside the file are left out, as are placeholders. */
function seekPlaces(table: Uint8Array, firstFrameAt: number, source: ByteSource): FlacPlace[] {
  const view = new DataView(table.buffer, table.byteOffset, table.byteLength);
  const places: FlacPlace[] = [];
  for (let at = 0; at + SEEK_POINT_BYTES <= table.length; at += SEEK_POINT_BYTES) {
    const sample = view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
    const position = firstFrameAt + view.getUint32(at + 8) * 2 ** 32 + view.getUint32(at + 12);
    const last = places.at(-1);
    if (position >= source.sizeBytes || (last && (sample <= last.sample || position <= last.position))) continue;
    places.push({ position, sample });
  }
  return places;
}

/** Opens a FLAC file whose `fLaC` stands at `position`. Rejects with `bad_media`, or as the source does. */
export async function openFlac(
  source: ByteSource,
  position: number,
  options: Pick<MediaOpenOptions, "signal" | "segmentTargetMs">,
): Promise<MediaIndex> {
  const head = await readHead(source, position, options.signal);
  const { info, codecPrivate, firstFrameAt } = head;
  const { sampleRate, channels, bitDepth } = info;
  const told = info.totalSamples || await lastSample(source, firstFrameAt, info, options.signal);
  const totalSamples = Math.min(told, mostSamples(source.sizeBytes - firstFrameAt, sampleRate));
  if (totalSamples === 0) throw new MillraceError("bad_media", "the FLAC file has no sound");
  const { runSamples, count, runs } = foreignRuns(totalSamples, sampleRate, source.sizeBytes, options.segmentTargetMs);
  const bounds: Bounds = {
    low: { position: firstFrameAt, sample: 0 },
    high: { position: source.sizeBytes, sample: totalSamples },
  };
  let { places } = head;
  const placeBefore = async (sample: number, from: ByteSource, signal: AbortSignal): Promise<FlacPlace> => {
    const told = await placeByTable(sample, bounds, places, info, from, signal);
    if (told !== null) return told;
    places = [];
    return await narrow(sample, bounds, info, from, signal);
  };
  // Places where runs begin, learned by reading those before: at most one per run.
  const starts = new Map<number, FlacPlace>([[0, bounds.low]]);
  const faults = new FaultLedger();
  return {
    container: "other",
    tracks: [{
      id: 1,
      kind: "audio",
      codec: "flac",
      codecId: "FLAC",
      language: null,
      isDefault: true,
      codecPrivate,
      width: null,
      height: null,
      sampleRate,
      channels,
      bitDepth,
    }],
    durationMs: totalSamples * 1000 / sampleRate,
    sourceBytes: source.sizeBytes,
    warnings: [],
    timeline: {
      kind: "streamed",
      runs,
      faults,
      async *readRun(run, _wanted, from, signal, _lender, held) {
        const first = run * runSamples;
        const end = run === count - 1 ? Infinity : first + runSamples;
        const start = starts.get(run) ?? await placeBefore(first, from, signal);
        for await (const batch of walkFlac(from, start, info, signal, (at) => faults.gap(at))) {
          const out: RunSample[] = [];
          for (const { sample, position, data } of batch) {
            if (sample < first) continue;
            if (sample >= end) {
              starts.set(run + 1, { position, sample });
              break;
            }
            const pts90k = ticksAt(sample, sampleRate);
            held?.(0, 1);
            out.push({ track: 0, pts90k, dts90k: pts90k, keyframe: true, data });
          }
          if (out.length > 0) yield out;
          if (batch.at(-1)!.sample >= end) return;
        }
      },
    },
  };
}

/** A stretch between two places. */
interface Bounds {
  readonly low: FlacPlace;
  /** Its sample is that of the first frame after the position, or of a later one. */
  readonly high: FlacPlace;
}

/**
 * As `narrow`, between the points of a seek table; null when that is empty, or wrong: files that were cut keep the table
 * of the whole.
 */
async function placeByTable(
  sample: number,
  bounds: Bounds,
  places: readonly FlacPlace[],
  info: FlacInfo,
  source: ByteSource,
  signal: AbortSignal,
): Promise<FlacPlace | null> {
  let { low, high } = bounds;
  for (const place of places) {
    if (place.sample <= sample) low = place;
    else if (place.sample < high.sample) high = place;
  }
  if (low === bounds.low && high === bounds.high) return null;
  if (low !== bounds.low) {
    const there = await findFrame(source, low.position, low.position + 1, info, signal);
    if (there?.sample !== low.sample) return null;
  }
  const found = await narrow(sample, { low, high }, info, source, signal);
  // No frame near was found before the upper point, so the point lies too early.
  return high !== bounds.high && sample - found.sample > NEAR_S * info.sampleRate ? null : found;
}

/** A frame at `sample` or not long before it, found by interpolation between places that are known. */
async function narrow(
  sample: number,
  { low, high }: Bounds,
  info: FlacInfo,
  source: ByteSource,
  signal: AbortSignal,
): Promise<FlacPlace> {
  const near = NEAR_S * info.sampleRate;
  for (
    let look = 0;
    look < MAX_LOOKS && sample - low.sample > near && high.position - low.position > LEAD_BYTES;
    look++
  ) {
    const span = high.position - low.position;
    // If the sound differs from what came before, halving is faster.
    const part = look % 2 === 0 ? (sample - low.sample) / (high.sample - low.sample) : 0.5;
    const guess = Math.floor(low.position + Math.max(0, Math.min(span - LEAD_BYTES, span * part - LEAD_BYTES)));
    if (guess <= low.position) break;
    const found = await findFrame(source, guess, high.position, info, signal);
    if (found === null || found.sample >= high.sample || found.sample <= low.sample) {
      high = { position: guess, sample: high.sample };
    } else if (found.sample <= sample) low = found;
    else high = { position: guess, sample: found.sample };
  }
  return low;
}

/** Samples up to the end of the last frame; 0 when none is found. */
async function lastSample(
  source: ByteSource,
  firstFrameAt: number,
  info: FlacInfo,
  signal: AbortSignal,
): Promise<number> {
  const position = Math.max(firstFrameAt, source.sizeBytes - TAIL_BYTES);
  const place = await findFrame(source, position, source.sizeBytes, info, signal);
  let end = 0;
  if (place === null) return 0;
  for await (const batch of walkFlac(source, place, info, signal)) {
    for (const { sample, samples } of batch) end = sample + samples;
  }
  return end;
}
