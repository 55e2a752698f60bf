/** Puts the packets of some streams of a transport stream together into PES packets, as segments have them. */
import { concatBytes } from "../../../../bytes/hex.ts";
import {
  hasPayload,
  isRandomAccess,
  PACKET_BYTES,
  payloadOf,
  pidOf,
  readPesHeader,
  startsUnit,
} from "../../../../bytes/ts/packet.ts";
import { readStamp, stepBetween } from "../../../../bytes/ts/stamps.ts";

/** Largest PES packet, bytes: a picture of 8K at high quality. The rest of a larger one is left out. */
const MAX_PES_BYTES = 16 * 1024 * 1024;

/** A PES packet. */
export interface Pes {
  readonly pid: number;
  /** 90 kHz, without wrapping; null: it has none. */
  readonly pts90k: number | null;
  readonly dts90k: number | null;
  /** The PES is marked as a random access point. */
  readonly isAccess: boolean;
  readonly body: Uint8Array;
}

interface Open extends Omit<Pes, "body"> {
  readonly parts: Uint8Array[];
  sizeBytes: number;
  /** Bytes of its body; null: it ends where the next one begins. */
  readonly wantedBytes: number | null;
}

/** Reads one segment from its beginning. */
export class PesReader {
  readonly #open = new Map<number, Open | null>();
  #near90k: number;
  #rest: Uint8Array = new Uint8Array(0);

  /** All times are within 13 hours of `near90k`. */
  constructor(pids: readonly number[], near90k: number) {
    for (const pid of pids) this.#open.set(pid, null);
    this.#near90k = near90k;
  }

  /** Adds bytes; returns the PES packets that are complete. Nothing of `bytes` is kept. */
  push(bytes: Uint8Array): Pes[] {
    const data = this.#rest.length === 0 ? bytes : concatBytes([this.#rest, bytes]);
    const done: Pes[] = [];
    let at = 0;
    for (; at + PACKET_BYTES <= data.length; at += PACKET_BYTES) this.#take(data, at, done);
    this.#rest = data.slice(at);
    return done;
  }

  /** The PES packet of `pid` is known to be over: the next one of its stream begins with the bytes that follow. */
  cut(pid: number): Pes[] {
    const done: Pes[] = [];
    this.#close(pid, done);
    return done;
  }

  /** The rest, at the end of the segment. */
  finish(): Pes[] {
    const done: Pes[] = [];
    for (const pid of this.#open.keys()) this.#close(pid, done);
    return done;
  }

  #take(data: Uint8Array, at: number, done: Pes[]): void {
    const pid = pidOf(data, at);
    if (!this.#open.has(pid) || !hasPayload(data, at)) return;
    let payload = payloadOf(data, at);
    if (startsUnit(data, at)) {
      this.#close(pid, done);
      const header = readPesHeader(payload);
      if (header === null) return;
      const { pts90k, totalBytes, body } = header;
      const hasDts = pts90k !== null && (payload[7]! & 0x40) !== 0 && payload.length >= 19;
      const dts90k = hasDts ? this.#unwrap(readStamp(payload, 14)) : null;
      this.#open.set(pid, {
        pid,
        pts90k: pts90k === null ? null : this.#unwrap(pts90k),
        dts90k,
        isAccess: isRandomAccess(data, at),
        parts: [],
        sizeBytes: 0,
        wantedBytes: totalBytes === null ? null : Math.max(0, totalBytes - body),
      });
      payload = payload.subarray(body);
    }
    const open = this.#open.get(pid);
    if (!open) return;
    const room = Math.min(open.wantedBytes ?? MAX_PES_BYTES, MAX_PES_BYTES) - open.sizeBytes;
    const part = payload.slice(0, room);
    open.parts.push(part);
    open.sizeBytes += part.length;
    if (open.sizeBytes === open.wantedBytes) this.#close(pid, done);
  }

  #close(pid: number, done: Pes[]): void {
    const open = this.#open.get(pid);
    this.#open.set(pid, null);
    if (!open) return;
    const { pts90k, dts90k, isAccess, parts } = open;
    done.push({ pid, pts90k, dts90k, isAccess, body: concatBytes(parts) });
  }

  #unwrap(stamp: number): number {
    return this.#near90k += stepBetween(this.#near90k, stamp);
  }
}
