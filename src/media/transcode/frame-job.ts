/**
 * Makes frames on the grid of a file's timeline: frame k covers the samples from 1024 k (1536 k) on at 48 kHz, whichever piece
 * of the file is converted first. All converted sound is made here; what differs is where its input comes from.
 */
import { hasCode } from "../../errors.ts";
import { ac3Frames, adtsFrames } from "./made-frames.ts";
import { writeMatroska } from "./matroska-audio.ts";
import {
  type AudioEncoder,
  type AudioTarget,
  type EncodeJob,
  MADE_RATE,
  type MadeChannels,
  TARGETS,
} from "../model/audio-target.ts";

/** The encoder looks three frames ahead: the sound of a job must go on for this many frames after the last one wanted. */
export const LOOKAHEAD_FRAMES = 4;
/** Frames that are encoded before the first and thrown away: windows overlap, and rate control needs to settle. */
export const PREROLL_FRAMES = 4;
/**
 * Sound that is decoded before that of whole frames, 90 kHz: bit reservoirs and overlapping windows reach back 0.25 s at
 * most.
 */
export const REACH_90K = 27_000;
/** Most frames per run: 5 minutes. A longer run is silent after that, but a film has a keyframe every few seconds. */
export const MAX_RUN_FRAMES = 15_000;
/** In the file for the encoder, the first sample wanted is at this time, 90 kHz, so that no time is negative. */
const LEAD_90K = 90_000;
/** Frames by which an encoder may exceed what was asked for: those that it holds back, and the rest of its input. */
const SPARE_FRAMES = 16;
/** Most bytes per job: `MAX_RUN_FRAMES` at twice the bit rate. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Duration of a frame of `target`, 90 kHz. */
export function frameTicks(target: AudioTarget): number {
  return TARGETS[target].frameSamples * 90_000 / MADE_RATE;
}

/** Largest frame of `channels` with its header, bytes. */
function maxFrameBytes(target: AudioTarget, channels: MadeChannels): number {
  return channels * TARGETS[target].maxChannelBytes + 7;
}

function meanFrameBytes(target: AudioTarget, channels: MadeChannels): number {
  return TARGETS[target].bitsPerSecond[channels] / 8 * TARGETS[target].frameSamples / MADE_RATE;
}

/** Payload that a slot reserves for `frames` frames, bytes: one and a half times the bit rate for AAC, exactly the bit rate for AC-3. */
export function foreseenBytes(frames: number, target: AudioTarget, channels: MadeChannels): number {
  const slack = target === "aac" ? 1.5 : 1;
  return Math.ceil(frames * meanFrameBytes(target, channels) * slack) + 4 * maxFrameBytes(target, channels);
}

/** The frames `[from, to)` to be made. */
export interface FrameJob extends Pick<EncodeJob, "container" | "target" | "channels" | "bitsPerSecond"> {
  readonly from: number;
  readonly to: number;
  /** The first frame that there is sound for: at most `from`. */
  readonly earliest: number;
  /** Most frames that the input has sound for. */
  readonly maxFrames: number;
  /** The sound, with times counted from `origin90k` of the timeline. */
  input(origin90k: number): Uint8Array;
}

/**
 * Makes the frames of `job`, in order; fewer when the sound ends earlier. `onSilence` as in `EncodeJob`. Rejects as `encoder`.
 */
export async function makeFrames(
  encoder: AudioEncoder,
  job: FrameJob,
  signal: AbortSignal,
  onSilence?: EncodeJob["onSilence"],
): Promise<Uint8Array[]> {
  const { container, target, channels, bitsPerSecond, from, to } = job;
  const first = Math.max(job.earliest, from - PREROLL_FRAMES);
  const mostFrames = job.maxFrames + PREROLL_FRAMES + SPARE_FRAMES;
  const output = await encoder.encode({
    input: job.input(first * frameTicks(target) - LEAD_90K),
    container,
    target,
    firstSample: LEAD_90K * MADE_RATE / 90_000,
    channels,
    bitsPerSecond,
    maxOutputBytes: Math.min(MAX_OUTPUT_BYTES, mostFrames * maxFrameBytes(target, channels) * 2),
    ...(onSilence && { onSilence }),
  }, signal);
  const made = target === "aac" ? adtsFrames(output) : ac3Frames(output, meanFrameBytes(target, channels));
  // The encoder's first frame only primes the decoder.
  return made.slice(from - first + 1, to - first + 1);
}

/** Frames that an encoder writes of silence before one of them is taken: the first ones differ. */
const SETTLING_FRAMES = 6;

/** One frame of silence as `encoder` makes it. Rejects as `encoder`. */
async function silentFrame(
  encoder: AudioEncoder,
  { target, channels, bitsPerSecond }: Pick<FrameJob, "target" | "channels" | "bitsPerSecond">,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const frames = 2 * SETTLING_FRAMES;
  const pcm = new Uint8Array(frames * TARGETS[target].frameSamples * channels * 2);
  const audio = { codecId: "A_PCM/INT/LIT", codecPrivate: null, sampleRate: MADE_RATE, channels, bitDepth: 16 };
  const made = await makeFrames(encoder, {
    container: "matroska",
    target,
    channels,
    bitsPerSecond,
    from: 0,
    to: frames,
    earliest: 0,
    maxFrames: frames,
    input: (origin90k) => writeMatroska(audio, [{ time90k: -origin90k, data: pcm }]),
  }, signal);
  return made[Math.min(SETTLING_FRAMES, made.length - 1)] ?? new Uint8Array(0);
}

/** The frames of a job, none missing. */
export interface WholeFrames {
  readonly frames: readonly Uint8Array[];
  /** How many of them are silence: those that the encoder made none of, at the end, and those between others. */
  readonly silent: number;
}

/**
 * As `makeFrames`, with silence in place of what is missing: damaged sound must not end the film around it. With
 * `mayEndEarly`, where `to` is an estimate, frames that lack after others are no damage and are not made up. Rejects only if
 * the encoder itself fails.
 */
export async function makeWholeFrames(
  encoder: AudioEncoder,
  job: FrameJob,
  mayEndEarly: boolean,
  signal: AbortSignal,
): Promise<WholeFrames> {
  let made: readonly Uint8Array[] = [];
  let silentSamples = 0;
  try {
    made = await makeFrames(encoder, job, signal, (samples) => silentSamples += samples);
  } catch (error) {
    if (!hasCode(error, "bad_media") && !hasCode(error, "too_large")) throw error;
  }
  const missing = job.to - job.from - made.length;
  // Sound around the frames is decoded with them, and may be what failed.
  const inside = Math.min(made.length, Math.floor(silentSamples / TARGETS[job.target].frameSamples));
  if (missing <= 0 || (mayEndEarly && made.length > 0)) return { frames: made, silent: inside };
  const silence = await silentFrame(encoder, job, signal);
  return { frames: [...made, ...Array.from({ length: missing }, () => silence)], silent: inside + missing };
}
