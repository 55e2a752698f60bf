/** Makes the AAC of one PID in one run of a transport stream, and puts it into the packets that its sound had. */
import { elementaryFormat } from "../../mux/ts/elementary/carry.ts";
import { Payload } from "../../mux/ts/payload.ts";
import { wrap33 } from "../../../bytes/ts/stamps.ts";
import { aacTrack } from "../../transcode/choice.ts";
import {
  frameTicks,
  LOOKAHEAD_FRAMES,
  makeWholeFrames,
  MAX_RUN_FRAMES,
  PREROLL_FRAMES,
  REACH_90K,
} from "../../transcode/frame-job.ts";
import { type AudioEncoder, MADE_RATE, TARGETS } from "../../model/audio-target.ts";
import { trackOf } from "../stream-types.ts";
import { type Filled, fillPackets, type LaidPes, roomOf } from "./fill.ts";
import { jobInput, type SoundOf } from "./job-input.ts";
import { type AudioPacket, type AudioStretch, type AudioUnit, type Span, spansOf } from "./window.ts";

/** The packets of a run: numbers `[start, end)` in the file. */
export interface PacketSpan {
  readonly start: number;
  readonly end: number;
}

/** What the sound of a PID is made from. */
export interface RunSoundParts {
  readonly sound: SoundOf;
  readonly origin90k: number;
  readonly encoder: AudioEncoder;
}

/** Channels of the AAC: stereo, whatever the source has. */
const CHANNELS = 2;
/** Duration of an AAC frame, 90 kHz. */
const FRAME_90K = frameTicks("aac");
/** Sound needed after and before the run, 90 kHz. */
const AFTER_90K = LOOKAHEAD_FRAMES * FRAME_90K;
const BEFORE_90K = PREROLL_FRAMES * FRAME_90K + REACH_90K;
/** Most spans of sound that are encoded per run, each by a process; a run with more is damaged. */
const MAX_SPANS = 4;
/** Frames are put into one PES up to this size, bytes. */
const MAX_PES_BYTES = 8192;
/** A PES is not ended below this size while more frames come, bytes: silence takes some 13 bytes per frame, too few to align counters with. */
const MIN_PES_BYTES = 128;
/** Cost of a PES: its header and, on average, half a packet, bytes. */
const PES_COST_BYTES = 14 + 92;
const ADTS_HEADER_BYTES = 7;
/** Margin for rate control that misses its target. */
const RATE_MARGIN = 0.9;
/** Lowest bit rate tried, bits/s, and the factor for the next try when the packets had no room. */
const MIN_BITS_PER_SECOND = 24_000;
const NEXT_TRY = 0.7;
const TRIES = 3;
/** Bit rates are multiples of this, bits/s. */
const BITS_STEP = 8000;

/** The frames of a span that belong to the run. */
interface Part {
  readonly span: Span;
  /** The span's units in the run. */
  readonly units: readonly AudioUnit[];
  /** Index of the packet after those of the last unit. */
  readonly end: number;
  /** Frame numbers `[from, to)`: frame k covers the 1024 samples from k × 1024 of the file's timeline. */
  readonly from: number;
  readonly to: number;
  /** The span ends in this run: `to` is an estimate. */
  readonly isEnd: boolean;
}

/** The AAC of a run. */
export interface MadeRun {
  /** The packets that had sound. */
  readonly slots: readonly AudioPacket[];
  /** What takes their place, 188 bytes each. */
  readonly packets: Uint8Array;
  /** Frames of AAC in them. */
  readonly frames: number;
  /** How many of those are silence in place of sound that could not be decoded. */
  readonly silent: number;
}

/** Makes that AAC packet by packet. */
export class RunSound {
  readonly #parts: RunSoundParts;
  readonly #format;

  constructor(parts: RunSoundParts) {
    this.#parts = parts;
    const { map, pid } = parts.sound;
    const stream = map.streams.find((candidate) => candidate.pid === pid)!;
    this.#format = elementaryFormat(aacTrack({ ...trackOf(stream, map.descriptors, true), channels: CHANNELS }))!;
  }

  /** Whether `stretch` lacks sound before or after the run that the run's frames need. */
  lacks(stretch: AudioStretch, place: PacketSpan): { before: boolean; after: boolean } {
    const { units } = stretch;
    const [low, high] = boundsIn(stretch, place);
    const firstIn = units.findIndex(({ packet }) => packet >= low);
    const lastIn = units.findLastIndex(({ packet }) => packet < high);
    if (low === high || firstIn < 0 || lastIn < 0) return { before: false, after: false };
    const spans = spansOf(units);
    const spanOf = (unit: number) => spans.find(({ from, to }) => unit >= from && unit < to)!;
    const head = spanOf(firstIn);
    const tail = spanOf(lastIn);
    return {
      before: head.from === 0 && units[firstIn]!.time90k - units[0]!.time90k < BEFORE_90K,
      after: tail.to === units.length &&
        (lastIn + 1 === units.length || units.at(-1)!.time90k - units[lastIn + 1]!.time90k < AFTER_90K),
    };
  }

  /** Returns the run's packets that had sound, now with AAC. */
  async make(
    stretch: AudioStretch,
    place: PacketSpan,
    signal: AbortSignal,
  ): Promise<MadeRun> {
    const { packets, units } = stretch;
    const [low, high] = boundsIn(stretch, place);
    // From the first PES that starts in this run to the first of the next run: with whole PES the AAC has all the room the sound had.
    const first = units.find(({ packet }) => packet >= low && packet < high)?.packet;
    if (first === undefined) return { slots: [], packets: new Uint8Array(0), frames: 0, silent: 0 };
    const end = units.find(({ packet }) => packet >= high)?.packet ?? packets.length;
    const slots = packets.slice(first, end);
    const nextCounter = end < packets.length ? packets[end]!.bytes[3]! & 15 : null;
    const parts = partsOf(stretch, low, high);
    const frames = parts.reduce((sum, { from, to }) => sum + to - from, 0);
    let filled: Filled = fillPackets(slots, [], nextCounter);
    let silent = 0;
    if (frames > 0) {
      let bitsPerSecond = bitRateFor(slots, parts, frames);
      for (let tries = 0; tries < TRIES; tries++) {
        const list: LaidPes[] = [];
        silent = 0;
        for (const part of parts) {
          const made = await this.#encode(stretch, part, bitsPerSecond, signal);
          silent += made.silent;
          for (const pes of made.list) list.push({ ...pes, begin: pes.begin - first, end: pes.end - first });
        }
        filled = fillPackets(slots, list, nextCounter);
        if (filled.inTime) break;
        bitsPerSecond = Math.max(MIN_BITS_PER_SECOND, stepDown(bitsPerSecond * NEXT_TRY));
      }
    }
    return { slots, packets: filled.packets, frames, silent };
  }

  /** Makes the PES of a part; `begin` and `end` are packet indexes in the stretch. */
  async #encode(
    stretch: AudioStretch,
    part: Part,
    bitsPerSecond: number,
    signal: AbortSignal,
  ): Promise<{ list: readonly LaidPes[]; silent: number }> {
    const { encoder, sound, origin90k } = this.#parts;
    const { frames: made, silent } = await makeWholeFrames(
      encoder,
      {
        container: "mpegts",
        target: "aac",
        channels: CHANNELS,
        bitsPerSecond,
        from: part.from,
        to: part.to,
        earliest: Math.ceil(stretch.units[part.span.from]!.time90k / FRAME_90K),
        // What surrounds the part is converted, too: hardly more than a frame per packet.
        maxFrames: part.to - part.from + stretch.packets.length,
        input: (zero90k) => jobInput(sound, stretch, part.span, zero90k),
      },
      part.isEnd,
      signal,
    );
    const list: LaidPes[] = [];
    let pending: Uint8Array[] = [];
    let bytes = 0;
    let pts90k = 0;
    /** Indexes of the units that hold the first and the newest frame of the PES. */
    let head = 0;
    let unit = 0;
    const frame = new Payload();
    const flush = () => {
      if (pending.length === 0) return;
      const payload = new Uint8Array(bytes);
      let at = 0;
      for (const data of pending) {
        frame.reset(0);
        this.#format.fill(frame, data, 0, data.length, true);
        frame.take(payload, at, frame.sizeBytes);
        at += frame.sizeBytes;
      }
      // The original sound of this time ended where the unit after that of the last frame begins.
      list.push({ begin: part.units[head]!.packet, end: part.units[unit + 1]?.packet ?? part.end, pts90k, payload });
      pending = [];
      bytes = 0;
    };
    for (const [i, data] of made.entries()) {
      const k = part.from + i;
      const isNext = part.units[unit + 1] !== undefined && part.units[unit + 1]!.time90k <= k * FRAME_90K;
      if ((isNext && bytes >= MIN_PES_BYTES) || bytes + data.length > MAX_PES_BYTES) flush();
      while (part.units[unit + 1] !== undefined && part.units[unit + 1]!.time90k <= k * FRAME_90K) unit++;
      if (pending.length === 0) [head, pts90k] = [unit, wrap33(k * FRAME_90K + origin90k)];
      pending.push(data);
      bytes += this.#format.maxBytes(data.length, true);
    }
    flush();
    return { list, silent };
  }
}

/** Indexes in the stretch's packets: of the run's first packet, and of the one after its last. */
function boundsIn({ packets }: AudioStretch, { start, end }: PacketSpan): [number, number] {
  const low = packets.findIndex(({ number }) => number >= start);
  const high = packets.findIndex(({ number }) => number >= end);
  return [low < 0 ? packets.length : low, high < 0 ? packets.length : high];
}

/**
 * The frames of a run, from its first unit to the first unit after the run, or to the end of the sound. Both ends are
 * rounded in the same way, so that the next run continues where this one ends.
 */
function partsOf({ packets, units }: AudioStretch, low: number, high: number): Part[] {
  const parts: Part[] = [];
  let left = MAX_RUN_FRAMES;
  for (const span of spansOf(units)) {
    const all = units.slice(span.from, span.to);
    const inside = all.filter(({ packet }) => packet >= low && packet < high);
    if (inside.length === 0) continue;
    const after = all.find(({ packet }) => packet >= high);
    const last = all.at(-1)!.time90k;
    const lastDuration = all.length > 1 ? last - all.at(-2)!.time90k : 0;
    const from = Math.ceil(inside[0]!.time90k / FRAME_90K);
    const to = Math.min(from + left, Math.ceil((after?.time90k ?? last + lastDuration) / FRAME_90K));
    if (to <= from) continue;
    left -= to - from;
    const next = units[units.indexOf(inside.at(-1)!) + 1];
    parts.push({ span, units: inside, end: next?.packet ?? packets.length, from, to, isEnd: after === undefined });
    if (parts.length === MAX_SPANS) break;
  }
  return parts;
}

const stepDown = (bits: number): number => Math.floor(bits / BITS_STEP) * BITS_STEP;

/** The usual bit rate, or less if the packets have no room for it. */
function bitRateFor(slots: readonly AudioPacket[], parts: readonly Part[], frames: number): number {
  const room = slots.reduce((sum, { bytes }) => sum + roomOf(bytes), 0);
  const pes = parts.reduce((sum, { units, from, to }) => sum + Math.min(units.length, to - from), 0);
  const frameBytes = (room - pes * PES_COST_BYTES) / frames - ADTS_HEADER_BYTES;
  const bits = stepDown(frameBytes * 8 * MADE_RATE / TARGETS.aac.frameSamples * RATE_MARGIN);
  return Math.max(MIN_BITS_PER_SECOND, Math.min(TARGETS.aac.bitsPerSecond[CHANNELS], bits));
}
