/**
 * MP3, MP2, AAC, AC-3 and E-AC-3 files: bare frames, perhaps with tags before and after. In place of an index there is the first frame
 * (Xing, Info, VBRI), computation (one bit rate), or reading the whole (short files); else only an estimate.
 */
import { ac3Frame, isEac3 } from "../../../bytes/ac3-frames.ts";
import { adtsFrame, type AudioFrame, type AudioFrameSyntax, mpegAudioFrame } from "../../../bytes/audio-frames.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import type {
  MediaIndex,
  MediaOpenOptions,
  SampleTable,
  StreamedTimeline,
  TabledTimeline,
} from "../../model/timeline.ts";
import type { Track } from "../../model/types.ts";
import { ColumnBuilder } from "../../model/column.ts";
import { constantTimeline, meanFrameBytes } from "./constant.ts";
import { countedTimeline } from "./counted.ts";
import { type WalkedFrame, walkFrames } from "./frame-walk.ts";
import { ticksAt } from "./runs.ts";
import { readVbrHeader, type VbrHeader } from "./vbr-header.ts";

/**
 * Files up to this size are read whole, which makes everything exact: they are one or a few pieces of their torrent. ADTS
 * never states its length, and sampling it costs almost as many pieces as a song has.
 */
const WHOLE_BYTES = { mp3: 1024 * 1024, aac: 4 * 1024 * 1024, ac3: 1024 * 1024 };
/** Kinds of frames. */
export type FrameKind = keyof typeof WHOLE_BYTES;
const SYNTAX: Readonly<Record<FrameKind, AudioFrameSyntax>> = { mp3: mpegAudioFrame, aac: adtsFrame, ac3: ac3Frame };
const NAMES: Readonly<Record<FrameKind, string>> = { mp3: "MP3", aac: "AAC", ac3: "AC-3" };
/** Most distance of frames of one bit rate from their computed places, bytes: a frame is padded by a byte, of AC-3 by two. */
const GRID_SLACK_BYTES: Readonly<Record<FrameKind, number>> = { mp3: 1.5, aac: 1.5, ac3: 3 };
/** Frames whose bit rate is compared, and bytes read at the end of the file. */
const LOOK_FRAMES = 64;
const TAIL_BYTES = 16 * 1024;
/** Places in the file where the mean size of frames is measured, and bytes read at each. */
const PROBES = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9];
const PROBE_BYTES = 32 * 1024;
/**
 * An estimate is reduced by its standard error, but by no more than this: anything beyond belongs to the last segment,
 * and no segment stays empty.
 */
const MAX_MARGIN = 0.05;
/** A count of frames that would make them shorter or longer on average than this is damaged, bytes. */
const LEAST_FRAME_BYTES = 24;
const MOST_FRAME_BYTES = 2881;

/** Allowance for tags after the last frame (text and a picture): bytes, and a share of the file. */
const MAX_TAGS_BYTES = 256 * 1024;
const MAX_TAGS_PART = 0.02;
/** A file with a smaller part of the bytes that its first frame states is cut off. */
const LEAST_PART = 0.98;
/** What \`stat\` says of a file that was not written or downloaded to its end. */
export const CUT_OFF = "the file is cut off at its end";

/** Options of `openFrames`; `wholeBytes` is for tests. */
export type FrameOptions = Pick<MediaOpenOptions, "signal" | "segmentTargetMs" | "transcode"> & {
  readonly wholeBytes?: number;
};

/** Opens MPEG audio (`mp3`), ADTS (`aac`), AC-3 or E-AC-3 (`ac3`). Rejects with `bad_media` when it has no frames, or as the source does. */
export async function openFrames(
  source: ByteSource,
  kind: FrameKind,
  options: FrameOptions,
): Promise<MediaIndex> {
  const syntax = SYNTAX[kind];
  const isShort = source.sizeBytes <= (options.wholeBytes ?? WHOLE_BYTES[kind]);
  const head = await readFrames(source, syntax, 0, null, LOOK_FRAMES, options.signal);
  const opening = head[0];
  if (opening === undefined) throw new MillraceError("bad_media", `the file has no frames of ${NAMES[kind]}`);
  const told = kind === "mp3" ? readVbrHeader(opening.frame, opening.data) : null;
  const sound = told === null ? head : head.slice(1);
  const first = sound[0];
  if (first === undefined) throw new MillraceError("bad_media", "the file has no sound after its first frame");
  const track = trackOf(kind, first);
  const isCutOff = told?.bytes != null && source.sizeBytes - opening.position < told.bytes * LEAST_PART;
  const cutOff = isCutOff ? [CUT_OFF] : [];
  const base = { container: "other", tracks: [track], sourceBytes: source.sizeBytes, warnings: [] } as const;
  const { sampleRate } = first.frame;
  if (isShort) {
    const { table, samples, gaps } = await tableOf(source, syntax, first, options.signal);
    const timeline: TabledTimeline = { kind: "tabled", tables: [table], gaps };
    return { ...base, durationMs: samples * 1000 / sampleRate, timeline, warnings: cutOff };
  }
  const facts = { syntax, first, sourceBytes: source.sizeBytes, segmentTargetMs: options.segmentTargetMs };
  const answer = (samples: number, timeline: StreamedTimeline, warnings: readonly string[] = []): MediaIndex => ({
    ...base,
    durationMs: samples * 1000 / sampleRate,
    timeline,
    warnings: [...cutOff, ...warnings],
  });
  const constant = await countConstant(source, kind, sound, told, options.signal);
  if (constant !== null) {
    return answer(constant * first.frame.samples, constantTimeline({ ...facts, frames: constant }));
  }
  const counted = told === null ? null : plausibleFrames(told, source.sizeBytes - first.position);
  if (counted !== null) {
    const totalSamples = counted * first.frame.samples;
    return answer(totalSamples, countedTimeline({ ...facts, totalSamples }));
  }
  // AAC transcoded from it would end where the estimate does.
  const isExact = kind !== "aac" && options.transcode?.[kind] === true;
  const totalSamples = isExact
    ? await countSamples(source, syntax, first, options.signal)
    : await estimateSamples(source, syntax, sound, options.signal);
  const warning = "the file has no index: its duration is estimated, and a seek reads what lies before";
  return answer(totalSamples, countedTimeline({ ...facts, totalSamples }), isExact ? [] : [warning]);
}

function codecOf(kind: FrameKind, frame: AudioFrame): Pick<Track, "codec" | "codecId"> {
  switch (kind) {
    case "aac":
      return { codec: "aac", codecId: `ADTS ${frame.kind}` };
    case "mp3":
      return { codec: frame.kind === 3 ? "mp3" : "mp2", codecId: `MPEG audio layer ${frame.kind}` };
    case "ac3":
      return isEac3(frame.kind) ? { codec: "eac3", codecId: "E-AC-3" } : { codec: "ac3", codecId: "AC-3" };
  }
}

function trackOf(kind: FrameKind, { frame }: WalkedFrame): Track {
  return {
    id: 1,
    kind: "audio",
    ...codecOf(kind, frame),
    language: null,
    isDefault: true,
    codecPrivate: null,
    width: null,
    height: null,
    sampleRate: frame.sampleRate,
    channels: frame.channels || null,
    isFramed: kind === "aac",
  };
}

/** The first `limit` frames from `position` on. */
async function readFrames(
  source: ByteSource,
  syntax: AudioFrameSyntax,
  position: number,
  key: number | null,
  limit: number,
  signal: AbortSignal,
  endAt = Infinity,
): Promise<WalkedFrame[]> {
  const frames: WalkedFrame[] = [];
  for await (const batch of walkFrames({ source, syntax, key, position, isSynced: false, signal })) {
    for (const frame of batch) {
      if (frames.length >= limit || frame.position >= endAt) return frames;
      frames.push(frame);
    }
    if (frames.length >= limit) return frames;
  }
  return frames;
}

/** All frames of a short file from its first frame of sound on. Rejects as the source does. */
async function tableOf(source: ByteSource, syntax: AudioFrameSyntax, first: WalkedFrame, signal: AbortSignal) {
  const offsets = new ColumnBuilder();
  const sizes = new ColumnBuilder();
  const dts90k = new ColumnBuilder();
  const { key } = first.frame;
  let samples = 0;
  let payloadBytes = 0;
  const gaps: number[] = [];
  const onGap = (at: number) => void gaps.push(at);
  const walk = walkFrames({ source, syntax, key, position: first.position, isSynced: true, signal, onGap });
  for await (const batch of walk) {
    for (const { position, frame, data } of batch) {
      offsets.push(position);
      sizes.push(data.length);
      dts90k.push(ticksAt(samples, frame.sampleRate));
      samples += frame.samples;
      payloadBytes += data.length;
    }
  }
  const table: SampleTable = {
    count: offsets.length,
    payloadBytes,
    offsets: offsets.finish(),
    sizes: sizes.finish(),
    dts90k: dts90k.finish(),
    ptsShift90k: null,
    keyframes: null,
  };
  return { table, samples, gaps };
}

/**
 * Number of frames if all have one bit rate; else null. If the encoder does not say, the end of the file decides: only
 * with one bit rate does a frame begin at its computed place there.
 */
async function countConstant(
  source: ByteSource,
  kind: FrameKind,
  sound: readonly WalkedFrame[],
  told: VbrHeader | null,
  signal: AbortSignal,
): Promise<number | null> {
  const first = sound[0]!;
  const { bitRate, key } = first.frame;
  if (bitRate === null || (told !== null && !told.isConstant)) return null;
  if (sound.some(({ frame }) => frame.bitRate !== bitRate)) return null;
  const meanBytes = meanFrameBytes(first);
  const place = (position: number) => (position - first.position) / meanBytes;
  if (told?.frames) {
    const fits = Math.round(place(source.sizeBytes));
    const restBytes = (fits - told.frames) * meanBytes;
    // The rest may be tags; if it is larger, files were joined, and the header describes only the first.
    if (restBytes >= 0 && restBytes <= MAX_TAGS_BYTES + source.sizeBytes * MAX_TAGS_PART) return told.frames;
  }
  const tail = await readFrames(source, SYNTAX[kind], source.sizeBytes - TAIL_BYTES, key, Infinity, signal);
  const last = tail.at(-1);
  if (last === undefined || tail.some(({ frame }) => frame.bitRate !== bitRate)) return null;
  const isOnGrid = tail.every(({ position }) => {
    return Math.abs(place(position) - Math.round(place(position))) * meanBytes <= GRID_SLACK_BYTES[kind];
  });
  return isOnGrid ? Math.round(place(last.position)) + 1 : null;
}

/**
 * The number of frames that the first frame gives, fewer if the file was cut off; null if the file cannot have that many
 * or that few, or continues long after them.
 */
function plausibleFrames({ frames, bytes }: VbrHeader, present: number): number | null {
  if (frames === null) return null;
  const part = bytes === null ? 1 : present / bytes;
  if (part > 1 + MAX_TAGS_PART && present - bytes! > MAX_TAGS_BYTES) return null;
  const count = Math.max(1, Math.round(frames * Math.min(1, part)));
  return present / count >= LEAST_FRAME_BYTES && present / count <= MOST_FRAME_BYTES ? count : null;
}

async function estimateSamples(
  source: ByteSource,
  syntax: AudioFrameSyntax,
  sound: readonly WalkedFrame[],
  signal: AbortSignal,
): Promise<number> {
  const first = sound[0]!;
  const bytes = source.sizeBytes - first.position;
  const probes = await Promise.all(PROBES.map((part) => {
    const position = first.position + Math.floor(bytes * part);
    return readFrames(source, syntax, position, first.frame.key, Infinity, signal, position + PROBE_BYTES);
  }));
  const rates = [sound, ...probes].filter((frames) => frames.length > 0).map((frames) => {
    const samples = frames.reduce((sum, { frame }) => sum + frame.samples, 0);
    return samples / frames.reduce((sum, { data }) => sum + data.length, 0);
  });
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / rates.length;
  const margin = Math.min(MAX_MARGIN, Math.sqrt(variance / rates.length) / mean);
  return Math.max(first.frame.samples, Math.floor(bytes * mean * (1 - margin)));
}

async function countSamples(
  source: ByteSource,
  syntax: AudioFrameSyntax,
  { position, frame }: WalkedFrame,
  signal: AbortSignal,
): Promise<number> {
  let samples = 0;
  for await (const batch of walkFrames({ source, syntax, key: frame.key, position, isSynced: true, signal })) {
    for (const { frame } of batch) samples += frame.samples;
  }
  return samples;
}
