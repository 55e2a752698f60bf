/**
 * Several frames of sound in one PES (ISO/IEC 13818-1, 2.4.3.7: its time is that of the first frame that begins in it).
 * A frame of low-rate sound fills a fraction of a packet: one PES per frame makes 40 kbit/s of stuffing per track.
 */
import type { RunSample } from "../../model/timeline.ts";
import type { ElementaryFormat } from "./elementary/format.ts";
import { Payload } from "./payload.ts";
import type { ProgramStream } from "./program.ts";

/** Most sound in one PES, 90 kHz: 0.3 s, less than half of the decoder's delay. */
const MAX_PACKED_90K = 27_000;
/** Where the sound carries the clock, each PES has a PCR, which is due every 100 ms (2.7.2). */
const MAX_PACKED_WITH_PCR_90K = 9000;
/** Most bytes of frames in one PES: its length field has 16 bits. 0.3 s of 640 kbit/s are 24 KB. */
export const MAX_PACKED_BYTES = 32 * 1024;
/** How far a frame's time may be from where the previous frames put it, 90 kHz: 1.2 ms, as containers round to 1 ms. */
export const ROUNDING_90K = 108;
/** The same after a few frames were further off, 90 kHz: a slot has room for only so many more PES. */
const JITTER_90K = 3600;
/** How often per slot a frame whose time does not follow may begin its own PES; the slot has a packet ready for each. */
export const MAX_BREAKS = 8;

/** What goes into one PES. */
export interface PackedFrames extends RunSample {
  /** Frames in it. Default 1. */
  readonly frames?: number;
}

/** Most sound in one PES of `stream`, 90 kHz. */
export function packed90k(stream: ProgramStream): number {
  return stream.carriesPcr ? MAX_PACKED_WITH_PCR_90K : MAX_PACKED_90K;
}

/** How many PES a slot of `duration90k` needs room for if it holds `units` frames of `stream`. */
export function packedUnits(stream: ProgramStream, units: number, duration90k: number): number {
  const { frame90k } = stream.format;
  // If the container's access units are longer than frames, each gets its own PES.
  if (frame90k === null || units * frame90k < duration90k) return units;
  const frames = Math.max(1, Math.floor(packed90k(stream) / frame90k));
  return Math.min(units, Math.ceil(units / frames) + 1);
}

/** Used within one synchronous call only. */
const payload = new Payload();

/** Puts the frame `data[from, to)` at `out[at]`, as the TS carries it; returns where it ends. */
export function putFrame(
  format: ElementaryFormat,
  out: Uint8Array,
  at: number,
  data: Uint8Array,
  from: number,
  to: number,
): number {
  payload.reset(0);
  format.fill(payload, data, from, to, true);
  const size = payload.sizeBytes;
  payload.take(out, at, size);
  // Don't hold on to the container's bytes until the next frame.
  payload.reset(0);
  return at + size;
}

/** Room that a packer begins with, bytes: 0.3 s of 200 kbit/s. */
const FIRST_ROOM_BYTES = 8 * 1024;

/** A frame that waits; its bytes are with the packer. */
interface WaitingFrame extends Omit<RunSample, "data"> {
  /** Size in the container, bytes. */
  readonly sizeBytes: number;
  /** Where the frame ends in the packer's memory. */
  readonly end: number;
}

/**
 * Frames of one stream in one slot on their way into PES. They are copied as they come, in the form that the TS
 * carries.
 */
export class AudioPacker {
  readonly #stream: ProgramStream;
  readonly #frame90k: number;
  #frames: WaitingFrame[] = [];
  #out = new Uint8Array(FIRST_ROOM_BYTES);
  /** Most bytes that the waiting frames may take. */
  #bytes = 0;
  #heldBytes = 0;
  #breaks = 0;

  /** A packer if frames of `stream` can share a PES; else null. */
  static of(stream: ProgramStream): AudioPacker | null {
    return stream.format.frame90k === null ? null : new AudioPacker(stream, stream.format.frame90k);
  }

  private constructor(stream: ProgramStream, frame90k: number) {
    this.#stream = stream;
    this.#frame90k = frame90k;
  }

  /** The first waiting frame; null when none waits. */
  get first(): Pick<RunSample, "dts90k"> | null {
    return this.#frames[0] ?? null;
  }

  /** How many frames wait. */
  get count(): number {
    return this.#frames.length;
  }

  /** Size of the waiting frames in the container, bytes. */
  get bytes(): number {
    return this.#heldBytes;
  }

  /** Whether `sample` can join the waiting frames; if not, call `close` first. */
  takes(sample: RunSample): boolean {
    const first = this.#frames[0];
    if (first === undefined) return true;
    const count = this.#frames.length;
    if ((count + 1) * this.#frame90k > packed90k(this.#stream)) return false;
    const bytes = this.#stream.format.maxBytes(sample.data.length, true);
    if (this.#bytes + bytes > MAX_PACKED_BYTES) return false;
    const off = Math.abs(sample.pts90k - first.pts90k - count * this.#frame90k);
    if (off <= (this.#breaks < MAX_BREAKS ? ROUNDING_90K : JITTER_90K)) return true;
    this.#breaks++;
    return false;
  }

  /** Takes a frame that `takes` allows. */
  add({ data, ...sample }: RunSample): void {
    const { format } = this.#stream;
    const at = this.#frames.at(-1)?.end ?? 0;
    const most = format.maxBytes(data.length, true);
    if (at + most > this.#out.length) {
      const larger = new Uint8Array(Math.max(at + most, 2 * this.#out.length));
      larger.set(this.#out.subarray(0, at));
      this.#out = larger;
    }
    const end = putFrame(format, this.#out, at, data, 0, data.length);
    this.#frames.push({ ...sample, sizeBytes: data.length, end });
    this.#heldBytes += data.length;
    this.#bytes += most;
  }

  /** The first `count` waiting frames as one sample: its data is the elementary stream as the TS carries it. */
  close(count: number): PackedFrames {
    const { format } = this.#stream;
    const frames = this.#frames.slice(0, count);
    const { track, pts90k, dts90k, keyframe } = frames[0]!;
    const used = frames.at(-1)!.end;
    const data = this.#out.slice(0, used);
    this.#out.copyWithin(0, used, this.#frames.at(-1)!.end);
    for (const { sizeBytes } of frames) {
      this.#heldBytes -= sizeBytes;
      this.#bytes -= format.maxBytes(sizeBytes, true);
    }
    this.#frames = this.#frames.slice(count).map((frame) => ({ ...frame, end: frame.end - used }));
    return { track, pts90k, dts90k, keyframe, data, frames: frames.length };
  }
}
