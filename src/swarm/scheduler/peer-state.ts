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
 * For clients that answer on a timer (`AnswerPauses`) the pause counts as part of the round trip, or they would be silent
 * most of the time.
 */
import type { PieceOf, RequestAt } from "./active-piece.ts";
import { AnswerPauses } from "./answer-pauses.ts";
import { BaseRoundTrip } from "./base-round-trip.ts";
import { DeliveryRate } from "./delivery-rate.ts";
import { Holdings } from "./holdings.ts";
import { LateBlocks } from "./late-blocks.ts";
import { Permits } from "./permits.ts";
import { RequestQueue } from "./request-queue.ts";
import { SuggestedPieces } from "./suggested-pieces.ts";
import type { Tuning } from "./tuning.ts";

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
  /** What it has. */
  readonly holdings = new Holdings();
  /** What it would serve. */
  readonly permits = new Permits();
  readonly suggested = new SuggestedPieces();
  /** Blocks that may come although no request for them is recorded. */
  readonly late = new LateBlocks();
  readonly #queue = new RequestQueue<PeerState>();
  #fast: boolean;
  #limit: number;
  #presumed = false;
  #doubtful = false;
  #stalled = false;
  /** Since when it has owed something without a break. */
  #busySinceMs = 0;
  #lastDataMs = -Infinity;
  #slowStart = true;
  #window: number;
  readonly #tuning: Tuning;
  readonly #blockBytes: number;
  readonly #rate: DeliveryRate;
  readonly #route: BaseRoundTrip;
  readonly #pauses: AnswerPauses;
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
    this.#limit = limit === "web seed" ? 0 : limit;
    this.#fast = fast;
    this.#tuning = tuning;
    this.#blockBytes = blockBytes;
    this.#rate = new DeliveryRate(blockBytes, tuning);
    this.#route = new BaseRoundTrip(rttMs, tuning.unknownRttMs);
    this.#pauses = new AnswerPauses(this.#route, tuning.readerSlackMs);
    this.#window = tuning.firstDepthBlocks;
  }

  /** Its handshake is not done: we assume that it has everything and does not choke us. */
  get presumed(): boolean {
    return this.#presumed;
  }

  /** True while a peer that was asked before its handshake was done has not sent a block. */
  get doubtful(): boolean {
    return this.#doubtful;
  }

  /** Silent too long: it is only probed. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** The peer speaks BEP 6. */
  get fast(): boolean {
    return this.#fast;
  }

  /** Requests that it may have at once. */
  get limit(): number {
    return this.#limit;
  }

  get outstanding(): number {
    return this.#queue.count;
  }

  get oldest(): BlockRequest | null {
    return this.#queue.oldest;
  }

  get lastDataMs(): number {
    return this.#lastDataMs;
  }

  get seed(): boolean {
    return this.holdings.isSeed;
  }

  get choked(): boolean {
    return this.permits.isChoking;
  }

  has(piece: number): boolean {
    return this.holdings.has(piece);
  }

  /** Whether it may be asked for the piece now (it has it, isn't choking it, didn't just reject it). */
  offers(piece: number, nowMs: number): boolean {
    return this.#presumed || (this.holdings.has(piece) && this.permits.grants(piece, nowMs));
  }

  /** Whether it could be asked for anything. */
  get usable(): boolean {
    return !this.#stalled && (this.#presumed || this.permits.isOpen);
  }

  /** Whether it could be sent a request. */
  get takesRequests(): boolean {
    return this.usable && !this.isWebSeed;
  }

  /** The peer is asked before its handshake is done. */
  presume(): void {
    this.#presumed = this.#doubtful = true;
  }

  /** What it has not sent is not held against its handshake any more. */
  trust(): void {
    this.#doubtful = false;
  }

  /** The peer gets no requests until `restart`: it fell silent, or left. */
  stall(): void {
    this.#stalled = true;
  }

  setLimit(limit: number): void {
    this.#limit = limit;
  }

  /** We were held up ourselves: its silence counts from now on. */
  excuse(nowMs: number): void {
    if (this.outstanding > 0) this.#busySinceMs = nowMs;
  }

  /** Called after the handshake, which shows more of the round trip than connecting did. */
  settle(limit: number, fast: boolean, rttMs: number | null): void {
    this.#presumed = false;
    this.#limit = limit;
    this.#fast = fast;
    if (rttMs !== null) this.#route.set(rttMs);
  }

  /** Notes a block without a request any more that was requested at `sentMs` and is most likely on its way. */
  expectCancelled(key: number, sentMs: number): void {
    const rate = this.rate(this.#tuning.unknownBytesPerSecond);
    const queuedMs = ((this.outstanding + 1) * this.#blockBytes * 1000) / rate;
    this.late.addSent(key, sentMs, sentMs + this.rttMs + queuedMs);
  }

  enqueue(request: BlockRequest): void {
    if (this.oldest === null) {
      this.#busySinceMs = request.sentMs;
      this.#rate.pause();
      this.#partBytes = this.#busyBytes = 0;
    }
    const { sentMs } = request;
    const { rttMs } = this;
    const drainMs = this.#drainMs(this.#tuning.unknownBytesPerSecond, sentMs);
    if (drainMs < rttMs) {
      this.#trainMs = sentMs + rttMs;
      this.#trainBlocks = 0;
    }
    request.dueMs = sentMs + Math.max(drainMs, rttMs) + this.#blockMs(this.#tuning.unknownBytesPerSecond);
    this.#trainBlocks++;
    this.#queue.push(request);
  }

  /**
   * Keeps a request that nobody wants any more if a cancel would come too late; false if not. A player that returns at
   * once would otherwise have the block sent twice.
   */
  strand(request: BlockRequest, nowMs: number): boolean {
    if (request.stray) return true;
    const blockMs = this.#blockMs(this.#tuning.unknownBytesPerSecond);
    if (this.isWebSeed || this.#presumed || request.dueMs > nowMs + this.rttMs + blockMs) return false;
    this.#queue.strand(request);
    return true;
  }

  dequeue(request: BlockRequest): void {
    this.#queue.remove(request);
  }

  /** Numbers its requests by their position in its queue. */
  rank(): void {
    this.#queue.rank();
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
    const sinceMs = !this.outstanding || (isProven && !this.#busyBytes) ? 0 : nowMs - this.#busySinceMs - this.rttMs;
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
    return this.#route.ms + this.#pauses.pauseMs;
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
    return this.outstanding === 0 ? 0 : nowMs - Math.max(this.#busySinceMs, this.#lastDataMs);
  }

  /** Time until a ranked request is likely to be served; the longer the silence, the longer this gets. */
  remainingMs(request: BlockRequest, unknownRate: number, nowMs: number): number {
    const blockMs = this.#blockMs(unknownRate);
    const sinceMs = nowMs - Math.max(this.#lastDataMs, this.#busySinceMs + this.rttMs);
    const overdueMs = Math.max(0, sinceMs - blockMs);
    const blocks = request.rank + 1 + this.late.due(nowMs) - this.#part;
    return blocks * blockMs - Math.min(sinceMs, blockMs) + 2 * overdueMs;
  }

  onBytes(bytes: number, nowMs: number): void {
    if (this.#pauses.notice(nowMs, this.#lastDataMs, this.#busySinceMs, this.oldest?.sentMs ?? null)) {
      if (!this.#slowStart) this.#window = this.outstanding;
      this.#slowStart = true;
    }
    this.#lastDataMs = nowMs;
    this.#partBytes += bytes;
    if (this.#busyBytes === 0) [this.#begunMs, this.#begunBytes] = [nowMs, bytes];
    this.#busyBytes += bytes;
    this.#rate.add(bytes, nowMs);
  }

  /** A block of this length is whole, whether it was wanted or not. */
  onWhole(bytes = this.#blockBytes): void {
    this.#partBytes = Math.max(0, this.#partBytes - bytes);
  }

  /** The block of `request` came. */
  onBlock(request: BlockRequest, slackMs: number, nowMs: number): void {
    this.#doubtful = false;
    this.#pauses.block();
    // It would look as if the round trip was a few milliseconds.
    if (request.repeated) return;
    const latencyMs = nowMs - request.sentMs;
    this.#route.add(latencyMs, nowMs);
    if (!this.#slowStart) return;
    if (this.measured && latencyMs - this.rttMs > slackMs) this.#slowStart = false;
    else if (this.#window < this.#tuning.depthCapBlocks) this.#window++;
  }

  /** Starts over with a shallow pipeline, after a stall. */
  restart(): void {
    this.#stalled = false;
    this.#slowStart = true;
    this.#window = 2;
  }

  /**
   * Requests that may be outstanding; while the peer's rate is unknown at most `share`, its part of the critical
   * blocks.
   */
  depth(slackMs: number, share: number): number {
    const cap = Math.min(this.#limit, this.#tuning.depthCapBlocks);
    if (!this.measured) return Math.min(this.#window, Math.max(share, 2), cap);
    if (this.#slowStart && !this.isSlow) return Math.min(this.#window, cap);
    const blocks = Math.ceil((this.rate(1) * (this.rttMs + slackMs)) / 1000 / this.#blockBytes) + 1;
    return Math.min(Math.max(blocks, 2), cap);
  }

  /** Which blocks may be requested from it at `nowMs`. */
  room(slackMs: number, share: number, nowMs: number): Room {
    const depth = this.depth(slackMs, share);
    const owed = this.#owed(nowMs);
    if (!this.#presumed && !this.#isFull(owed, depth, slackMs)) return "any";
    if (this.outstanding < this.#firstDepth(depth, share)) return "critical";
    if (this.#presumed || this.outstanding >= this.#limit) return "none";
    return this.#isFull(this.outstanding - this.#queue.strayCount, depth, slackMs) ? "none" : "awaited";
  }

  /** Whether `blocks` on their way last for a round trip and the slack. */
  #isFull(blocks: number, depth: number, slackMs: number): boolean {
    if (blocks >= depth || blocks === 0 || this.#pauses.pauseMs !== 0) return blocks >= depth;
    if (!this.isSlow && (!this.measured || this.#slowStart || blocks < 2)) return false;
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
      this.isSlow || this.#rate.countedBytes >= first * this.#blockBytes || this.#window < this.#tuning.firstDepthBlocks
    ) return 0;
    return Math.min(Math.max(depth, first), this.#limit, this.#tuning.depthCapBlocks);
  }
}
