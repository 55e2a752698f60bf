/** Requests what pushes did not bring. */
import { BLOCK_BYTES } from "../../../wire/types.ts";
import { blockCount, blockLength } from "../../header.ts";
import type { LivePeer, OwnRequest } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import type { Parents } from "../trees/parents.ts";
import type { PieceEntry, PieceWindow } from "../stream/piece-window.ts";
import { UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import { isQuiet } from "../neighbour/silence.ts";
import { blockKey } from "../stream/substreams.ts";

/** Spoilt blocks remembered: as many as a dozen poisoners send before they are banned. */
const MAX_SPOILT = 256;

/** True when pushes had enough time to bring it. */
function isLate(entry: PieceEntry, nowMs: number): boolean {
  if (entry.seenMs === null || nowMs - entry.seenMs < POLICY.pullAfterMs) return false;
  if (entry.commonMs !== null) return nowMs - entry.commonMs >= POLICY.pullAfterCommonMs;
  return nowMs - entry.seenMs >= 2 * POLICY.pullAfterMs;
}

/** How long the line of `peer` takes for a block by its own report, up to `POLICY.moveRequestMs`, ms. */
function serviceMs({ upBytesPerS }: LivePeer): number {
  return upBytesPerS === null ? 0 : Math.min(POLICY.moveRequestMs, BLOCK_BYTES / Math.max(1, upBytesPerS) * 1000);
}

/** What is noted about one that is asked. */
interface Asked {
  /** Monotonic ms until which it gets no request, because it rejected one, or serves one late. */
  afterMs: number;
  /** Monotonic ms at which it was asked for a proof for the first time; null before. */
  proofMs: number | null;
}

/** Requests of ours. */
export class Puller {
  readonly #view: NodeView;
  readonly #parents: Parents;
  /** Block → the peer that was asked last. */
  readonly #asked = new Map<number, LivePeer>();
  readonly #notes = new Notes<Asked>(() => ({ afterMs: -Infinity, proofMs: null }));
  /** Blocks with a false copy: nobody will send them again unless asked. */
  readonly #spoilt = new Set<number>();
  /** Readers wait for pieces up to here. */
  #urgentUntil = -1;

  constructor(view: NodeView, parents: Parents) {
    this.#view = view;
    this.#parents = parents;
  }

  get #window(): PieceWindow {
    return this.#view.window;
  }

  /**
   * Requests missing pieces from `from` on, oldest first. Pieces up to `urgentUntil` and blocks that no parent brings
   * are requested at once; others once a neighbour has had them for 0.8 s.
   */
  tick(from: number, urgentUntil: number, nowMs: number): void {
    this.#urgentUntil = urgentUntil;
    const newest = this.#window.newest?.seq ?? -1;
    const { rate } = this.#view;
    const to = newest + rate.pieces(POLICY.reachMs, POLICY.leastPiecesInReach);
    const oldest = newest - rate.pieces(POLICY.reachMs, POLICY.leastPiecesInReach);
    for (let seq = Math.max(from, this.#window.base, oldest); seq <= to; seq++) {
      const entry = this.#window.get(seq);
      if (entry === undefined || entry.seenMs === null) continue;
      if (entry.header !== null && entry.missing === 0) continue;
      const isAwaited = seq > urgentUntil && !isLate(entry, nowMs);
      if (isAwaited && nowMs - entry.seenMs < POLICY.pullUnpushedMs) continue;
      this.#pull(entry, isAwaited, nowMs);
    }
  }

  /** Asks `peer` for the beginning of a block that has arrived, unless another request to it is open. */
  probe(peer: LivePeer, seq: number, block: number, nowMs: number): void {
    const entry = this.#window.get(seq);
    const notes = this.#notes.of(peer);
    const isSnubbed = this.#view.conduct.isSnubbed(peer, nowMs);
    if (peer.requests.size > 0 || isSnubbed || nowMs < notes.afterMs || entry?.header == null) return;
    notes.proofMs ??= nowMs;
    const bytes = Math.min(POLICY.proofBytes, blockLength(entry.header.lengthBytes, block));
    peer.requests.set(blockKey(seq, block), { seq, block, bytes, atMs: nowMs });
    peer.link.request(seq, block * BLOCK_BYTES, bytes);
  }

  /** Monotonic ms at which `peer` was asked for a proof for the first time; null before. */
  proofAskedMs(peer: LivePeer): number | null {
    return this.#notes.of(peer).proofMs;
  }

  /** A block has come, or is no longer wanted: cancels its requests at all peers but `from`. */
  arrived(seq: number, block: number, from: LivePeer | null, lengthBytes: number): void {
    const key = blockKey(seq, block);
    this.#spoilt.delete(key);
    from?.requests.delete(key);
    const peer = this.#asked.get(key);
    if (peer === undefined) return;
    this.#asked.delete(key);
    if (peer === from || !peer.requests.delete(key)) return;
    if (!peer.closed) peer.link.cancel(seq, block * BLOCK_BYTES, lengthBytes);
  }

  /** A false copy of this block came. */
  spoiled(seq: number, block: number): void {
    for (const key of this.#spoilt) if (key < blockKey(this.#window.base, 0)) this.#spoilt.delete(key);
    if (this.#spoilt.size < MAX_SPOILT) this.#spoilt.add(blockKey(seq, block));
  }

  /** `peer` refused to serve this block. */
  rejected(peer: LivePeer, seq: number, block: number, nowMs: number): void {
    this.#notes.of(peer).afterMs = nowMs + POLICY.rejectedMs * (0.5 + this.#view.random());
    const key = blockKey(seq, block);
    if (peer.requests.delete(key) && this.#asked.get(key) === peer) this.#asked.delete(key);
  }

  /** A peer left. */
  dropPeer(peer: LivePeer): void {
    for (const key of peer.requests.keys()) if (this.#asked.get(key) === peer) this.#asked.delete(key);
    peer.requests.clear();
  }

  #pull(entry: PieceEntry, onlyUnpushed: boolean, nowMs: number): void {
    // The header comes with the first block.
    const count = entry.header === null ? 1 : blockCount(entry.header.lengthBytes);
    for (let block = 0; block < count; block++) {
      if (entry.blocks[block] != null) continue;
      const key = blockKey(entry.seq, block);
      if (this.#asked.has(key)) continue;
      const isPushed = this.#parents.depth(this.#view.substreamOf(entry.seq, block)) !== UNFED;
      if (onlyUnpushed && !this.#spoilt.has(key) && isPushed) continue;
      const peer = this.#choose(entry.seq, key, nowMs);
      if (peer === null) return;
      const bytes = entry.header === null ? BLOCK_BYTES : blockLength(entry.header.lengthBytes, block);
      peer.requests.set(key, { seq: entry.seq, block, bytes, atMs: nowMs });
      this.#asked.set(key, peer);
      peer.link.request(entry.seq, block * BLOCK_BYTES, bytes);
    }
  }

  #choose(seq: number, key: number, nowMs: number): LivePeer | null {
    let best: LivePeer | null = null;
    let bestCost = Infinity;
    for (const peer of this.#view.peers) {
      if (peer.closed || peer.requests.size >= POLICY.requestsPerPeer || !peer.has(seq) || peer.requests.has(key)) {
        continue;
      }
      if (!this.#mayAsk(peer, nowMs) || peer.upBytesPerS === 0 || isQuiet(peer, nowMs)) continue;
      if (peer.requests.size > 0 && (peer.requests.size + 1) * serviceMs(peer) > POLICY.moveRequestMs) continue;
      // Spare the source, because all trees start there; others have the piece by now.
      const takesMs = (peer.rttMs ?? 100) + (peer.requests.size + 1) * serviceMs(peer);
      const cost = peer.requests.size + takesMs / 200 + this.#view.random() * 2 +
        (peer.isSource ? 3 : 0) + (peer.hasRoom ? 0 : 2) +
        (peer.isProven || !this.#view.isWary ? 0 : 1);
      if (cost < bestCost) [best, bestCost] = [peer, cost];
    }
    return best;
  }

  /** False while `peer` is given a rest. */
  #mayAsk(peer: LivePeer, nowMs: number): boolean {
    return nowMs >= this.#notes.of(peer).afterMs && !this.#view.conduct.isSnubbed(peer, nowMs);
  }

  /** Withdraws a request that a reader waits for, if another neighbour may serve it sooner. */
  #move(key: number, request: OwnRequest, peer: LivePeer, nowMs: number): void {
    const { seq, block, bytes, atMs } = request;
    if (seq > this.#urgentUntil || bytes <= POLICY.proofBytes || !this.#isElsewhere(seq, peer, nowMs)) return;
    this.#asked.delete(key);
    peer.link.cancel(seq, block * BLOCK_BYTES, bytes);
    this.#notes.of(peer).afterMs = nowMs + POLICY.moveRequestMs;
    // One that has sent nothing since keeps the request: it is snubbed if that goes on.
    if (peer.lastBlockMs >= atMs) peer.requests.delete(key);
  }

  /** True when a neighbour other than `than` has the piece, and little to do for us. */
  #isElsewhere(seq: number, than: LivePeer, nowMs: number): boolean {
    for (const peer of this.#view.peers) {
      const isFree = peer !== than && peer.has(seq) && peer.requests.size < 2;
      if (isFree && nowMs >= this.#notes.of(peer).afterMs) return true;
    }
    return false;
  }

  /** Moves requests that readers wait for, and gives up those that were not served in time. */
  expire(nowMs: number): void {
    for (const peer of this.#view.peers) {
      for (const [key, request] of peer.requests) {
        if (nowMs - request.atMs < POLICY.moveRequestMs + serviceMs(peer)) break;
        if (nowMs - request.atMs < POLICY.requestTimeoutMs) {
          if (this.#asked.get(key) === peer) this.#move(key, request, peer, nowMs);
          continue;
        }
        peer.requests.delete(key);
        if (this.#asked.get(key) === peer) this.#asked.delete(key);
        peer.link.cancel(request.seq, request.block * BLOCK_BYTES, request.bytes);
        // Slow is not false: a peer that delivered in the meantime is busy.
        if (peer.lastBlockMs < request.atMs && request.bytes > POLICY.proofBytes) {
          this.#view.conduct.snub(peer, nowMs);
        }
      }
    }
  }
}
