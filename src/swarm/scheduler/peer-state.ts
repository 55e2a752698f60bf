/**
 * One peer as the scheduler sees it: what it has, how fast it delivers, what it owes.
 *
 * The depth of its queue follows from its rate: the next block is requested once the rest of what is on its way
 * takes no longer than the base round trip and some slack. Before the rate is known the depth doubles each round trip (one
 * more for every block that arrives) until blocks begin to queue at the far end.
 *
 * What nobody wants any more but can't be called back (`strand`) still takes its time on the way, and so do cancelled
 * blocks: a peer is asked for what a reader waits for at once, for anything else only when they are through. Common clients
 * read blocks that are requested together from disk in any order, so further requests would delay the awaited ones.
 *
 * Some clients answer on a timer (Transmission: every 500 ms), then with everything that was asked for. For them
 * the pause counts as part of the round trip, or they would be silent most of the time.
 */
import type { PieceOf, RequestAt } from "./active-piece.ts";
import { AvoidedPieces } from "./avoided-pieces.ts";
import { BaseRoundTrip } from "./base-round-trip.ts";
import { DeliveryRate } from "./delivery-rate.ts";
import { LateBlocks } from "./late-blocks.ts";
import { SuggestedPieces } from "./suggested-pieces.ts";
import type { Tuning } from "./tuning.ts";

/** Shorter silences are jitter, ms. */
const MIN_PAUSE_MS = 100;
/** Longest pause between bursts that the depth compensates for, ms: bounds what a seek waits for. */
const MAX_PAUSE_MS = 1000;
/** After this long without recurring, a pause is forgotten, or replaced by a shorter one that did recur, ms. */
const PAUSE_MEMORY_MS = 15_000;

/** One request at one peer. */
export type BlockRequest = RequestAt<PeerState>;

/** A piece under way. */
export type ActivePiece = PieceOf<PeerState>;

/** What a peer may be asked for: nothing, only what a read waits for, what readers need soon, or anything. */
export type Room = "none" | "awaited" | "critical" | "any";

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
  /** True while a peer that was asked before its handshake was done has not sent a block. */
  doubtful = false;
  /** Pieces it has and we lack (unused for seeds). */
  useful = 0;
  interested = false;
  choked = true;
  allowed: Set<number> | null = null;
  readonly suggested = new SuggestedPieces();
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
  lastDataMs = -Infinity;
  slowStart = true;
  /** True once the peer turned out to be slow and the requests behind its first block were taken back. */
  relieved = false;
  window: number;
  /** Value of `Core.version` at which there was no work for it. */
  idleVersion = -1;
  /** Scratch of the scheduler's ordering. */
  sortMs = 0;
  /** Where the scan of its bits for background work continues. */
  scanByte = 0;
  /** The piece it fetches in the background. */
  current: number = -1;
  /** Requests for what nobody wants any more that can't be called back. */
  strays = 0;
  /** Blocks that may come although no request for them is recorded. */
  readonly late = new LateBlocks();
  /** Pieces that it recently rejected. */
  readonly avoided = new AvoidedPieces();
  readonly #tuning: Tuning;
  readonly #blockBytes: number;
  readonly #rate: DeliveryRate;
  readonly #route: BaseRoundTrip;
  /** The newest blocks in its queue, requested when it would run dry before they could come, and when the first comes. */
  #trainBlocks = 0;
  #trainMs = -Infinity;
  /** Bytes since `busySinceMs`, and the most bytes/s that these allow while the rate is unknown. */
  #busyBytes = 0;
  /** When the first of them came, and how many did. */
  #begunMs = 0;
  #begunBytes = 0;
  #mostRate = Infinity;
  /** Bytes here of the block that it is sending. */
  #partBytes = 0;
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
    this.#rate = new DeliveryRate(blockBytes, tuning);
    this.#route = new BaseRoundTrip(rttMs, tuning.unknownRttMs);
    this.window = tuning.firstDepthBlocks;
  }

  has(piece: number): boolean {
    return this.seed || (this.bits !== null && (this.bits[piece >> 3]! & (0x80 >> (piece & 7))) !== 0);
  }

  /** Whether it may be asked for the piece now (it has it, isn't choking it, didn't just reject it). */
  offers(piece: number, nowMs: number): boolean {
    if (this.presumed) return true;
    if (!this.has(piece)) return false;
    if (this.choked && (this.allowed === null || !this.allowed.has(piece))) return false;
    return !this.avoided.has(piece, nowMs);
  }

  /** Whether it could be asked for anything. */
  get usable(): boolean {
    return !this.stalled && (this.presumed || !this.choked || this.allowed !== null);
  }

  /** Whether it could be sent a request. */
  get takesRequests(): boolean {
    return this.usable && !this.isWebSeed;
  }

  /** Called after the handshake, which shows more of the round trip than connecting did. */
  settle(limit: number, fast: boolean, rttMs: number | null): void {
    this.presumed = false;
    this.limit = limit;
    this.fast = fast;
    if (rttMs !== null) this.#route.set(rttMs);
  }

  /** Notes a block without a request any more that was requested at `sentMs` and is most likely on its way. */
  expectCancelled(key: number, sentMs: number): void {
    const rate = this.rate(this.#tuning.unknownBytesPerSecond);
    const queuedMs = ((this.outstanding + 1) * this.#blockBytes * 1000) / rate;
    this.late.addSent(key, sentMs, sentMs + this.rttMs + queuedMs);
  }

  enqueue(request: BlockRequest): void {
    request.newer = null;
    request.older = this.newest;
    if (this.newest === null) {
      this.oldest = request;
      this.busySinceMs = request.sentMs;
      this.#rate.pause();
      this.#partBytes = this.#busyBytes = 0;
    } else this.newest.newer = request;
    this.newest = request;
    const { sentMs } = request;
    const { rttMs } = this;
    const drainMs = this.#drainMs(this.#tuning.unknownBytesPerSecond, sentMs);
    if (drainMs < rttMs) {
      this.#trainMs = sentMs + rttMs;
      this.#trainBlocks = 0;
    }
    request.dueMs = sentMs + Math.max(drainMs, rttMs) + this.#blockMs(this.#tuning.unknownBytesPerSecond);
    this.#trainBlocks++;
    this.outstanding++;
  }

  /**
   * Keeps a request that nobody wants any more if a cancel would come too late; false if not. A player that returns at
   * once would otherwise have the block sent twice.
   */
  strand(request: BlockRequest, nowMs: number): boolean {
    if (request.stray) return true;
    const blockMs = this.#blockMs(this.#tuning.unknownBytesPerSecond);
    if (this.isWebSeed || this.presumed || request.dueMs > nowMs + this.rttMs + blockMs) return false;
    request.stray = true;
    this.strays++;
    return true;
  }

  dequeue(request: BlockRequest): void {
    if (request.older === null) this.oldest = request.newer;
    else request.older.newer = request.newer;
    if (request.newer === null) this.newest = request.older;
    else request.newer.older = request.older;
    this.outstanding--;
    if (request.stray) this.strays--;
  }

  /** Numbers its requests by their position in its queue. */
  rank(): void {
    let place = 0;
    for (let request = this.oldest; request !== null; request = request.newer) request.rank = place++;
  }

  get measured(): boolean {
    return this.#rate.measured;
  }

  /** Bytes/s; returns `unknown` until two blocks were counted. */
  rate(unknown: number): number {
    return this.#rate.measured ? this.#rate.bytesPerSecond : unknown;
  }

  /** Time has passed: a peer of unknown rate that brought little is slow. While others deliver, silence says nothing. */
  judge(nowMs: number, isProven: boolean): void {
    const sinceMs = !this.outstanding || (isProven && !this.#busyBytes) ? 0 : nowMs - this.busySinceMs - this.rttMs;
    this.#mostRate = sinceMs <= 0 ? Infinity : ((this.#busyBytes + this.#blockBytes / 2) * 1000) / sinceMs;
  }

  /** True when the peer needs so long for a block that one request at a time keeps it busy. */
  get isSlow(): boolean {
    return (this.measured || this.hasBegun) && this.#blockMs(Infinity) > this.#tuning.slowBlockMs;
  }

  /** True when the peer has sent part of what it owes, too little for a rate: slow links pause between two segments. */
  get hasBegun(): boolean {
    return !this.measured && this.#busyBytes > 0;
  }

  /** What came after the first bytes says that it is not slow; the first may have waited for us. */
  isBrisk(nowMs: number): boolean {
    const sinceMs = Math.max(nowMs - this.#begunMs, 2 * this.#tuning.rateSpanMinMs);
    return (this.#busyBytes - this.#begunBytes) * this.#tuning.slowBlockMs > this.#blockBytes * sinceMs;
  }

  /** Base round trip, plus the pause of a peer that answers in bursts. */
  get rttMs(): number {
    return this.#route.ms + this.#pauseMs;
  }

  /** Time until one more block could be here. */
  etaMs(unknownRate: number, nowMs: number): number {
    return Math.max(this.rttMs, this.#drainMs(unknownRate, nowMs)) + this.#blockMs(unknownRate);
  }

  /** Time until all that is on its way has arrived. */
  #drainMs(unknownRate: number, nowMs: number): number {
    const owed = this.#owed(nowMs);
    const blockMs = this.#blockMs(unknownRate);
    const trainMs = this.#trainMs - nowMs + Math.min(this.#trainBlocks, owed) * blockMs;
    return Math.max((owed - this.#part) * blockMs, trainMs);
  }

  #blockMs(unknownRate: number): number {
    return (this.#blockBytes * 1000) / this.rate(Math.min(unknownRate, this.#mostRate));
  }

  /** Blocks on their way, with those cancelled too late. */
  #owed(nowMs: number): number {
    return this.outstanding + this.late.due(nowMs);
  }

  /** Share of the next block that has arrived. */
  get #part(): number {
    return Math.min(this.#partBytes / this.#blockBytes, 1);
  }

  /** Time since its last sign of life while it owed something. */
  silenceMs(nowMs: number): number {
    return this.outstanding === 0 ? 0 : nowMs - Math.max(this.busySinceMs, this.lastDataMs);
  }

  /** Time until a ranked request is likely to be served; the longer the silence, the longer this gets. */
  remainingMs(request: BlockRequest, unknownRate: number, nowMs: number): number {
    const blockMs = this.#blockMs(unknownRate);
    const sinceMs = nowMs - Math.max(this.lastDataMs, this.busySinceMs + this.rttMs);
    const overdueMs = Math.max(0, sinceMs - blockMs);
    const blocks = request.rank + 1 + this.late.due(nowMs) - this.#part;
    return blocks * blockMs - Math.min(sinceMs, blockMs) + 2 * overdueMs;
  }

  onBytes(bytes: number, nowMs: number): void {
    this.#noticePause(nowMs);
    this.lastDataMs = nowMs;
    this.#partBytes += bytes;
    if (this.#busyBytes === 0) [this.#begunMs, this.#begunBytes] = [nowMs, bytes];
    this.#busyBytes += bytes;
    this.#rate.add(bytes, nowMs);
  }

  /**
   * Data came after a silence: had the far end run dry? Yes, if the burst before was shorter than the silence and
   * served everything requested before it; a link that is merely slow always owes something older.
   */
  #noticePause(nowMs: number): void {
    if (this.#pauseMs > 0 && nowMs - this.#pauseSeenMs > PAUSE_MEMORY_MS) this.#pauseMs = 0;
    const silenceMs = nowMs - this.lastDataMs;
    if (silenceMs < Math.max(MIN_PAUSE_MS, this.#route.ms + this.#tuning.readerSlackMs)) return;
    const { oldest } = this;
    const burstMs = this.#burstMs;
    const burstBlocks = this.#burstBlocks;
    this.#burstMs = nowMs;
    this.#burstBlocks = 0;
    // It was idle in between, or cut off for long: no evidence.
    if (oldest === null || this.busySinceMs > this.lastDataMs || silenceMs > 2 * MAX_PAUSE_MS) return;
    if (burstBlocks < 2 || this.lastDataMs - burstMs > silenceMs || oldest.sentMs < burstMs - this.#route.ms) return;
    const pauseMs = Math.min(silenceMs, MAX_PAUSE_MS);
    this.#pauseSeenMs = nowMs;
    if (pauseMs > this.#pauseMs || nowMs - this.#pauseSetMs > PAUSE_MEMORY_MS) {
      this.#pauseMs = pauseMs;
      this.#pauseSetMs = nowMs;
    }
    if (!this.slowStart) this.window = this.outstanding;
    this.slowStart = true;
  }

  /** A block of this length is whole, whether it was wanted or not. */
  onWhole(bytes = this.#blockBytes): void {
    this.#partBytes = Math.max(0, this.#partBytes - bytes);
  }

  /** The block of `request` came. */
  onBlock(request: BlockRequest, slackMs: number, nowMs: number): void {
    this.doubtful = false;
    this.#burstBlocks++;
    // It would look as if the round trip was a few milliseconds.
    if (request.repeated) return;
    const latencyMs = nowMs - request.sentMs;
    this.#route.add(latencyMs, nowMs);
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
    if (this.slowStart && !this.isSlow) return Math.min(this.window, cap);
    const blocks = Math.ceil((this.rate(1) * (this.rttMs + slackMs)) / 1000 / this.#blockBytes) + 1;
    return Math.min(Math.max(blocks, 2), cap);
  }

  /** Which blocks may be requested from it at `nowMs`. */
  room(slackMs: number, share: number, nowMs: number): Room {
    const depth = this.depth(slackMs, share);
    const owed = this.#owed(nowMs);
    if (!this.presumed && !this.#isFull(owed, depth, slackMs)) return "any";
    if (this.outstanding < this.#firstDepth(depth, share)) return "critical";
    if (this.presumed || this.outstanding >= this.limit) return "none";
    return this.#isFull(this.outstanding - this.strays, depth, slackMs) ? "none" : "awaited";
  }

  /** Whether `blocks` on their way last for a round trip and the slack. */
  #isFull(blocks: number, depth: number, slackMs: number): boolean {
    if (blocks >= depth || blocks === 0 || this.#pauseMs !== 0) return blocks >= depth;
    if (!this.isSlow && (!this.measured || this.slowStart || blocks < 2)) return false;
    return (blocks - this.#part) * this.#blockMs(Infinity) > this.rttMs + slackMs;
  }

  /** Requests that may be outstanding for critical blocks. */
  criticalDepth(slackMs: number, share: number): number {
    const depth = this.depth(slackMs, share);
    return Math.max(depth, this.#firstDepth(depth, share));
  }

  /** The same until the first depth's worth of blocks has arrived, 0 after that. */
  #firstDepth(depth: number, share: number): number {
    const first = Math.min(share, this.#tuning.firstCriticalBlocks);
    // TCP starts slowly: until then the rate says little. After a `restart` the depth stays small.
    if (
      this.isSlow || this.#rate.countedBytes >= first * this.#blockBytes || this.window < this.#tuning.firstDepthBlocks
    ) return 0;
    return Math.min(Math.max(depth, first), this.limit, this.#tuning.depthCapBlocks);
  }
}
