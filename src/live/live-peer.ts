/** One neighbour in a live swarm: what the network offers to reach it, and what is known of it. */
import type { MillraceError } from "../errors.ts";
import { encodeLiveMessage, type LiveMessage, windowHas, type WindowMessage, windowNewest } from "./messages.ts";
import { POLICY } from "./policy.ts";
import { TokenBucket } from "./token-bucket.ts";

/** A connection as the live swarm sees it. Methods never throw and never call back at once. */
export interface LiveLink {
  /** Sends a `live1` message. */
  send(message: Uint8Array): void;
  request(seq: number, offset: number, length: number): void;
  cancel(seq: number, offset: number, length: number): void;
  reject(seq: number, offset: number, length: number): void;
  /** Sends a block, asked for or pushed. */
  piece(seq: number, offset: number, data: Uint8Array): void;
  /** Payload handed over and not yet gone. */
  readonly bufferedBytes: number;
  /** Hangs up; `error` `protocol_violation` bans the peer. */
  close(error: MillraceError | null): void;
}

/** What the handshake says: `live: {v, role, up}`. */
export interface LivePeerInfo {
  readonly role: "source" | "viewer";
  /** Uplink as told, bytes a second; null when it isn't. Decides about places in the trees, never about trust. */
  readonly upBytesPerS: number | null;
}

/** A request of ours. */
export interface OwnRequest {
  readonly seq: number;
  readonly block: number;
  readonly atMs: number;
}

/** State of a neighbour. */
export class LivePeer {
  readonly link: LiveLink;
  readonly info: LivePeerInfo;
  readonly connectedMs: number;
  readonly headerBucket: TokenBucket;
  readonly pongBucket: TokenBucket;
  closed = false;
  window: WindowMessage | null = null;
  /** Newest piece of its WINDOW; -1 without. */
  newestSeq = -1;
  /** How far behind the newest neighbour it was, pieces, averaged. */
  lagPieces = 0;
  forgedHeaders = 0;
  /** Substreams that it pushes to us, and we to it. */
  parentMask = 0;
  childMask = 0;
  /** Headers that it is known to have, oldest first. */
  readonly headers = new Set<number>();
  /** Headers of it under verification, with the blocks that wait for them. */
  readonly verifying = new Map<number, (() => void)[]>();
  waitingBlocks = 0;
  readonly requests = new Map<number, OwnRequest>();
  /** Substream → monotonic ms since when it is our child. */
  readonly childSinceMs = new Float64Array(8);
  /** Substream → monotonic ms until which it isn't asked to be parent. */
  readonly refusedUntilMs = new Float64Array(8);
  snubbedUntilMs = -Infinity;
  /** It rejected a request: monotonic ms until which it gets no other. */
  pullAfterMs = -Infinity;
  lastBlockMs = -Infinity;
  /** Verified payload that it has sent, bytes. */
  deliveredBytes = 0;
  rttMs: number | null = null;
  pingNonce = 0n;
  pingAtMs = -Infinity;
  windowVersion = -1;
  windowSentMs = -Infinity;

  constructor(link: LiveLink, info: LivePeerInfo, nowMs: number) {
    this.link = link;
    this.info = info;
    this.connectedMs = nowMs;
    this.headerBucket = new TokenBucket(POLICY.headersPerS, nowMs);
    this.pongBucket = new TokenBucket(POLICY.pongsPerS, nowMs);
  }

  send(message: LiveMessage): void {
    if (!this.closed) this.link.send(encodeLiveMessage(message));
  }

  has(seq: number): boolean {
    return this.window !== null && windowHas(this.window, seq);
  }

  setWindow(window: WindowMessage): void {
    this.window = { ...window, bitmap: window.bitmap.slice() };
    this.newestSeq = windowNewest(window);
  }

  /** Notes that it has the header of `seq`; answers whether that is new. Remembers the last few hundred. */
  knowsHeader(seq: number): boolean {
    if (this.headers.has(seq)) return false;
    this.headers.add(seq);
    if (this.headers.size > 512) this.headers.delete(this.headers.values().next().value!);
    return true;
  }

  isNewcomer(nowMs: number): boolean {
    return nowMs - this.connectedMs < POLICY.newcomerMs;
  }

  isSnubbed(nowMs: number): boolean {
    return nowMs < this.snubbedUntilMs;
  }
}
