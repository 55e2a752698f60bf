/**
 * SYNs of strangers. A SYN may carry a forged address, so it is answered in no more bytes than it has, and takes a place
 * in a small table alone. A connection begins when a second packet shows that our reply arrived.
 */
import { Allowance, Allowances } from "../bytes/allowance.ts";
import { machineKey } from "../bytes/machine-key.ts";
import type { Clock, SocketAddress } from "../ports.ts";
import { encodePacket, PACKET, type UtpPacket } from "./packet.ts";

/** Replies per second and at once: to one address, which may be a router with many viewers, and in total. */
const HOST_REPLIES_PER_S = 10;
const HOST_REPLIES_AT_ONCE = 50;
const REPLIES_PER_S = 100;
const REPLIES_AT_ONCE = 200;
/** The same for refusals: an end that is refused has TCP. */
const HOST_REFUSALS_PER_S = 2;
const HOST_REFUSALS_AT_ONCE = 10;
const REFUSALS_PER_S = 50;
const REFUSALS_AT_ONCE = 100;
/** Addresses whose rate is remembered. */
const MAX_HOSTS = 1_024;
/** Ends that were answered and have not shown yet that they exist. The oldest gives way; it can send its SYN again. */
const MAX_ANSWERED = 512;

/** What `Strangers` needs. */
export interface StrangersOptions {
  readonly clock: Clock;
  /** At least 0, below 1. */
  readonly random: () => number;
  /** What the reply to a SYN advertises, bytes. */
  readonly windowBytes: () => number;
}

/** What a connection begins with (`UtpStart`). */
export interface AnsweredSyn {
  readonly sendId: number;
  readonly nextSeq: number;
  readonly lastInOrder: number;
}

/** Answers SYNs, and knows whom. */
export class Strangers {
  readonly #options: StrangersOptions;
  /** By address, port and id of the packets that they send us. In order of arrival. */
  readonly #answered = new Map<string, AnsweredSyn>();
  readonly #replies: Rates;
  readonly #refusals: Rates;

  constructor(options: StrangersOptions) {
    this.#options = options;
    const nowMs = () => options.clock.monotonic();
    this.#replies = new Rates(nowMs, [HOST_REPLIES_PER_S, HOST_REPLIES_AT_ONCE], [REPLIES_PER_S, REPLIES_AT_ONCE]);
    this.#refusals = new Rates(nowMs, [HOST_REFUSALS_PER_S, HOST_REFUSALS_AT_ONCE], [
      REFUSALS_PER_S,
      REFUSALS_AT_ONCE,
    ]);
  }

  /** The reply to a SYN; null when too many ask. `key` as for `prove`. */
  answer(key: string, { connectionId, seq, timestampUs }: UtpPacket, from: SocketAddress): Uint8Array | null {
    if (!this.#replies.take(from.host)) return null;
    let known = this.#answered.get(key);
    // The same number for a SYN that is repeated: our first reply may be on its way.
    if (known?.lastInOrder !== seq) {
      this.#answered.delete(key);
      if (this.#answered.size >= MAX_ANSWERED) this.#answered.delete(this.#answered.keys().next().value!);
      known = { sendId: connectionId, nextSeq: Math.floor(this.#options.random() * 0x10000), lastInOrder: seq };
      this.#answered.set(key, known);
    }
    return this.#reply(PACKET.state, connectionId, known.nextSeq, seq, timestampUs);
  }

  /** The packet that refuses a connection; null when too many ask. libtorrent looks for the id of its own SYN. */
  refuse({ connectionId, seq, timestampUs }: UtpPacket, from: SocketAddress): Uint8Array | null {
    if (!this.#refusals.take(from.host)) return null;
    const ownSeq = Math.floor(this.#options.random() * 0x10000);
    return this.#reply(PACKET.reset, connectionId, ownSeq, seq, timestampUs);
  }

  /** An end that was answered sent a packet: what its connection begins with, if it has seen our reply; else null. */
  prove(key: string, packet: UtpPacket): AnsweredSyn | null {
    const answered = this.#answered.get(key);
    if (answered === undefined || ((packet.ack + 1) & 0xffff) !== answered.nextSeq) return null;
    this.#answered.delete(key);
    return packet.type === PACKET.reset ? null : answered;
  }

  #reply(type: number, connectionId: number, seq: number, ack: number, theirUs: number): Uint8Array {
    const nowUs = Math.floor(this.#options.clock.monotonic() * 1000);
    return encodePacket({
      type,
      connectionId,
      timestampUs: nowUs,
      timestampDifferenceUs: nowUs - theirUs,
      windowBytes: type === PACKET.reset ? 0 : this.#options.windowBytes(),
      seq,
      ack,
      selectiveAck: null,
      payload: new Uint8Array(0),
    });
  }
}

/** So many per second and at once: for one address, and in total. */
class Rates {
  readonly #nowMs: () => number;
  readonly #all: Allowance;
  readonly #hosts: Allowances;

  constructor(nowMs: () => number, host: readonly [number, number], all: readonly [number, number]) {
    this.#nowMs = nowMs;
    this.#all = new Allowance(...all, nowMs());
    this.#hosts = new Allowances({ perSecond: host[0], most: host[1], limit: MAX_HOSTS, nowMs });
  }

  take(host: string): boolean {
    return this.#hosts.take(machineKey(host)) && this.#all.take(1, this.#nowMs);
  }
}
