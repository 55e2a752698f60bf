/**
 * Extracts the access units from the transport stream that ffmpeg makes for us: each is in its own PES with both its times,
 * and the streams have the PIDs that we chose, so there is no need to read the tables.
 */
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

/** A unit that has begun. */
interface Begun {
  readonly stream: number;
  readonly pts90k: number;
  readonly dts90k: number;
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
  #near90k: number;
  #rest: Uint8Array = new Uint8Array(0);

  /** All times must be within 13 hours of `near90k`. */
  constructor(streams: number, near90k: number) {
    this.#streams = streams;
    this.#open = new Array(streams).fill(null);
    this.#near90k = near90k;
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
      if (header === null || header.pts90k === null) return;
      const hasDts = (payload[7]! & 0x40) !== 0 && payload.length >= 19;
      const pts90k = this.#unwrap(header.pts90k);
      const dts90k = hasDts ? this.#unwrap(readStamp(payload, 14)) : pts90k;
      this.#near90k = dts90k;
      const begun: Begun = {
        stream,
        pts90k,
        dts90k,
        keyframe: isRandomAccess(data, at),
        parts: [],
        sizeBytes: 0,
        wantedBytes: header.totalBytes === null ? null : header.totalBytes - header.body,
        isComplete: false,
      };
      this.#open[stream] = begun;
      this.#waiting.push(begun);
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

  #unwrap(stamp: number): number {
    return this.#near90k + stepBetween(this.#near90k, stamp);
  }

  #complete(): ForeignUnit[] {
    const units: ForeignUnit[] = [];
    while (this.#waiting[0]?.isComplete) {
      const { stream, pts90k, dts90k, keyframe, parts, sizeBytes } = this.#waiting.shift()!;
      const data = new Uint8Array(sizeBytes);
      let at = 0;
      for (const part of parts) {
        data.set(part, at);
        at += part.length;
      }
      units.push({ stream, pts90k, dts90k, keyframe, data });
    }
    return units;
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}
