/**
 * Makes one transport stream from stretches of others. Each stretch begins with PAT and PMT, and streams begin with a
 * whole PES. Counters continue, and players are notified that the clock does not (ISO/IEC 13818-1, 2.4.3.5).
 */
import { concatBytes } from "../hex.ts";
import { raiseTableVersion } from "./table-version.ts";
import {
  FIELD_DISCONTINUITY,
  FIELD_PCR,
  fieldBytes,
  hasPayload,
  NULL_PID,
  PACKET_BYTES,
  pidOf,
  startsUnit,
  SYNC_BYTE,
} from "./packet.ts";

const PID_COUNT = 8192;
const UNSEEN = -1;
/** Steps by which the counters of tables jump where another source begins: any but 1, and 16, which would be 0. */
const TABLE_JUMP = 8;

/** The beginning of a stretch. */
export interface SplicePoint {
  /** PAT and PMT packets; their PIDs are tables from here on. */
  readonly tables: readonly Uint8Array[];
  readonly pcrPid: number;
  /** PIDs of the elementary streams of the program that is played. */
  readonly streamPids: readonly number[];
}

/** The packets of one output. */
export class TsSplicer {
  /** By PID: the last counter given out, and the last one read in this stretch. */
  readonly #out = new Int8Array(PID_COUNT).fill(UNSEEN);
  readonly #in = new Int8Array(PID_COUNT).fill(UNSEEN);
  /** By PID: whether it has begun in this stretch, and whether it carries tables. */
  readonly #open = new Uint8Array(PID_COUNT);
  readonly #isTable = new Uint8Array(PID_COUNT);
  #pcrPid = NULL_PID;
  #hasEntered = false;
  #sourceChanged = false;
  /** Number of changes of source, added to the versions of its tables. */
  #changes = 0;
  /** Streams that begin with a mark in this stretch: all of them, except in the first stretch. */
  #marked: ReadonlySet<number> = new Set();
  /** The clock's new time still has to be marked. */
  #clockMarked = true;

  /**
   * The next stretch is from another source. Its tables may have the same version as the ones before but different
   * content. Players read them again if their counters jump (which resets some readers) and their version changes (which
   * other readers need).
   */
  changeSource(): void {
    this.#sourceChanged = this.#hasEntered;
  }

  /** A stretch begins: returns its tables. */
  enter(point: SplicePoint): Uint8Array {
    const newTables = this.#sourceChanged ? [0, ...point.tables.map((packet) => pidOf(packet, 0))] : [];
    if (this.#sourceChanged) this.#changes++;
    this.#sourceChanged = false;
    for (const pid of new Set(newTables)) {
      if (this.#out[pid] !== UNSEEN) this.#out[pid] = (this.#out[pid]! + TABLE_JUMP) & 15;
    }
    this.#marked = new Set(this.#hasEntered ? [...newTables, ...point.streamPids] : []);
    this.#clockMarked = !this.#hasEntered;
    this.#hasEntered = true;
    this.#in.fill(UNSEEN);
    this.#open.fill(0);
    this.#isTable.fill(0);
    for (const packet of point.tables) this.#isTable[pidOf(packet, 0)] = 1;
    this.#isTable[0] = 1;
    this.#pcrPid = point.pcrPid;
    return this.push(concatBytes(point.tables));
  }

  /** Takes whole packets of the stretch, in order, and their memory; returns the packets to send for them. */
  push(packets: Uint8Array): Uint8Array {
    // Without marks nothing is inserted: the output fits where the packets are.
    const isInPlace = this.#marked.size === 0;
    const out = isInPlace ? packets : new Uint8Array(packets.length + this.#marked.size * PACKET_BYTES);
    let filled = 0;
    /** Packets that change only in their counters are copied together. */
    let from = 0;
    const copy = (to: number) => {
      if (to > from && !isInPlace) out.set(packets.subarray(from, to), filled);
      else if (filled !== from) out.copyWithin(filled, from, to);
      for (let at = from; at < to; at += PACKET_BYTES, filled += PACKET_BYTES) this.#renumber(out, filled);
    };
    let at = 0;
    for (; at + PACKET_BYTES <= packets.length; at += PACKET_BYTES) {
      const pid = pidOf(packets, at);
      if (this.#open[pid] === 1 && packets[at] === SYNC_BYTE) continue;
      copy(at);
      from = at;
      if (!this.#begins(packets, at, pid)) {
        from += PACKET_BYTES;
        continue;
      }
      this.#open[pid] = 1;
      const marksItself = pid === this.#pcrPid && fieldBytes(packets, at) > 1;
      if (this.#marked.has(pid) && this.#out[pid] !== UNSEEN && !marksItself) {
        this.#mark(out, filled, pid);
        filled += PACKET_BYTES;
      }
    }
    copy(at);
    return out.subarray(0, filled);
  }

  /** A stream that begins in the middle of a PES or section is useless; only the clock needs no beginning. */
  #begins(packets: Uint8Array, at: number, pid: number): boolean {
    if (packets[at] !== SYNC_BYTE || pid === NULL_PID) return false;
    return hasPayload(packets, at) ? startsUnit(packets, at) : pid === this.#pcrPid;
  }

  #renumber(out: Uint8Array, at: number): void {
    const pid = pidOf(out, at);
    const counter = out[at + 3]! & 15;
    const last = this.#out[pid]!;
    if (hasPayload(out, at)) {
      const before = this.#in[pid]!;
      // Packets that the source repeats or lost stay visible in the counters. Tables were inserted between packets, so
      // theirs just go up by one.
      const step = before === UNSEEN || this.#isTable[pid] === 1 ? 1 : (counter - before) & 15;
      this.#out[pid] = last === UNSEEN ? 0 : (last + step) & 15;
      this.#in[pid] = counter;
    } else if (last === UNSEEN) this.#out[pid] = 15;
    out[at + 3] = (out[at + 3]! & 0xf0) | this.#out[pid]!;
    if (this.#changes > 0 && this.#isTable[pid] === 1) raiseTableVersion(out, at, this.#changes);
    if (pid === this.#pcrPid && !this.#clockMarked && fieldBytes(out, at) > 1) {
      out[at + 5] = out[at + 5]! | FIELD_DISCONTINUITY;
      if ((out[at + 5]! & FIELD_PCR) !== 0) this.#clockMarked = true;
    }
  }

  /** A packet without payload that marks a discontinuity of `pid`. */
  #mark(out: Uint8Array, at: number, pid: number): void {
    out.fill(0xff, at, at + PACKET_BYTES);
    out.set([SYNC_BYTE, pid >> 8, pid & 0xff, 0x20 | this.#out[pid]!, PACKET_BYTES - 5, FIELD_DISCONTINUITY], at);
  }
}
