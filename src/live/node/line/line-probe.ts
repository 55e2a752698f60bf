/**
 * Measures the up-link of a newcomer before anybody depends on it: two small bursts of FILL to a few neighbours at once, a
 * PING behind each. Without it a crowd of newcomers gives each other places that their lines can't carry, and finds that out
 * by the blocks that are missing.
 */
import { MAX_LIVE_MESSAGE_BYTES } from "../../messages.ts";
import type { LineMeter } from "./line-meter.ts";
import { newNonce } from "../neighbour/link-flight.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";

/** Neighbours that get a part of a burst: PONGs are late where the neighbour's own uplink is busy; the fastest one counts. */
const MAX_LINKS = 4;
/** A burst waits this long for more neighbours than one, ms. */
const GATHER_MS = 80;
/** Nor does it wait when it has as many. */
const ENOUGH_LINKS = 3;
/** The first burst: 0.25 s of a line of 0.4 Mbit/s, which must not keep the newcomer's own requests waiting for longer. */
const FIRST_BYTES = 12 * 1024;
/** The second one takes this long at the rate that the first one showed, within these limits, ms and bytes. */
const SECOND_MS = 120;
const SECOND_BYTES: readonly [number, number] = [12 * 1024, 48 * 1024];
/** Most of a burst on one connection: what TCP sends before the first acknowledgement (RFC 6928). */
const LINK_BYTES = 12 * 1024;
/** Clocks and PONGs are not more exact than this, ms. */
const LEAST_MS = 10;
/**
 * The other parts have the time again that the first one took, and this, ms: if the line is what they wait for they are
 * there by then, or as many of them as show the same rate.
 */
const LATE_MS = 20;
/** A burst is over after this, whatever has come back, ms. */
const BURST_MS = 1200;

/** The part of a burst that one neighbour got. */
interface Share {
  readonly bytes: number;
  readonly nonce: bigint;
  /** Time from the burst to the PONG, beyond the round trip of an idle line, ms; null before the PONG. */
  waitedMs: number | null;
}

/** One measurement of one line. */
export class LineProbe {
  readonly #line: LineMeter;
  readonly #random: () => number;
  /** Neighbours whose round trip is known, the first ones first. */
  readonly #ready: LivePeer[] = [];
  #readyMs = Infinity;
  #shares = new Map<LivePeer, Share>();
  #burstMs = -Infinity;
  /** The burst is over then, whatever is missing. */
  #endMs = Infinity;
  #bursts = 0;
  #bestBytesPerS = 0;
  #isDone = false;

  constructor(line: LineMeter, random: () => number) {
    this.#line = line;
    this.#random = random;
  }

  /** The part of a burst that is under way, bytes. */
  get underWayBytes(): number {
    let bytes = 0;
    for (const share of this.#shares.values()) if (share.waitedMs === null) bytes += share.bytes;
    return bytes;
  }

  /** The round trip of `peer` is known. */
  reached(peer: LivePeer, nowMs: number): void {
    if (this.#isDone || this.#ready.includes(peer)) return;
    this.#ready.push(peer);
    this.#readyMs = Math.min(this.#readyMs, nowMs);
    this.tick(nowMs);
  }

  /** `peer` sent a PING with `nonce`; false when it is not one of a burst. */
  echoed(peer: LivePeer, nonce: bigint, atMs: number | null, nowMs: number): boolean {
    const share = this.#shares.get(peer);
    if (share?.nonce !== nonce) return false;
    share.waitedMs ??= Math.max(
      LEAST_MS,
      peer.flight.measured({ sentMs: this.#burstMs, atMs, queuedMs: 0, ownMs: 0 }, nowMs),
    );
    this.#endMs = Math.min(this.#endMs, nowMs + share.waitedMs + LATE_MS);
    if ([...this.#shares.values()].every(({ waitedMs }) => waitedMs !== null)) this.#end(nowMs);
    return true;
  }

  /** The connection of `peer` is gone. */
  drop(peer: LivePeer): void {
    this.#shares.delete(peer);
    const at = this.#ready.indexOf(peer);
    if (at >= 0) this.#ready.splice(at, 1);
  }

  /** Time passes. */
  tick(nowMs: number): void {
    if (this.#isDone) return;
    if (this.#burstMs > -Infinity) {
      if (nowMs >= this.#endMs) this.#end(nowMs);
    } else if (this.#line.isKnown) this.#isDone = true;
    else if (this.#ready.length >= ENOUGH_LINKS || nowMs - this.#readyMs >= GATHER_MS) {
      this.#burst(FIRST_BYTES, nowMs);
    }
  }

  #burst(bytes: number, nowMs: number): void {
    const peers = this.#ready.slice(0, MAX_LINKS);
    this.#shares = new Map();
    this.#burstMs = nowMs;
    this.#endMs = nowMs + BURST_MS;
    this.#bursts++;
    const each = Math.min(LINK_BYTES, Math.ceil(bytes / Math.max(1, peers.length)));
    for (const peer of peers) {
      const nonce = newNonce(this.#random);
      this.#shares.set(peer, { bytes: each, nonce, waitedMs: null });
      for (let left = each; left > 0; left -= MAX_LIVE_MESSAGE_BYTES) {
        peer.send({ type: "fill", bytes: Math.min(left, MAX_LIVE_MESSAGE_BYTES) });
      }
      peer.send({ type: "ping", nonce });
    }
  }

  /** A burst has arrived, or as much of it as does in time. */
  #end(nowMs: number): void {
    const back = [...this.#shares.values()].filter(({ waitedMs }) => waitedMs !== null);
    back.sort((a, b) => a.waitedMs! - b.waitedMs!);
    // The parts share the line. What came back until then had left it, and more of the burst may have.
    let bytes = 0;
    for (const share of back) {
      bytes += share.bytes;
      this.#bestBytesPerS = Math.max(this.#bestBytesPerS, bytes / share.waitedMs! * 1000);
    }
    this.#shares = new Map();
    const [least, most] = SECOND_BYTES;
    if (this.#bursts === 1 && !this.#line.isKnown && this.#ready.length > 0) {
      return this.#burst(Math.min(most, Math.max(least, this.#bestBytesPerS * SECOND_MS / 1000)), nowMs);
    }
    this.#isDone = true;
    if (this.#bestBytesPerS > 0) this.#line.probed(this.#bestBytesPerS);
  }
}
