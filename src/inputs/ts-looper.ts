/**
 * Joins passes over one transport stream file into a continuous stream. In each pass PCR, PTS and DTS are moved by one
 * offset, the same for all streams so that they stay in step, and continuity counters by one offset per PID.
 */
import { concatBytes } from "../bytes/hex.ts";
import {
  fieldBytes,
  hasPayload,
  NULL_PID,
  PACKET_BYTES,
  payloadOf,
  pcrAt,
  pidOf,
  startsUnit,
  SYNC_BYTE,
  unusable,
} from "../bytes/ts/packet.ts";
import { readPcr, readStamp, stepBetween, wrap33, writePcr, writeStamp } from "../bytes/ts/stamps.ts";

/** PIDs below hold tables alone (ISO/IEC 13818-1, table 2-3); the last one is stuffing. */
const FIRST_STREAM_PID = 0x10;
/** stream_ids of PES packets whose header has no flags and times (2.4.3.7). */
const BARE_STREAM_IDS: ReadonlySet<number> = new Set([0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff]);
const START_CODE = [0, 0, 1];
/** A PES header up to its times. */
const HEADER_BYTES = 19;
/** A header is open for a few packets of its PID; a damaged one is not awaited. */
const MAX_HELD_BYTES = 512 * 1024;
/** Length of an access unit where a stream had only one, 90 kHz: a picture at 25 a second. */
const DEFAULT_UNIT_90K = 3600;
/** Longest step between access units that counts as their length, 90 kHz: subtitles come minutes apart. */
const MAX_UNIT_90K = 45_000;
/** A step back of a DTS, or one ahead beyond this, 90 kHz, is a cut in the file. */
const MAX_STEP_90K = 10 * 90_000;

/** What is known about one PID. Times are those of the file unless stated otherwise. */
interface PidState {
  /** Counter of the last packet as sent; -1 before the first. */
  lastCounter: number;
  /** Added to the file's counters in this pass; -1 before its first packet. */
  counterShift: number;
  /** A PES has begun in this pass; earlier packets belong to one that began before the file. */
  hasBegun: boolean;
  /** First DTS of the file, null before it came. */
  firstDts: number | null;
  /** Newest DTS as sent. */
  lastDts: number | null;
  /** Length of the last access unit. */
  unit90k: number;
}

/** A PES header that continues in the next packets of its PID. */
interface OpenHeader {
  /** Where its packets begin in the held bytes. */
  readonly from: number;
  /** Places of its bytes in the held bytes, in order. */
  readonly places: number[];
}

/** Makes one endless stream of passes over one file. */
export class TsLooper {
  readonly #pids = new Map<number, PidState>();
  readonly #open = new Map<number, OpenHeader>();
  /** Packets that are done except for an open header; all of it, and no more, is held between calls. */
  #held: Uint8Array = new Uint8Array();
  #offset90k = 0;
  #firstPcr: number | null = null;
  #pcrPid = -1;
  #lastPcr = 0;
  #pcrStep90k = 0;

  /** Takes whole packets of the file, in order; returns those that are sent. */
  push(packets: Uint8Array): Uint8Array {
    const bytes = concatBytes([this.#held, packets]);
    let kept = this.#held.length;
    for (let at = kept; at < bytes.length; at += PACKET_BYTES) {
      if (kept < at) bytes.copyWithin(kept, at, at + PACKET_BYTES);
      if (this.#packet(bytes, kept)) kept += PACKET_BYTES;
    }
    if (kept > MAX_HELD_BYTES) this.#open.clear();
    const ready = Math.min(kept, ...[...this.#open.values()].map(({ from }) => from));
    this.#held = bytes.slice(ready, kept);
    for (const [pid, { from, places }] of this.#open) {
      this.#open.set(pid, { from: from - ready, places: places.map((place) => place - ready) });
    }
    return bytes.subarray(0, ready);
  }

  /** The pass is over: returns the held packets. The next packet is the first of the file. */
  endPass(): Uint8Array {
    const held = this.#held;
    this.#held = new Uint8Array();
    this.#open.clear();
    this.#offset90k = this.#nextOffset();
    for (const pid of this.#pids.values()) {
      pid.counterShift = -1;
      pid.hasBegun = false;
    }
    return held;
  }

  /** Whether the packet is sent. */
  #packet(bytes: Uint8Array, at: number): boolean {
    const number = pidOf(bytes, at);
    if (number === NULL_PID || bytes[at] !== SYNC_BYTE) return false;
    const pid = this.#state(number);
    if (unusable(bytes, at)) {
      this.#count(pid, bytes, at);
      return true;
    }
    const begins = startsUnit(bytes, at);
    if (begins) {
      pid.hasBegun = true;
      this.#open.delete(number);
    }
    if (number >= FIRST_STREAM_PID && (begins || this.#open.has(number))) this.#header(number, pid, bytes, at);
    const place = pcrAt(bytes, at);
    if (place >= 0) this.#pcr(number, bytes, place);
    if (!pid.hasBegun && hasPayload(bytes, at)) {
      if (place < 0) return false;
      dropPayload(bytes, at);
    }
    this.#count(pid, bytes, at);
    return true;
  }

  #state(number: number): PidState {
    let pid = this.#pids.get(number);
    if (pid === undefined) {
      pid = {
        lastCounter: -1,
        counterShift: -1,
        hasBegun: false,
        firstDts: null,
        lastDts: null,
        unit90k: DEFAULT_UNIT_90K,
      };
      this.#pids.set(number, pid);
    }
    return pid;
  }

  /** Losses and repeats inside the file stay as they are: only the join is mended. */
  #count(pid: PidState, bytes: Uint8Array, at: number): void {
    const counter = bytes[at + 3]! & 15;
    if (pid.counterShift < 0) {
      const due = pid.lastCounter < 0 ? counter : pid.lastCounter + (hasPayload(bytes, at) ? 1 : 0);
      pid.counterShift = (due - counter) & 15;
    }
    pid.lastCounter = (counter + pid.counterShift) & 15;
    bytes[at + 3] = (bytes[at + 3]! & 0xf0) | pid.lastCounter;
  }

  #pcr(pid: number, bytes: Uint8Array, place: number): void {
    const pcr = readPcr(bytes, place);
    const sent = wrap33(pcr + this.#offset90k);
    writePcr(bytes, place, sent);
    if (this.#pcrPid < 0) [this.#pcrPid, this.#firstPcr, this.#lastPcr] = [pid, pcr, sent];
    if (pid !== this.#pcrPid) return;
    const step = stepBetween(this.#lastPcr, sent);
    if (step > 0 && step <= MAX_UNIT_90K) this.#pcrStep90k = step;
    this.#lastPcr = sent;
  }

  /** Takes the packet's part of a PES header, and moves its times when it is whole. */
  #header(number: number, pid: PidState, bytes: Uint8Array, at: number): void {
    const places = this.#open.get(number)?.places ?? [];
    const payload = payloadOf(bytes, at);
    for (let i = 0; i < payload.length && places.length < HEADER_BYTES; i++) {
      places.push(payload.byteOffset - bytes.byteOffset + i);
    }
    const header = Uint8Array.from(places, (place) => bytes[place]!);
    if (START_CODE.some((byte, i) => i < header.length && header[i] !== byte)) return;
    if (header.length > 3 && BARE_STREAM_IDS.has(header[3]!)) return;
    const flags = header.length < 8 ? 0 : header[7]! >> 6;
    const stampBytes = flags === 3 ? 10 : flags === 2 ? 5 : 0;
    if (header.length < 9 + stampBytes) {
      this.#open.set(number, { from: this.#open.get(number)?.from ?? at, places });
      return;
    }
    this.#open.delete(number);
    if (stampBytes === 0) return;
    this.#stamps(pid, header, flags);
    for (const [i, place] of places.entries()) bytes[place] = header[i]!;
  }

  #stamps(pid: PidState, header: Uint8Array, flags: number): void {
    const pts = readStamp(header, 9);
    const dts = flags === 3 ? readStamp(header, 14) : pts;
    writeStamp(header, 9, flags, pts + this.#offset90k);
    if (flags === 3) writeStamp(header, 14, 1, dts + this.#offset90k);
    const sent = wrap33(dts + this.#offset90k);
    pid.firstDts ??= dts;
    if (pid.lastDts !== null) {
      const step = stepBetween(pid.lastDts, sent);
      if (step > 0 && step <= MAX_UNIT_90K) pid.unit90k = step;
      // Reordered times without a DTS: the newest one counts. A cut in the file starts again.
      if (step <= 0 && step > -MAX_STEP_90K) return;
    }
    pid.lastDts = sent;
  }

  /** The least offset with which every stream, and the clock, continues after its end. */
  #nextOffset(): number {
    const offsets: number[] = [];
    for (const { firstDts, lastDts, unit90k } of this.#pids.values()) {
      if (firstDts !== null && lastDts !== null) offsets.push(lastDts + unit90k - firstDts);
    }
    if (this.#firstPcr !== null) offsets.push(this.#lastPcr + this.#pcrStep90k - this.#firstPcr);
    const [first = this.#offset90k, ...others] = offsets;
    return wrap33(others.reduce((best, offset) => stepBetween(best, offset) > 0 ? offset : best, first));
  }
}

/** Leaves the adaptation field, stretched over the packet, for its PCR. */
function dropPayload(bytes: Uint8Array, at: number): void {
  const field = fieldBytes(bytes, at);
  bytes.fill(0xff, at + 4 + field, at + PACKET_BYTES);
  bytes[at + 3] = (bytes[at + 3]! & 0xcf) | 0x20;
  bytes[at + 4] = PACKET_BYTES - 5;
}
