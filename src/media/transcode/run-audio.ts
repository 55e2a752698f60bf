/** Makes the AAC or AC-3 of one run of one track: always the same frames, whichever run is made first. */
import type { ByteSource } from "../../bytes/source.ts";
import type { StreamedTimeline } from "../model/timeline.ts";
import { frameTicks, LOOKAHEAD_FRAMES, makeWholeFrames, PREROLL_FRAMES, REACH_90K } from "./frame-job.ts";
import { Kept } from "./kept.ts";
import { type MatroskaAudio, opusPreSkip, type TimedPacket, writeMatroska } from "./matroska-audio.ts";
import { type AudioEncoder, type AudioTarget, MADE_RATE, type MadeChannels, TARGETS } from "../model/audio-target.ts";

/** Most bytes of packets per run: 20 s of eight channels of PCM. The rest is left out, because memory holds all of them twice: as packets and as a file. */
const MAX_INPUT_BYTES = 24 * 1024 * 1024;
/** Most packets per run: 40 s of TrueHD, which has 1200 per second. */
const MAX_INPUT_PACKETS = 50_000;
/** Times further than this from an even spacing are not just rounded, 90 kHz: 3 ms. */
const MAX_ROUNDING_90K = 270;
/** A packet longer than this may be cut short at the end of the file, 90 kHz (0.25 s): those of True Audio last 1 s. */
const LONG_PACKET_90K = 22_500;
/** Longer ones are gaps, 90 kHz (2 s). */
const MAX_PACKET_90K = 180_000;
/** Fewest packets from which an even spacing is inferred. */
const LEAST_EVEN_PACKETS = 8;

/** A frame with its time. */
export interface MadeFrame {
  readonly pts90k: number;
  readonly data: Uint8Array;
  /** Silence in place of sound that could not be decoded. */
  readonly isSilence: boolean;
}

/** The last packets of a run. */
interface Tail {
  readonly packets: readonly TimedPacket[];
  /** Up to where the sound of the run can be decoded without what follows; null when it has none. */
  readonly soundTo90k: number | null;
}

/** What the sound of a track is made from. */
export interface RunAudioParts {
  /** Index into `MediaIndex.tracks`. */
  readonly track: number;
  readonly audio: MatroskaAudio;
  readonly target: AudioTarget;
  readonly channels: MadeChannels;
  readonly timeline: StreamedTimeline;
  readonly encoder: AudioEncoder;
  /** Most frames of a run. */
  readonly maxFrames: (run: number) => number;
}

/** Makes the AAC or AC-3 of one track. Kept results only save work. */
export class RunAudio {
  readonly #parts: RunAudioParts;
  readonly #shift90k: number;
  readonly #frame90k: number;
  readonly #tails = new Kept<Tail>();
  readonly #frames = new Kept<readonly MadeFrame[]>();

  constructor(parts: RunAudioParts) {
    this.#parts = parts;
    this.#shift90k = opusPreSkip(parts.audio) * 90_000 / MADE_RATE;
    this.#frame90k = frameTicks(parts.target);
  }

  /**
   * Frames of `run`, in order. Frame k covers the samples from 1024 k (1536 k) of the file's timeline at 48 kHz. A run's frames
   * begin where those of the previous run ended and stop shortly before its last packet, or, where packets are long, before
   * that one's end; those of the last run reach the end.
   */
  async framesOf(run: number, source: ByteSource, signal: AbortSignal): Promise<readonly MadeFrame[]> {
    const kept = this.#frames.get(run);
    if (kept !== undefined) return kept;
    const before = run === 0 ? { packets: [], soundTo90k: null } : await this.#tailOf(run - 1, source, signal);
    const own = await this.#packetsOf(run, source, signal);
    const frames = own.length === 0 ? [] : await this.#encode(run, before, own, signal);
    this.#frames.set(run, frames, frames.reduce((sum, frame) => sum + frame.data.length + 64, 64));
    return frames;
  }

  /**
   * Whether the encoder can decode the track, as the first of the first `runs` runs that have sound show. True if none of
   * them has.
   */
  async isDecodable(runs: number, source: ByteSource, signal: AbortSignal): Promise<boolean> {
    let hasSound = false;
    for (let run = 0; run < Math.min(runs, this.#parts.timeline.runs.length); run++) {
      const frames = await this.framesOf(run, source, signal);
      if (frames.some(({ isSilence }) => !isSilence)) return true;
      hasSound ||= frames.length > 0;
    }
    return !hasSound;
  }

  async #packetsOf(run: number, source: ByteSource, signal: AbortSignal): Promise<TimedPacket[]> {
    const { timeline, track } = this.#parts;
    const packets: TimedPacket[] = [];
    let bytes = 0;
    for await (const batch of timeline.readRun(run, new Set([track]), source, signal)) {
      for (const { pts90k, data } of batch) {
        bytes += data.length;
        if (bytes > MAX_INPUT_BYTES || packets.length >= MAX_INPUT_PACKETS) continue;
        // A copy: `data` is a view of everything that was read with it, the picture included, and tails are kept.
        packets.push({ time90k: pts90k - this.#shift90k, data: data.slice() });
      }
    }
    const tail = this.#endOf(packets);
    this.#tails.set(run, tail, tail.packets.reduce((sum, packet) => sum + packet.data.length + 64, 64));
    return packets;
  }

  #endOf(packets: readonly TimedPacket[]): Tail {
    const last = packets.at(-1);
    if (last === undefined) return { packets: [], soundTo90k: null };
    const tail90k = (LOOKAHEAD_FRAMES + PREROLL_FRAMES) * this.#frame90k + REACH_90K;
    const from = packets.findIndex(({ time90k }) => time90k >= last.time90k - tail90k);
    return { packets: packets.slice(from), soundTo90k: last.time90k + wholeAlone90k(packets) };
  }

  async #tailOf(run: number, source: ByteSource, signal: AbortSignal): Promise<Tail> {
    return this.#tails.get(run) ?? this.#endOf(await this.#packetsOf(run, source, signal));
  }

  async #encode(run: number, before: Tail, own: readonly TimedPacket[], signal: AbortSignal): Promise<MadeFrame[]> {
    const { encoder, channels, audio, timeline, maxFrames, target } = this.#parts;
    const frame90k = this.#frame90k;
    const lookahead90k = LOOKAHEAD_FRAMES * frame90k;
    const packets = evenTimes([...before.packets, ...own]);
    const last = own.at(-1)!.time90k;
    const isLast = run === timeline.runs.length - 1;
    const lastDuration = own.length > 1 ? last - own.at(-2)!.time90k : 0;
    const { startPts90k, durationPts90k } = timeline.runs[run]!;
    // Where packets are long, the last one is rarely full.
    const most90k = lastDuration > LONG_PACKET_90K ? startPts90k + durationPts90k : Infinity;
    const soundTo90k = last + wholeAlone90k(own);
    const end = Math.ceil((isLast ? Math.min(last + lastDuration, most90k) : soundTo90k - lookahead90k) / frame90k);
    const start = Math.max(
      0,
      end - maxFrames(run),
      before.soundTo90k === null
        ? Math.floor(own[0]!.time90k / frame90k)
        : Math.ceil((before.soundTo90k - lookahead90k) / frame90k),
    );
    if (start >= end) return [];
    const { frames, silent } = await makeWholeFrames(
      encoder,
      {
        container: "matroska",
        target,
        channels,
        bitsPerSecond: TARGETS[target].bitsPerSecond[channels],
        from: start,
        to: end,
        earliest: before.soundTo90k === null ? start : 0,
        maxFrames: maxFrames(run),
        input: (origin90k) =>
          writeMatroska(
            audio,
            packets.filter(({ time90k }) => time90k >= origin90k)
              .map(({ time90k, data }) => ({ time90k: time90k - origin90k, data })),
          ),
      },
      isLast,
      signal,
    );
    const heard = frames.length - silent;
    return frames.map((data, i) => ({ pts90k: (start + i) * frame90k, data: data.slice(), isSilence: i >= heard }));
  }
}

/**
 * Duration of the last of `packets`, 90 kHz, if packets are so long that waiting for the next one would make the sound late.
 * Only lossless codecs have such packets, and they decode each by itself. 0 for others.
 */
function wholeAlone90k(packets: readonly TimedPacket[]): number {
  const [last, before] = [packets.at(-1), packets.at(-2)];
  const duration90k = last === undefined || before === undefined ? 0 : last.time90k - before.time90k;
  return duration90k > LONG_PACKET_90K && duration90k <= MAX_PACKET_90K ? duration90k : 0;
}

/** Undoes the rounding of times to milliseconds if packets are evenly spaced, by fitting a line through all times. */
function evenTimes(packets: readonly TimedPacket[]): readonly TimedPacket[] {
  const count = packets.length;
  if (count < LEAST_EVEN_PACKETS) return packets;
  const meanIndex = (count - 1) / 2;
  const meanTime = packets.reduce((sum, { time90k }) => sum + time90k, 0) / count;
  let across = 0;
  let square = 0;
  for (const [i, { time90k }] of packets.entries()) {
    across += (i - meanIndex) * (time90k - meanTime);
    square += (i - meanIndex) ** 2;
  }
  const slope = across / square;
  const even = packets.map(({ data }, i) => ({ time90k: meanTime + (i - meanIndex) * slope, data }));
  return even.every(({ time90k }, i) => Math.abs(time90k - packets[i]!.time90k) <= MAX_ROUNDING_90K) ? even : packets;
}
