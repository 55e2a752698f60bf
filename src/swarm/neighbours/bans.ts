/**
 * Peers that broke the protocol or sent corrupt data. The first slip costs only the connection. Several slips, a flood or
 * a lie cost the peer its place, by its id at its address. Only much more than that costs all peers at the address:
 * hundreds of honest ones may share it (NAT, VPN).
 */
import { machineKey } from "../../bytes/machine-key.ts";
import type { Offence } from "../../wire/offence.ts";

/** Peers and addresses remembered, each: an attacker with more costs us hash failures, never memory. */
export const MAX_OFFENDERS = 4096;

/**
 * Points per offence. A slip costs us about as much as a connection, which the acceptor limits anyway. A flood costs a tenth
 * of a second of work, a lie up to a piece.
 */
const POINTS: Readonly<Record<Offence, number>> = { slip: 1, flood: 20, lie: 30 };

/** Points at which a peer is banned: at four slips within a minute, and at its first flood or lie. */
const PEER_LIMIT = 3.5;

/**
 * Points at which an address is banned: two lies or three floods within twenty minutes, or fifty slips at once, whatever
 * the peers call themselves.
 */
const ADDRESS_LIMIT = 50;

/** More points would only make a ban last longer than two hours. */
const MAX_POINTS = 80;

/** One point is forgotten after this long, ms. */
const FORGET_MS = 120_000;

/** A ban ends when this part of the limit is left: after an hour or two for an address, after minutes for four slips. */
const RELEASE_PART = 0.5;

interface Offences {
  points: number;
  atMs: number;
  isBanned: boolean;
}

/** Points of many offenders; the one whose last offence is oldest is forgotten first. Times are monotonic ms. */
class Ledger {
  readonly #records = new Map<string, Offences>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Returns whether this led to a ban. */
  add(key: string, points: number, nowMs: number): boolean {
    const record = this.#current(key, nowMs) ?? { points: 0, atMs: nowMs, isBanned: false };
    const wasBanned = record.isBanned;
    record.points = Math.min(MAX_POINTS, record.points + points);
    record.isBanned ||= record.points >= this.#limit;
    this.#records.delete(key);
    if (this.#records.size >= MAX_OFFENDERS) this.#records.delete(this.#records.keys().next().value!);
    this.#records.set(key, record);
    return record.isBanned && !wasBanned;
  }

  has(key: string, nowMs: number): boolean {
    return this.#current(key, nowMs)?.isBanned ?? false;
  }

  /** All that are banned. */
  *banned(nowMs: number): Iterable<string> {
    for (const key of [...this.#records.keys()]) if (this.has(key, nowMs)) yield key;
  }

  #current(key: string, nowMs: number): Offences | null {
    const record = this.#records.get(key);
    if (record === undefined) return null;
    record.points = Math.max(0, record.points - (nowMs - record.atMs) / FORGET_MS);
    record.atMs = nowMs;
    if (record.points < this.#limit * RELEASE_PART) record.isBanned = false;
    if (record.points > 0) return record;
    this.#records.delete(key);
    return null;
  }
}

/** What an offence led to. */
export type Verdict = "none" | "peer" | "address";

/** The bans of an engine. A peer is known by the id of its handshake, in hex, at its address: an id alone can be copied. */
export class BanList {
  readonly #peers = new Ledger(PEER_LIMIT);
  readonly #addresses = new Ledger(ADDRESS_LIMIT);

  /** Counts an offence; returns the widest ban that it led to. */
  note(host: string, peerIdHex: string, offence: Offence, nowMs: number): Verdict {
    const points = POINTS[offence];
    const key = peerKey(host, peerIdHex);
    // What it had sent before its ban says nothing more about the others at its address.
    if (this.#peers.has(key, nowMs)) return "none";
    const peer = this.#peers.add(key, points, nowMs);
    if (this.#addresses.add(machineKey(host), points, nowMs)) return "address";
    return peer ? "peer" : "none";
  }

  /** Whether no peer at this address may connect. */
  hasAddress(host: string, nowMs: number): boolean {
    return this.#addresses.has(machineKey(host), nowMs);
  }

  /** Whether this peer is banned, alone or with its address. */
  hasPeer(host: string, peerIdHex: string, nowMs: number): boolean {
    return this.hasAddress(host, nowMs) || this.#peers.has(peerKey(host, peerIdHex), nowMs);
  }

  /** Whether the address or any peer at it is banned. */
  concerns(host: string, nowMs: number): boolean {
    if (this.hasAddress(host, nowMs)) return true;
    const start = peerKey(host, "");
    for (const key of this.#peers.banned(nowMs)) if (key.startsWith(start)) return true;
    return false;
  }

  /** Peers and addresses remembered. */
  get size(): number {
    return this.#peers.size + this.#addresses.size;
  }
}

function peerKey(host: string, peerIdHex: string): string {
  return `${machineKey(host)} ${peerIdHex}`;
}
