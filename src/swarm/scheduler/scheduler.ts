/**
 * The VOD scheduler: which block is asked of which peer, and when.
 *
 * What it weighs, in order:
 * 1. *Deadlines.* Each reader has a critical span (what playback needs in the next seconds) and a read-ahead window.
 *    Blocks are handed out one by one, the most urgent first, to the peer that can deliver soonest, so a single piece
 *    is split over all peers and the first one is here after about a round trip plus piece ÷ total rate.
 * 2. *Shallow pipes.* What was asked for can't be called back once it sits in the far end's send buffer, so a seek
 *    waits for it. While somebody reads, a peer owes no more than its round trip and a few tens of milliseconds' worth.
 * 3. *No idle bandwidth.* Slow peers work ahead of the fast ones (see `Picker`) instead of being left out or holding
 *    up the line.
 * 4. *Doubt.* Silent, choking, rejecting and lying peers lose their requests to others within a second (see `Rescue`).
 *
 * Cost: per-block state exists only for pieces under way, requests are pooled and linked, picks go on where the last
 * one ended. Nothing on the block path depends on the size of the torrent; `scripts/bench/scheduler.ts` measures it.
 */
import { Core } from "./core.ts";
import { PeerState } from "./peer-state.ts";
import { Picker } from "./picker.ts";
import { type ActivePiece, blockHere, type BlockRequest, complete, have, missing } from "./pieces.ts";
import { Rarity } from "./rarity.ts";
import { ReaderState } from "./reader-state.ts";
import { Rescue } from "./rescue.ts";
import { defaultTuning, type Tuning } from "./tuning.ts";
import type { Millis, ReaderDemand, SchedulerActions, SchedulerApi, SchedulerShape } from "./types.ts";

/** A timer this late means that we were held up, not the peers. */
const pauseMs = 400;
/** A reader waits this long before peers count as slow. */
const slowMs = 1000;

/** By the time a peer would need for one more block, the soonest at the end. */
const latestFirst = (a: PeerState, b: PeerState): number => b.sortMs - a.sortMs || b.id - a.id;

/** See the module's header. One per torrent. */
export class Scheduler implements SchedulerApi {
  private readonly core: Core;
  private readonly picker: Picker;
  private readonly rescue: Rescue;
  private tickDueMs = Number.POSITIVE_INFINITY;
  private retryMs = 0;
  private readonly order: PeerState[] = [];
  /** When demand ended; null while there is some. */
  private idleSinceMs: number | null = Number.NEGATIVE_INFINITY;

  constructor(shape: SchedulerShape, actions: SchedulerActions, tuning: Partial<Tuning> = {}) {
    this.core = new Core(shape, actions, { ...defaultTuning, ...tuning });
    this.picker = new Picker(this.core);
    this.rescue = new Rescue(this.core);
  }

  // Peers

  addPeer(
    peer: number,
    nowMs: Millis,
    options: { requestQueueLimit: number; rttMs: number | null; fast: boolean },
  ): void {
    this.removePeer(peer, nowMs);
    const { core } = this;
    const { requestQueueLimit, rttMs, fast } = options;
    core.peers.set(peer, new PeerState(peer, requestQueueLimit, rttMs, fast, core.book.blockBytes, core.tuning));
  }

  removePeer(id: number, nowMs: Millis): void {
    const peer = this.core.peers.get(id);
    if (peer === undefined) return;
    this.core.peers.delete(id);
    this.core.releaseAll(peer, false);
    this.dropBits(peer);
    this.pumpAll(nowMs);
  }

  setRequestQueueLimit(peer: number, limit: number): void {
    const state = this.core.peers.get(peer);
    if (state !== undefined) state.limit = limit;
  }

  setRtt(peer: number, rttMs: number): void {
    const state = this.core.peers.get(peer);
    if (state !== undefined) state.baseMs = Math.min(state.baseMs, rttMs);
  }

  peerHas(id: number, piece: number, nowMs: Millis): void {
    const { book, rarity } = this.core;
    const peer = this.core.peers.get(id);
    if (peer === undefined || peer.has(piece) || !(piece >= 0 && piece < book.pieceCount)) return;
    peer.bits ??= new Uint8Array((book.pieceCount + 7) >> 3);
    peer.bits[piece >> 3]! |= 0x80 >> (piece & 7);
    book.availability[piece]!++;
    rarity?.moved(piece);
    if (book.state[piece] !== have) peer.useful++;
    this.offered(peer, nowMs);
  }

  peerBitfield(id: number, bytes: Uint8Array, nowMs: Millis): void {
    const { book, rarity } = this.core;
    const peer = this.core.peers.get(id);
    if (peer === undefined) return;
    this.dropBits(peer);
    const bits = new Uint8Array((book.pieceCount + 7) >> 3);
    bits.set(bytes.subarray(0, bits.length));
    let count = 0;
    for (let piece = 0; piece < book.pieceCount; piece++) {
      if ((bits[piece >> 3]! & (0x80 >> (piece & 7))) !== 0) count++;
    }
    if (count === book.pieceCount) return this.peerHasAll(id, nowMs);
    peer.bits = bits;
    for (let piece = 0; piece < book.pieceCount; piece++) {
      if ((bits[piece >> 3]! & (0x80 >> (piece & 7))) === 0) continue;
      book.availability[piece]!++;
      rarity?.moved(piece);
      if (book.state[piece] !== have) peer.useful++;
    }
    this.offered(peer, nowMs);
  }

  peerHasAll(id: number, nowMs: Millis): void {
    const peer = this.core.peers.get(id);
    if (peer === undefined) return;
    this.dropBits(peer);
    peer.seed = true;
    this.core.book.seeds++;
    this.offered(peer, nowMs);
  }

  private dropBits(peer: PeerState): void {
    const { book, rarity } = this.core;
    if (peer.seed) book.seeds--;
    const bits = peer.bits;
    peer.seed = false;
    peer.bits = null;
    peer.useful = 0;
    if (bits === null) return;
    for (let piece = 0; piece < book.pieceCount; piece++) {
      if ((bits[piece >> 3]! & (0x80 >> (piece & 7))) === 0) continue;
      book.availability[piece]!--;
      rarity?.moved(piece);
    }
  }

  private offered(peer: PeerState, nowMs: number): void {
    peer.idleVersion = -1;
    this.refreshInterest(peer, nowMs);
    this.pump(peer, nowMs);
  }

  allowedFast(id: number, piece: number, nowMs: Millis): void {
    const peer = this.core.peers.get(id);
    // BEP 6 suggests sets of 10; a peer that names more than 128 pieces is not taken at its word.
    if (peer === undefined || !peer.fast || (peer.allowed?.size ?? 0) >= 128) return;
    if (!(piece >= 0 && piece < this.core.book.pieceCount)) return;
    peer.allowed ??= new Set();
    peer.allowed.add(piece);
    peer.idleVersion = -1;
    this.pump(peer, nowMs);
  }

  choked(id: number, nowMs: Millis): void {
    const peer = this.core.peers.get(id);
    if (peer === undefined || peer.choked) return;
    peer.choked = true;
    // A choke voids requests (BEP 3), save those of the allowed fast set (BEP 6), so nothing needs cancelling.
    this.core.releaseAll(peer, false, (request) => !(peer.fast && peer.allowed?.has(request.part.piece)));
    this.pumpAll(nowMs);
  }

  unchoked(id: number, nowMs: Millis): void {
    const peer = this.core.peers.get(id);
    if (peer === undefined || !peer.choked) return;
    peer.choked = false;
    if (peer.stalled) peer.restart();
    peer.idleVersion = -1;
    this.pumpAll(nowMs);
  }

  // Data

  progress(id: number, bytes: number, nowMs: Millis): void {
    const peer = this.core.peers.get(id);
    if (peer === undefined) return;
    if (peer.stalled) {
      peer.restart();
      peer.idleVersion = -1;
    }
    peer.onBytes(bytes, nowMs);
  }

  blockReceived(id: number, piece: number, offset: number, nowMs: Millis): boolean {
    const { core } = this;
    const { book } = core;
    const peer = core.peers.get(id);
    if (peer === undefined) return false;
    const block = offset / book.blockBytes;
    const part = book.parts.get(piece);
    const request = part === undefined ? null : book.find(peer, part, block);
    let wanted = false;
    if (request === null) wanted = peer.takeLate(core.key(piece, block)) && part !== undefined;
    else {
      peer.onBlock(nowMs - request.sentMs, core.slackMs, nowMs);
      book.end(request);
      wanted = true;
    }
    if (part !== undefined && wanted) {
      if (part.state[block] === blockHere) wanted = false;
      else {
        book.arrived(part, block, id);
        for (let copy = part.asked[block]!; copy !== null; copy = part.asked[block]!) {
          const loser = copy.peer;
          core.release(copy, true);
          if (loser !== peer) this.pump(loser, nowMs);
        }
      }
    }
    this.pump(peer, nowMs);
    return wanted;
  }

  rejected(id: number, piece: number, offset: number, nowMs: Millis): void {
    const { core } = this;
    const peer = core.peers.get(id);
    if (peer === undefined) return;
    const block = offset / core.book.blockBytes;
    if (peer.takeLate(core.key(piece, block))) return;
    const part = core.book.parts.get(piece);
    const request = part === undefined ? null : core.book.find(peer, part, block);
    if (request === null) return;
    if (core.book.end(request)) core.freed(piece);
    if (peer.choked) peer.allowed?.delete(piece);
    else peer.avoid(piece, nowMs + core.tuning.rejectMs);
    this.pumpAll(nowMs);
  }

  pieceComplete(piece: number): boolean {
    return this.core.book.state[piece]! >= complete;
  }

  pieceVerified(piece: number, nowMs: Millis): void {
    const { core } = this;
    const { book } = core;
    if (book.state[piece] === have) return;
    core.rarity?.remove(piece);
    const part = book.parts.get(piece);
    if (part !== undefined) {
      this.endAll(part, true);
      core.abandoned.delete(part);
      book.deactivate(part, have);
    } else book.state[piece] = have;
    book.failed.delete(piece);
    book.missingCount--;
    for (const peer of core.peers.values()) {
      if (!peer.seed && peer.has(piece)) peer.useful--;
      if (!peer.seed ? peer.useful === 0 : book.missingCount === 0) this.refreshInterest(peer, nowMs);
    }
    if (!core.limited) return;
    core.limited = false;
    core.version++;
    this.pumpAll(nowMs);
  }

  pieceFailed(piece: number, nowMs: Millis): void {
    const { core } = this;
    const { book } = core;
    const part = book.parts.get(piece);
    if (part !== undefined) {
      // Older senders were banned or cleared by the host meanwhile: only the latest count. Somebody may be waiting for
      // a critical piece, so its first failure is mended by all peers at once and the host compares the blocks.
      const suspects = new Set(part.sources.filter((peer) => peer >= 0));
      book.failed.set(piece, { suspects, sole: book.failed.has(piece) || !core.critical(piece) });
      this.endAll(part, true);
      core.abandoned.delete(part);
      book.deactivate(part, missing);
    } else if (book.state[piece] === have) return this.pieceLost(piece, nowMs);
    core.reopened(piece);
    this.pumpAll(nowMs);
  }

  pieceLost(piece: number, nowMs: Millis): void {
    const { core } = this;
    const { book } = core;
    if (book.state[piece] !== have) return;
    book.state[piece] = missing;
    book.missingCount++;
    for (const peer of core.peers.values()) {
      if (!peer.seed && peer.has(piece)) peer.useful++;
      this.refreshInterest(peer, nowMs);
    }
    core.reopened(piece);
    this.pumpAll(nowMs);
  }

  private endAll(part: ActivePiece, tell: boolean): void {
    for (let block = 0; block < part.blocks; block++) {
      for (let copy = part.asked[block]!; copy !== null; copy = part.asked[block]!) this.core.release(copy, tell);
    }
  }

  blockSources(piece: number): Int32Array {
    return this.core.book.parts.get(piece)?.sources ?? new Int32Array(0);
  }

  contributors(piece: number): Map<number, number> {
    const counts = new Map<number, number>();
    for (const peer of this.blockSources(piece)) if (peer >= 0) counts.set(peer, (counts.get(peer) ?? 0) + 1);
    return counts;
  }

  // Demand

  setReader(id: number, demand: ReaderDemand, nowMs: Millis): void {
    const { core } = this;
    let reader = core.readers.get(id);
    if (reader === undefined) core.readers.set(id, reader = new ReaderState(id, core.book, core.tuning));
    const { first, windowEnd, criticalEnd, waitingEnd } = reader;
    const jumped = reader.update(demand, nowMs);
    this.noteWaiting(reader, nowMs);
    const moved = reader.first !== first || reader.windowEnd !== windowEnd || reader.criticalEnd !== criticalEnd;
    if (!moved && !jumped && reader.waitingEnd === waitingEnd) return;
    if (jumped) this.clearPipes();
    else if (reader.first !== first || reader.windowEnd < windowEnd) this.cancelUnwanted();
    this.demandChanged(nowMs);
  }

  removeReader(id: number, nowMs: Millis): void {
    if (!this.core.readers.delete(id)) return;
    this.cancelUnwanted();
    this.demandChanged(nowMs);
  }

  setBackground(range: { firstPiece: number; endPiece: number } | null, nowMs: Millis): void {
    const { core } = this;
    const end = range === null ? 0 : Math.min(range.endPiece, core.book.pieceCount);
    const first = range === null ? 0 : Math.max(range.firstPiece, 0);
    core.rarity = range === null ? null : new Rarity(core.book, first, Math.max(first, end), core.tuning.random);
    this.cancelUnwanted();
    this.demandChanged(nowMs);
  }

  private demandChanged(nowMs: number): void {
    const { core } = this;
    core.version++;
    const demand = core.readers.size > 0 || core.rarity !== null;
    const before = this.idleSinceMs === null;
    this.idleSinceMs = demand ? null : this.idleSinceMs ?? nowMs;
    if (demand !== before) { for (const peer of core.peers.values()) this.refreshInterest(peer, nowMs); }
    this.pumpAll(nowMs);
  }

  /** After a seek: everything that isn't critical somewhere makes room. */
  private clearPipes(): void {
    const { core } = this;
    for (const peer of core.peers.values()) {
      core.releaseAll(peer, true, (request) => !core.critical(request.part.piece));
    }
    core.abandon();
  }

  private cancelUnwanted(): void {
    const { core } = this;
    const gone = (request: BlockRequest): boolean => {
      const piece = request.part.piece;
      return !core.wanted(piece) && !core.rarity?.covers(piece);
    };
    for (const peer of core.peers.values()) if (peer.outstanding > 0) core.releaseAll(peer, true, gone);
    core.abandon();
  }

  private refreshInterest(peer: PeerState, nowMs: number): void {
    const { book, tuning } = this.core;
    const demand = this.idleSinceMs === null || nowMs - this.idleSinceMs < tuning.interestLingerMs;
    const value = demand && (peer.seed ? book.missingCount > 0 : peer.useful > 0);
    if (value === peer.interested) return;
    peer.interested = value;
    this.core.actions.interested(peer.id, value);
  }

  // Handing out work

  /** Fills one peer's pipe. */
  private pump(peer: PeerState, nowMs: number): void {
    const { core } = this;
    if (peer.idleVersion === core.version) return;
    while (this.pumpOne(peer, nowMs));
  }

  private pumpOne(peer: PeerState, nowMs: number): boolean {
    const { core, picker } = this;
    if (!peer.usable || peer.limit === 0) return false;
    const slackMs = core.slackMs;
    const criticalOnly = peer.outstanding >= peer.depth(slackMs, core.share);
    if (criticalOnly && peer.outstanding >= peer.criticalDepth(slackMs, core.share)) return false;
    if (!picker.pick(peer, peer.etaMs(core.unknownRate), criticalOnly, nowMs)) {
      if (!criticalOnly) peer.idleVersion = core.version;
      return false;
    }
    core.request(peer, picker.part!, picker.block, nowMs);
    return true;
  }

  /** Fills all pipes, block by block, the peer that can deliver soonest first. */
  private pumpAll(nowMs: number): void {
    const { core, order } = this;
    if (!core.hasWork()) return;
    core.survey(nowMs);
    const slackMs = core.slackMs;
    order.length = 0;
    for (const peer of core.peers.values()) {
      if (!peer.usable || peer.limit === 0 || peer.idleVersion === core.version) continue;
      if (peer.outstanding >= peer.criticalDepth(slackMs, core.share)) continue;
      peer.sortMs = peer.etaMs(core.unknownRate);
      order.push(peer);
    }
    order.sort(latestFirst);
    while (order.length > 0) {
      const peer = order[order.length - 1]!;
      core.bestEtaMs = peer.sortMs;
      if (!this.pumpOne(peer, nowMs)) {
        order.pop();
        continue;
      }
      peer.sortMs = peer.etaMs(core.unknownRate);
      for (let i = order.length - 1; i > 0 && order[i - 1]!.sortMs < order[i]!.sortMs; i--) {
        const other = order[i - 1]!;
        order[i - 1] = order[i]!;
        order[i] = other;
      }
    }
  }

  reserveRun(id: number, maxBytes: number, nowMs: Millis): { piece: number; offset: number; length: number } | null {
    const { core, picker } = this;
    const { book } = core;
    const peer = core.peers.get(id);
    if (peer === undefined || peer.stalled) return null;
    // A web seed never chokes.
    peer.choked = false;
    core.survey(nowMs);
    if (!picker.pick(peer, peer.etaMs(core.unknownRate), false, nowMs)) return null;
    const part = picker.part!;
    const first = picker.block;
    let block = first;
    let length = 0;
    while (block < part.blocks && part.state[block] === 0) {
      const bytes = book.blockLength(part.piece, block);
      if (length > 0 && length + bytes > maxBytes) break;
      book.ask(peer, part, block, nowMs);
      length += bytes;
      block++;
    }
    return { piece: part.piece, offset: first * book.blockBytes, length };
  }

  // Time

  tick(nowMs: Millis): number | null {
    const { core } = this;
    const { tuning } = core;
    if (nowMs - this.tickDueMs > pauseMs) {
      for (const peer of core.peers.values()) if (peer.outstanding > 0) peer.busySinceMs = nowMs;
    }
    if (nowMs >= this.retryMs) {
      // What time alone changes (avoided pieces, estimates) is looked at again this often.
      this.retryMs = nowMs + tuning.idleTickMs;
      core.version++;
    }
    core.survey(nowMs);
    this.rescue.stalls(nowMs);
    for (const reader of core.readers.values()) this.noteWaiting(reader, nowMs);
    this.pumpAll(nowMs);
    this.rescue.hedge(nowMs);
    this.rescue.endgame(nowMs);
    const next = this.nextTick(nowMs);
    this.tickDueMs = next === null ? Number.POSITIVE_INFINITY : nowMs + next;
    return next;
  }

  private nextTick(nowMs: number): number | null {
    const { core } = this;
    const { tuning } = core;
    for (const peer of core.peers.values()) if (peer.outstanding > 0) return tuning.tickMs;
    if (this.idleSinceMs === null) return core.book.missingCount > 0 ? tuning.idleTickMs : null;
    const leftMs = this.idleSinceMs + tuning.interestLingerMs - nowMs;
    if (leftMs > 0) return leftMs;
    for (const peer of core.peers.values()) this.refreshInterest(peer, nowMs);
    return null;
  }

  // Questions

  private noteWaiting(reader: ReaderState, nowMs: number): void {
    const waiting = reader.waitingEnd > reader.position && this.firstLacking(reader) >= 0;
    reader.waitingSinceMs = waiting ? reader.waitingSinceMs ?? nowMs : null;
  }

  /** First piece of what a reader waits for (or of its position) that isn't here, -1 when all is. */
  private firstLacking(reader: ReaderState): number {
    const { book } = this.core;
    const end = Math.min(
      book.pieceCount,
      Math.ceil(Math.max(reader.waitingEnd, reader.position + 1) / book.pieceBytes),
    );
    for (let piece = reader.first; piece < end; piece++) if (book.state[piece] !== have) return piece;
    return -1;
  }

  stallReason(id: number, nowMs: Millis): "no_peers" | "missing_piece" | "choked" | "slow_peers" | null {
    const { core } = this;
    const reader = core.readers.get(id);
    if (reader === undefined) return null;
    const piece = this.firstLacking(reader);
    if (piece < 0 || core.book.state[piece] === complete) return null;
    if (core.peers.size === 0) return "no_peers";
    if (core.book.holders(piece) === 0) return "missing_piece";
    let open = false;
    for (const peer of core.peers.values()) open ||= peer.limit === 0 ? peer.has(piece) : peer.offers(piece, nowMs);
    if (!open) return "choked";
    return reader.waitingSinceMs !== null && nowMs - reader.waitingSinceMs >= slowMs ? "slow_peers" : null;
  }

  wanted(piece: number): boolean {
    return this.core.wanted(piece);
  }
}
