/**
 * When a block that was handed over counts as gone. The node hands on no more than a little beyond that, so this is what
 * paces it, and what it measures the uplink by.
 */
import type { Clock, Timer } from "../../ports.ts";
import type { TokenBucket } from "../../swarm/token-bucket.ts";

/** Bytes that may wait in the process for one connection and count as gone, so that a turn's blocks leave together. */
const SLACK_BYTES = 64 * 1024;
/** Time between two looks at what waits, ms. */
const LOOK_MS = 10;
/** A connection that takes nothing for this long holds the others up no longer, ms. */
const STALLED_MS = 1000;
/**
 * The same while most others take at once what they are given, ms: then it is not the line that is full. It is less than
 * what a player that joined 0.3 s behind the edge can lose without missing a piece.
 */
const ALONE_MS = 250;
/** Connections to which something was written so long ago say how full the line is, ms. */
const RECENT_MS = 1000;

/** One connection, as far as it matters here. */
export interface UplinkLane {
  /** Bytes queued for it in the process. */
  readonly queuedBytes: number;
}

interface Waiting {
  readonly lane: UplinkLane;
  readonly bytes: number;
  /** Monotonic ms at which the line has carried it, were it of the limit's rate. */
  readonly carriedMs: number;
}

interface LaneState {
  pendingBytes: number;
  queuedBytes: number;
  /** Monotonic ms of the last progress. */
  movedMs: number;
  /** Monotonic ms at which something was written to it last. */
  writtenMs: number;
  /** Monotonic ms at which nothing waited in the process last. */
  emptyMs: number;
}

/** What an uplink needs. */
export interface UplinkOptions {
  readonly clock: Clock;
  /** Bytes a second; 0 = no limit of this swarm's own. */
  readonly limitBytesPerS: number;
  /** The engine's limit. */
  readonly bucket: TokenBucket;
  /**
   * So many bytes have gone, and `asideBytes` wait for a connection that takes nothing while the line is free: those say
   * nothing of its speed. Called in a turn of its own.
   */
  readonly gone: (bytes: number, asideBytes: number) => void;
}

/** The uplink of one swarm. */
export class Uplink {
  private readonly options: UplinkOptions;
  private waiting: Waiting[] = [];
  private readonly lanes = new Map<UplinkLane, LaneState>();
  private carriedMs = 0;
  private scheduled = false;
  private timer: Timer | null = null;
  private closed = false;

  constructor(options: UplinkOptions) {
    this.options = options;
  }

  /** Payload handed to `lane` that does not count as gone. */
  pendingBytes(lane: UplinkLane): number {
    return this.lanes.get(lane)?.pendingBytes ?? 0;
  }

  /** How long `lane` has taken nothing of what waits for it, ms. */
  stalledMs(lane: UplinkLane): number {
    const state = this.lanes.get(lane);
    if (state === undefined) return 0;
    const nowMs = this.options.clock.monotonic();
    observe(lane, state, nowMs);
    return nowMs - state.movedMs;
  }

  /** True when that has been too long: what is sent to it is wasted. */
  isStalled(lane: UplinkLane): boolean {
    return this.stalledMs(lane) > STALLED_MS;
  }

  /** `bytes` of payload were just written to `lane`. */
  written(lane: UplinkLane, bytes: number): void {
    const { clock, limitBytesPerS, bucket } = this.options;
    const nowMs = clock.monotonic();
    bucket.spend(bytes);
    if (limitBytesPerS > 0) this.carriedMs = Math.max(this.carriedMs, nowMs) + bytes / limitBytesPerS * 1000;
    let state = this.lanes.get(lane);
    if (state === undefined) {
      state = { pendingBytes: 0, queuedBytes: 0, movedMs: nowMs, writtenMs: nowMs, emptyMs: -Infinity };
      this.lanes.set(lane, state);
    }
    observe(lane, state, nowMs);
    state.writtenMs = nowMs;
    state.pendingBytes += bytes;
    this.waiting.push({ lane, bytes, carriedMs: limitBytesPerS > 0 ? this.carriedMs : nowMs });
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(() => {
      this.scheduled = false;
      this.look();
    });
  }

  /** `lane` is gone, with what waited for it. */
  drop(lane: UplinkLane): void {
    this.lanes.delete(lane);
    this.waiting = this.waiting.filter((item) => item.lane !== lane);
  }

  /** Sees what has gone meanwhile. */
  look(): void {
    if (this.closed) return;
    const { clock, bucket, gone } = this.options;
    const nowMs = clock.monotonic();
    for (const [lane, state] of this.lanes) observe(lane, state, nowMs);
    const isFree = this.isFree(nowMs);
    let bytes = 0;
    let asideBytes = 0;
    let nextMs = Infinity;
    const left: Waiting[] = [];
    for (const item of this.waiting) {
      const state = this.lanes.get(item.lane)!;
      const isAside = isFree && nowMs - state.movedMs > ALONE_MS;
      const isTaken = state.queuedBytes <= SLACK_BYTES || isAside || nowMs - state.movedMs > STALLED_MS;
      if (item.carriedMs <= nowMs && isTaken && bucket.open) {
        if (isAside) asideBytes += item.bytes;
        else bytes += item.bytes;
        state.pendingBytes -= item.bytes;
      } else {
        left.push(item);
        nextMs = Math.min(nextMs, Math.max(item.carriedMs, isTaken && bucket.open ? 0 : nowMs + LOOK_MS));
      }
    }
    this.waiting = left;
    this.timer?.cancel();
    this.timer = null;
    if (left.length > 0) this.timer = clock.setTimeout(() => this.look(), Math.max(1, nextMs - nowMs));
    if (bytes + asideBytes > 0) gone(bytes, asideBytes);
  }

  /** True when most connections take what they are given. */
  private isFree(nowMs: number): boolean {
    let recent = 0;
    let free = 0;
    for (const { writtenMs, movedMs, emptyMs } of this.lanes.values()) {
      if (nowMs - writtenMs > RECENT_MS || nowMs - movedMs > STALLED_MS) continue;
      recent++;
      if (nowMs - emptyMs <= ALONE_MS) free++;
    }
    return free > 0 && 2 * free >= recent;
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
    this.waiting = [];
    this.lanes.clear();
  }
}

/** Notes progress: something was taken, or there is nothing much to take. */
function observe(lane: UplinkLane, state: LaneState, nowMs: number): void {
  const { queuedBytes } = lane;
  if (queuedBytes < state.queuedBytes || queuedBytes <= SLACK_BYTES) state.movedMs = nowMs;
  if (queuedBytes === 0) state.emptyMs = nowMs;
  state.queuedBytes = queuedBytes;
}
