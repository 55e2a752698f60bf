/**
 * One peer as the scheduler sees it: what it has, how fast it delivers, what it owes.
 *
 * The rate counts only time in which the peer owed something and had begun to deliver, so idle spells and the first
 * round trip don't spoil it. The depth follows from it: rate × (base round trip + slack). Before the rate is known the
 * depth doubles each round trip (one more for every block that arrives) until blocks begin to queue at the far end.
 *
 * Some clients answer on a timer (Transmission: every 500 ms), then with everything that was asked for. For them
 * the pause counts as part of the round trip, or they would be silent most of the time.
 */
import type { Tuning } from "./tuning.ts";

/** Blocks per peer that were requested and cancelled but may still arrive. Bounds memory; the oldest is forgotten. */
const MAX_LATE = 1024;
/** Recently rejected pieces remembered per peer. */
const MAX_AVOIDED = 256;
/** Base round trips are re-measured this often, so that a changed route is noticed. */
const BASE_WINDOW_MS = 10_000;
/** Shorter silences are jitter, ms. */
const MIN_PAUSE_MS = 100;
/** Longest pause between bursts that the depth compensates for, ms: bounds what a seek waits for. */
const MAX_PAUSE_MS = 1000;
/** After this long without recurring, a pause is forgotten, or replaced by a shorter one that did recur, ms. */
const PAUSE_MEMORY_MS = 15_000;

/** One request at one peer. Reused through the pool of `PieceBook`. */
export interface BlockRequest {
  peer: PeerState;
  part: ActivePiece;
  block: number;
  sentMs: number;
  /** Neighbours in the peer's queue, oldest first. */
  older: BlockRequest | null;
  newer: BlockRequest | null;
  /** Next copy of the same block at another peer. */
  copy: BlockRequest | null;
  /** Its position in the peer's queue at the last `PeerState.rank`. */
  rank: number;
}

/** A piece under way. */
export interface ActivePiece {
  readonly piece: number;
  readonly blocks: number;
  readonly state: Uint8Array;
  readonly asked: (BlockRequest | null)[];
  /** Peer that sent each block, -1 before. */
  readonly sources: Int32Array;
  free: number;
  here: number;
  /** No free block below this index. */
  hint: number;
  /** The peer that fetches it in the background, so that others start other pieces. */
  owner: PeerState | null;
  /** Since when, monotonic ms. */
  ownedMs: number;
  /** Its hash failed. One peer at a time fetches it, so that the next failure convicts that peer. */
  sole: boolean;
}

/** The scheduler's view of one peer. */
export class PeerState {
  readonly id: number;
  /** A web seed gets no requests. It asks for runs of blocks and fetches one after another. */
  readonly isWebSeed: boolean;
  fast: boolean;
  limit: number;
  seed = false;
  bits: Uint8Array | null = null;
  /** Its handshake is not done. Assume that it has everything and does not choke us. */
  presumed = false;
  /** It was asked before its handshake was done, and has not sent a block yet. */
  doubtful = false;
  /** Pieces it has and we lack (unused for seeds). */
  useful = 0;
  interested = false;
  choked = true;
  allowed: Set<number> | null = null;
  /** Silent too long: it is only probed. */
  stalled = false;
  silentSinceMs = 0;
  /** The host was asked to drop it. */
  dropped = false;
  stalledMs = 0;
  probedMs = 0;
  outstanding = 0;
  oldest: BlockRequest | null = null;
  newest: BlockRequest | null = null;
  /** Since when it has owed something without a break. */
  busySinceMs = 0;
  lastDataMs = Number.NEGATIVE_INFINITY;
  /** Smallest time from request to block, or the host's round trip; infinite when unknown. */
  baseMs = Number.POSITIVE_INFINITY;
  slowStart = true;
  window: number;
  /** Value of `Core.version` at which there was no work for it. */
  idleVersion = -1;
  /** Scratch of the scheduler's ordering. */
  sortMs = 0;
  /** Where the scan of its bits for background work continues. */
  scanByte = 0;
  /** The piece it fetches in the background. */
  current: number = -1;
  readonly #late = new Set<number>();
  readonly #avoided = new Map<number, number>();
  readonly #tuning: Tuning;
  readonly #blockBytes: number;
  #markMs = 0;
  #restarted = true;
  #bytes = 0;
  #spanMs = 0;
  #counted = 0;
  #windowMinMs = Number.POSITIVE_INFINITY;
  #windowStartMs = 0;
  /** Longest recent silence of a peer that answers in bursts; 0 for others. */
  #pauseMs = 0;
  #pauseSetMs = 0;
  #pauseSeenMs = 0;
  /** Start of the present burst (data without a longer silence since then), and the number of its blocks. */
  #burstMs = Number.POSITIVE_INFINITY;
  #burstBlocks = 0;

  /** `limit`: requests that it may have at once, or "web seed". */
  constructor(
    id: number,
    limit: number | "web seed",
    rttMs: number | null,
    fast: boolean,
    blockBytes: number,
    tuning: Tuning,
  ) {
    this.id = id;
    this.isWebSeed = limit === "web seed";
    this.limit = limit === "web seed" ? 0 : limit;
    this.fast = fast;
    this.#tuning = tuning;
    this.#blockBytes = blockBytes;
    this.window = tuning.firstDepthBlocks;
    if (rttMs !== null) this.baseMs = rttMs;
  }

  has(piece: number): boolean {
    return this.seed || (this.bits !== null && (this.bits[piece >> 3]! & (0x80 >> (piece & 7))) !== 0);
  }

  /** Whether it may be asked for the piece now (it has it, isn't choking it, didn't just reject it). */
  offers(piece: number, nowMs: number): boolean {
    if (this.presumed) return true;
    if (!this.has(piece)) return false;
    if (this.choked && (this.allowed === null || !this.allowed.has(piece))) return false;
    return this.#avoided.size === 0 || !this.#avoids(piece, nowMs);
  }

  /** Whether it could be asked for anything. */
  get usable(): boolean {
    return !this.stalled && (this.presumed || !this.choked || this.allowed !== null);
  }

  /** Whether it could be sent a request. */
  get takesRequests(): boolean {
    return this.usable && !this.isWebSeed;
  }

  /** The handshake is done; it tells more of the round trip than connecting did. */
  settle(limit: number, fast: boolean, rttMs: number | null): void {
    this.presumed = false;
    this.limit = limit;
    this.fast = fast;
    if (rttMs !== null) this.baseMs = rttMs;
  }

  avoid(piece: number, untilMs: number): void {
    if (this.#avoided.size >= MAX_AVOIDED) this.#avoided.delete(this.#avoided.keys().next().value!);
    this.#avoided.set(piece, untilMs);
  }

  /** It has the piece again: its earlier rejects no longer count. */
  forgive(piece: number): void {
    this.#avoided.delete(piece);
  }

  #avoids(piece: number, nowMs: number): boolean {
    const until = this.#avoided.get(piece);
    if (until === undefined) return false;
    if (until > nowMs) return true;
    this.#avoided.delete(piece);
    return false;
  }

  /** Notes a cancelled block that may still come. */
  expectLate(key: number): void {
    if (this.#late.size >= MAX_LATE) this.#late.delete(this.#late.keys().next().value!);
    this.#late.add(key);
  }

  /** Whether the block was requested and cancelled. */
  mayComeLate(key: number): boolean {
    return this.#late.has(key);
  }

  /** Whether the block was requested and cancelled; forgets that. */
  takeLate(key: number): boolean {
    return this.#late.size > 0 && this.#late.delete(key);
  }

  enqueue(request: BlockRequest): void {
    request.newer = null;
    request.older = this.newest;
    if (this.newest === null) {
      this.oldest = request;
      this.busySinceMs = request.sentMs;
      this.#restarted = true;
    } else this.newest.newer = request;
    this.newest = request;
    this.outstanding++;
  }

  dequeue(request: BlockRequest): void {
    if (request.older === null) this.oldest = request.newer;
    else request.older.newer = request.newer;
    if (request.newer === null) this.newest = request.older;
    else request.newer.older = request.older;
    this.outstanding--;
  }

  /** Numbers its requests by their position in its queue. */
  rank(): void {
    let place = 0;
    for (let request = this.oldest; request !== null; request = request.newer) request.rank = place++;
  }

  get measured(): boolean {
    return this.#counted >= (3 * this.#blockBytes) / 4 && this.#spanMs > 0;
  }

  /** Bytes/s; returns `unknown` until two blocks were counted. */
  rate(unknown: number): number {
    if (!this.measured) return unknown;
    // Bytes held up in a buffer on the way arrive all at once: such a burst says nothing about the link.
    const spanMs = Math.max(this.#spanMs, this.#tuning.rateSpanMinMs);
    return Math.max((this.#bytes * 1000) / spanMs, 1);
  }

  /** Base round trip, plus the pause of a peer that answers in bursts. */
  get rttMs(): number {
    return this.#routeMs + this.#pauseMs;
  }

  get #routeMs(): number {
    return this.baseMs === Number.POSITIVE_INFINITY ? this.#tuning.unknownRttMs : this.baseMs;
  }

  /** Time until one more block could be here. */
  etaMs(unknownRate: number): number {
    return this.rttMs + ((this.outstanding + 1) * this.#blockBytes * 1000) / this.rate(unknownRate);
  }

  /** Time since its last sign of life while it owed something. */
  silenceMs(nowMs: number): number {
    return this.outstanding === 0 ? 0 : nowMs - Math.max(this.busySinceMs, this.lastDataMs);
  }

  /** Time until a ranked request is likely to be served; the longer the silence, the longer this gets. */
  remainingMs(request: BlockRequest, unknownRate: number, nowMs: number): number {
    const blockMs = (this.#blockBytes * 1000) / this.rate(unknownRate);
    const sinceMs = nowMs - Math.max(this.lastDataMs, this.busySinceMs + this.rttMs);
    const overdueMs = Math.max(0, sinceMs - blockMs);
    return (request.rank + 1) * blockMs - Math.min(sinceMs, blockMs) + 2 * overdueMs;
  }

  onBytes(bytes: number, nowMs: number): void {
    this.#noticePause(nowMs);
    this.lastDataMs = nowMs;
    if (this.#restarted) {
      this.#restarted = false;
      this.#markMs = nowMs;
      return;
    }
    const dt = nowMs - this.#markMs;
    if (dt > 0) {
      const keep = Math.exp(-dt / this.#tuning.rateWindowMs);
      this.#bytes *= keep;
      this.#spanMs = this.#spanMs * keep + this.#tuning.rateWindowMs * (1 - keep);
      this.#markMs = nowMs;
    }
    this.#bytes += bytes;
    if (this.#counted < 1 << 30) this.#counted += bytes;
  }

  /**
   * Data came after a silence: had the far end run dry? Yes, if the burst before was shorter than the silence and
   * served everything requested before it; a link that is merely slow always owes something older.
   */
  #noticePause(nowMs: number): void {
    if (this.#pauseMs > 0 && nowMs - this.#pauseSeenMs > PAUSE_MEMORY_MS) this.#pauseMs = 0;
    const silenceMs = nowMs - this.lastDataMs;
    if (silenceMs < Math.max(MIN_PAUSE_MS, this.#routeMs + this.#tuning.readerSlackMs)) return;
    const { oldest } = this;
    const burstMs = this.#burstMs;
    const burstBlocks = this.#burstBlocks;
    this.#burstMs = nowMs;
    this.#burstBlocks = 0;
    // It was idle in between, or cut off for long: no evidence.
    if (oldest === null || this.busySinceMs > this.lastDataMs || silenceMs > 2 * MAX_PAUSE_MS) return;
    if (burstBlocks < 2 || this.lastDataMs - burstMs > silenceMs || oldest.sentMs < burstMs - this.#routeMs) return;
    const pauseMs = Math.min(silenceMs, MAX_PAUSE_MS);
    this.#pauseSeenMs = nowMs;
    if (pauseMs > this.#pauseMs || nowMs - this.#pauseSetMs > PAUSE_MEMORY_MS) {
      this.#pauseMs = pauseMs;
      this.#pauseSetMs = nowMs;
    }
    if (!this.slowStart) this.window = this.outstanding;
    this.slowStart = true;
  }

  /** A block came `latencyMs` after it was requested. */
  onBlock(latencyMs: number, slackMs: number, nowMs: number): void {
    this.doubtful = false;
    this.#burstBlocks++;
    if (latencyMs < this.baseMs) this.baseMs = latencyMs;
    if (latencyMs < this.#windowMinMs) this.#windowMinMs = latencyMs;
    if (nowMs - this.#windowStartMs > BASE_WINDOW_MS) {
      // Half of the recent minimum: low enough that our own queue does not raise it, high enough to follow a longer
      // route.
      if (this.#windowStartMs > 0) this.baseMs = Math.max(this.baseMs, this.#windowMinMs / 2);
      this.#windowStartMs = nowMs;
      this.#windowMinMs = Number.POSITIVE_INFINITY;
    }
    if (!this.slowStart) return;
    if (this.measured && latencyMs - this.rttMs > slackMs) this.slowStart = false;
    else if (this.window < this.#tuning.depthCapBlocks) this.window++;
  }

  /** Starts over with a shallow pipeline, after a stall. */
  restart(): void {
    this.stalled = false;
    this.slowStart = true;
    this.window = 2;
  }

  /**
   * Requests that may be outstanding; while the peer's rate is unknown at most `share`, its part of the critical
   * blocks.
   */
  depth(slackMs: number, share: number): number {
    const cap = Math.min(this.limit, this.#tuning.depthCapBlocks);
    if (!this.measured) return Math.min(this.window, Math.max(share, 2), cap);
    if (this.slowStart) return Math.min(this.window, cap);
    const blocks = Math.ceil((this.rate(1) * (this.rttMs + slackMs)) / 1000 / this.#blockBytes) + 1;
    return Math.min(Math.max(blocks, 2), cap);
  }

  /** The same for critical blocks. */
  criticalDepth(slackMs: number, share: number): number {
    const depth = this.depth(slackMs, share);
    const first = Math.min(share, this.#tuning.firstCriticalBlocks);
    // TCP starts slowly: until the first depth's worth of blocks has arrived, the rate says little. After a `restart`
    // the depth stays small.
    if (this.#counted >= first * this.#blockBytes || this.window < this.#tuning.firstDepthBlocks) return depth;
    return Math.min(Math.max(depth, first), this.limit, this.#tuning.depthCapBlocks);
  }
}
