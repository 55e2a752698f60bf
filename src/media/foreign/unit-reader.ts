/**
 * Extracts the access units from the transport stream that ffmpeg makes for us: each is in its own PES with both its times,
 * and the streams have the PIDs that we chose, so there is no need to read the tables.
 */
import { concatBytes } from "../../bytes/hex.ts";
import { unitsOfByteStream } from "../../bytes/nal-units.ts";
import { MillraceError } from "../../errors.ts";
import {
  hasPayload,
  isRandomAccess,
  PACKET_BYTES,
  payloadOf,
  pidOf,
  readPesHeader,
  startsUnit,
} from "../../bytes/ts/packet.ts";
import { readStamp, stepBetween } from "../../bytes/ts/stamps.ts";

/** PID of the first stream; the others follow. */
export const FIRST_PID = 0x100;
/** Largest access unit, bytes: a picture of 8K at high quality. */
const MAX_UNIT_BYTES = 16 * 1024 * 1024;
/** Where the first slice of a picture is: parts of a packet each, and NAL units. */
const HEAD_PARTS = 64;
const HEAD_UNITS = 32;
/** Presentation times of a stream that are remembered, and places that are tried for a unit without one: pictures are reordered by 16. */
const MAX_PLACES = 32;
/** Most units that wait until earlier ones are complete: seconds of all tracks. */
const MAX_WAITING = 16_384;

/** An access unit. */
export interface ForeignUnit {
  /** Index into the requested streams. */
  readonly stream: number;
  /** Ticks of 90 kHz on the file's own clock, without wrapping. */
  readonly pts90k: number;
  readonly dts90k: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
}

type Times = Pick<ForeignUnit, "pts90k" | "dts90k">;

/** A unit that has begun. */
interface Begun {
  readonly stream: number;
  /** Null: not known yet. */
  times: Times | null;
  readonly keyframe: boolean;
  readonly parts: Uint8Array[];
  sizeBytes: number;
  /** Length, bytes; null: it ends where the next unit of its stream begins. */
  readonly wantedBytes: number | null;
  isComplete: boolean;
}

/** Reads one transport stream from its beginning. Returns units in the order in which they begin. */
export class UnitReader {
  readonly #streams: number;
  readonly #open: (Begun | null)[];
  readonly #waiting: Begun[] = [];
  /** Of each stream: its newest unit that has times in the file, and presentation times of the newest units. */
  readonly #timed: ((Begun & { readonly times: Times }) | null)[];
  readonly #shown90k: number[][];
  readonly #step90k: number[];
  /** How long after its decoding the newest reference picture of H.264 is shown, if others come between; null: not known. */
  readonly #delay90k: (number | null)[];
  readonly #h264: ReadonlySet<number>;
  #untimed = 0;
  #near90k: number;
  #rest: Uint8Array = new Uint8Array(0);

  /** All times must be within 13 hours of `near90k`. `h264`: streams in which it shows whether a picture is a reference. */
  constructor(streams: number, near90k: number, h264: ReadonlySet<number> = new Set()) {
    this.#h264 = h264;
    this.#delay90k = new Array(streams).fill(null);
    this.#streams = streams;
    this.#open = new Array(streams).fill(null);
    this.#timed = new Array(streams).fill(null);
    this.#shown90k = Array.from({ length: streams }, () => []);
    this.#step90k = new Array(streams).fill(0);
    this.#near90k = near90k;
  }

  /** Units without times in the file so far: they got some that fit between the others. */
  get untimed(): number {
    return this.#untimed;
  }

  /** Adds bytes; returns the units that are complete. Throws `bad_media` when one grows too large. */
  push(bytes: Uint8Array): ForeignUnit[] {
    const data = this.#rest.length === 0 ? bytes : joined(this.#rest, bytes);
    let at = 0;
    for (; at + PACKET_BYTES <= data.length; at += PACKET_BYTES) this.#take(data, at);
    this.#rest = data.slice(at);
    return this.#complete();
  }

  /** To be called at the end of the stream; returns the last units. */
  finish(): ForeignUnit[] {
    for (const unit of this.#waiting) unit.isComplete = true;
    for (let stream = 0; stream < this.#streams; stream++) this.#fill(stream, null);
    return this.#complete();
  }

  #take(data: Uint8Array, at: number): void {
    const stream = pidOf(data, at) - FIRST_PID;
    if (stream < 0 || stream >= this.#streams || !hasPayload(data, at)) return;
    let payload = payloadOf(data, at);
    if (startsUnit(data, at)) {
      const before = this.#open[stream];
      if (before) before.isComplete = true;
      this.#open[stream] = null;
      const header = readPesHeader(payload);
      if (header === null) return;
      // Without a time before it nothing says when a unit is decoded.
      if (header.pts90k === null && this.#timed[stream] === null) return;
      const times = header.pts90k === null ? null : this.#timesIn(payload, header.pts90k);
      if (times !== null) this.#fill(stream, times);
      const begun = {
        stream,
        times,
        keyframe: isRandomAccess(data, at),
        parts: [] as Uint8Array[],
        sizeBytes: 0,
        wantedBytes: header.totalBytes === null ? null : header.totalBytes - header.body,
        isComplete: false,
      };
      this.#open[stream] = begun;
      this.#waiting.push(begun);
      if (times !== null) this.#timed[stream] = { ...begun, times };
      payload = payload.subarray(header.body);
    }
    const unit = this.#open[stream];
    if (!unit) return;
    const part = unit.wantedBytes === null ? payload : payload.subarray(0, unit.wantedBytes - unit.sizeBytes);
    unit.parts.push(part.slice());
    unit.sizeBytes += part.length;
    if (unit.sizeBytes > MAX_UNIT_BYTES || this.#waiting.length > MAX_WAITING) {
      throw new MillraceError("bad_media", "the file is damaged: a picture of it has no end");
    }
    if (unit.wantedBytes === null || unit.sizeBytes < unit.wantedBytes) return;
    unit.isComplete = true;
    this.#open[stream] = null;
  }

  #timesIn(payload: Uint8Array, pts: number): Times {
    const hasDts = (payload[7]! & 0x40) !== 0 && payload.length >= 19;
    const pts90k = this.#unwrap(pts);
    const dts90k = hasDts ? this.#unwrap(readStamp(payload, 14)) : pts90k;
    this.#near90k = dts90k;
    return { pts90k, dts90k };
  }

  /**
   * Gives the units of `stream` that wait for times those between the newest one that has them and `next` (null: the end of the
   * file), evenly spread. A reference picture is shown as long after its decoding as the one before it was, others at the first
   * time from then on at which no other picture is.
   */
  #fill(stream: number, next: Times | null): void {
    const before = this.#timed[stream] ?? null;
    const shown = this.#shown90k[stream]!;
    if (next !== null) shown.push(next.pts90k);
    shown.splice(0, shown.length - MAX_PLACES);
    if (before === null) return;
    const { pts90k, dts90k } = before.times;
    const isReference = (unit: Begun) => this.#h264.has(stream) && hasReference(unit.parts);
    if (!before.keyframe && isReference(before)) this.#delay90k[stream] = pts90k - dts90k;
    const waiting = this.#waiting.filter((unit) => unit.stream === stream && unit.times === null);
    if (next !== null) this.#step90k[stream] = (next.dts90k - dts90k) / (waiting.length + 1);
    const step90k = Math.max(1, this.#step90k[stream]!);
    const isFree = (at: number) => shown.every((other) => Math.abs(other - at) > step90k / 2);
    for (const [i, unit] of waiting.entries()) {
      const own90k = Math.round(dts90k + (i + 1) * step90k);
      const places = Array.from({ length: MAX_PLACES }, (_, k) => Math.round(own90k + k * step90k));
      const delay90k = isReference(unit) ? this.#delay90k[stream]! : null;
      if (delay90k !== null) places.unshift(own90k + delay90k);
      unit.times = { pts90k: places.find(isFree) ?? own90k, dts90k: own90k };
      shown.push(unit.times.pts90k);
      this.#untimed++;
    }
  }

  #unwrap(stamp: number): number {
    return this.#near90k + stepBetween(this.#near90k, stamp);
  }

  #complete(): ForeignUnit[] {
    const units: ForeignUnit[] = [];
    for (let first = this.#waiting[0]; first?.isComplete && first.times !== null; first = this.#waiting[0]) {
      const { stream, times, keyframe, parts, sizeBytes } = first;
      this.#waiting.shift();
      const data = new Uint8Array(sizeBytes);
      let at = 0;
      for (const part of parts) {
        data.set(part, at);
        at += part.length;
      }
      units.push({ stream, ...times, keyframe, data });
    }
    return units;
  }
}

/** Whether the first slice of a picture of H.264 says that others refer to it (nal_ref_idc, ITU-T H.264, 7.3.1). */
function hasReference(parts: readonly Uint8Array[]): boolean {
  for (const unit of unitsOfByteStream(concatBytes(parts.slice(0, HEAD_PARTS)), HEAD_UNITS)) {
    const type = unit[0]! & 31;
    if (type >= 1 && type <= 5) return (unit[0]! & 0x60) !== 0;
  }
  return false;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}
