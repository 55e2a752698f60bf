/**
 * The VOD scheduler: which block is requested from which peer, and when.
 *
 * What it weighs, in order:
 * 1. *Deadlines.* Each reader has a critical span (what playback needs in the next seconds) and a read-ahead window.
 *    Blocks are handed out one by one, the most urgent first, to the peer that can deliver soonest, so a single piece
 *    is split over all peers and the first one has arrived after about a round trip plus piece ÷ total rate.
 * 2. *Shallow pipelines.* A request can't be called back once the block sits in the far end's send buffer, so a seek
 *    waits for it. While somebody reads, a peer owes no more than its round trip and a few tens of milliseconds' worth.
 * 3. *No idle bandwidth.* Slow peers work ahead of the fast ones (see `Picker`) instead of being left out or holding
 *    up the line.
 * 4. *Doubt.* Silent, choking, rejecting and lying peers lose their requests to others within a second (see `Rescue`).
 *
 * Cost: per-block state exists only for pieces under way, requests are pooled and linked, picks continue where the last
 * one ended. Nothing on the block path depends on the size of the torrent; `scripts/bench/scheduler.ts` measures it.
 */
import { Core } from "./core.ts";
import { Dispatch } from "./dispatch.ts";
import { PeerState } from "./peer-state.ts";
import { Picker } from "./picker.ts";
import { BLOCK_HERE, COMPLETE, HAVE } from "./pieces.ts";
import { Rescue } from "./rescue.ts";
import { Roster } from "./roster.ts";
import { noteWaiting, stallReason } from "./stall-reason.ts";
import { defaultTuning, type Tuning } from "./tuning.ts";
import { WebRuns } from "./web-runs.ts";
import type { ForgetPiece, Millis, ReaderDemand, SchedulerActions, SchedulerApi, SchedulerShape } from "./types.ts";

/** A timer this late means that we were held up ourselves, not the peers. */
const PAUSE_MS = 400;
/** The scheduler of one torrent; the head of this file lists its priorities. */
export class Scheduler implements SchedulerApi {
  readonly #core: Core;
  readonly #picker: Picker;
  readonly #dispatch: Dispatch;
  readonly #rescue: Rescue;
  readonly #roster: Roster;
  readonly webRuns: WebRuns;
  #tickDueMs = Number.POSITIVE_INFINITY;
  #retryMs = 0;

  constructor(
    shape: SchedulerShape,
    actions: SchedulerActions,
    forgetPiece: ForgetPiece,
    tuning: Partial<Tuning> = {},
  ) {
    this.#core = new Core(shape, actions, forgetPiece, { ...defaultTuning, ...tuning });
    this.#picker = new Picker(this.#core);
    this.#dispatch = new Dispatch(this.#core, this.#picker);
    this.#rescue = new Rescue(this.#core);
    this.#roster = new Roster(this.#core);
    this.webRuns = new WebRuns(this.#core, this.#picker, this.#dispatch);
  }

  // Peers

  addPeer(peer: number, nowMs: Millis, options: Parameters<SchedulerApi["addPeer"]>[2]): void {
    const core = this.#core;
    const { requestQueueLimit, rttMs, fast, interested = false } = options;
    const known = core.peers.get(peer);
    if (known?.presumed) {
      known.settle(requestQueueLimit, fast, rttMs);
      this.#roster.joined(known, interested);
      // BEP 3: a choking peer discards its requests.
      if (!fast) core.releaseAll(known, false);
      return this.#dispatch.all(nowMs);
    }
    this.removePeer(peer, nowMs);
    const state = new PeerState(peer, requestQueueLimit, rttMs, fast, core.book.blockBytes, core.tuning);
    this.#roster.joined(state, interested);
    core.pool.add(state);
  }

  addWebSeed(id: number, nowMs: Millis): void {
    const core = this.#core;
    this.removePeer(id, nowMs);
    const seed = new PeerState(id, "web seed", null, true, core.book.blockBytes, core.tuning);
    seed.permits.unchoke();
    core.pool.add(seed);
    this.peerHasAll(id, nowMs);
  }

  presume(id: number, nowMs: Millis, rttMs: number): void {
    this.removePeer(id, nowMs);
    const core = this.#core;
    // Only with BEP 6 does the peer send rejects, and whether it supports that is not known yet.
    const peer = new PeerState(id, core.tuning.firstCriticalBlocks, rttMs, false, core.book.blockBytes, core.tuning);
    peer.presume();
    core.pool.add(peer);
    this.#dispatch.all(nowMs);
  }

  removePeer(id: number, nowMs: Millis): void {
    const core = this.#core;
    const peer = core.peers.get(id);
    if (peer === undefined) return;
    core.pool.remove(peer);
    core.idle.wake(peer);
    // A loop over peers may be running: it must not ask this one.
    peer.stall();
    core.releaseAll(peer, false);
    this.#roster.left(peer);
    this.#dispatch.all(nowMs);
  }

  setRequestQueueLimit(peer: number, limit: number): void {
    this.#core.peers.get(peer)?.setLimit(limit);
  }

  peerHas(id: number, piece: number, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (peer === undefined || !this.#roster.has(peer, piece)) return;
    peer.permits.forgive(piece);
    this.#offered(peer, nowMs);
  }

  peerBitfield(id: number, bytes: Uint8Array, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (peer === undefined) return;
    this.#roster.bitfield(peer, bytes);
    this.#offered(peer, nowMs);
  }

  peerHasAll(id: number, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (peer === undefined) return;
    this.#roster.hasAll(peer);
    this.#offered(peer, nowMs);
  }

  peerLacks(id: number, piece: number, nowMs: Millis): void {
    const core = this.#core;
    const peer = core.peers.get(id);
    if (peer === undefined || !this.#roster.lacks(peer, piece)) return;
    // With BEP 6 it rejects the requests for the piece; without, it just ignores them.
    if (!peer.fast) core.releaseAll(peer, false, (request) => request.part.piece === piece);
    this.#roster.refreshInterest(peer, nowMs);
    this.#dispatch.all(nowMs);
  }

  #offered(peer: PeerState, nowMs: number): void {
    this.#core.idle.wake(peer);
    // Requests for pieces that it turns out not to have will be rejected.
    if (peer.doubtful) this.#core.releaseAll(peer, false, (request) => !peer.has(request.part.piece));
    this.#roster.refreshInterest(peer, nowMs);
    this.#dispatch.one(peer, nowMs);
  }

  allowedFast(id: number, piece: number, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (!peer?.fast || !(piece >= 0 && piece < this.#core.book.pieceCount) || !peer.permits.allow(piece)) return;
    this.#core.idle.wake(peer);
    this.#dispatch.one(peer, nowMs);
  }

  suggested(id: number, piece: number): void {
    this.#core.peers.get(id)?.suggested.add(piece);
  }

  choked(id: number, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (peer === undefined || peer.choked) return;
    peer.permits.choke();
    // A choke voids requests (BEP 3), save those of the allowed fast set (BEP 6), so nothing needs cancelling.
    this.#core.releaseAll(peer, false, (request) => !(peer.fast && peer.permits.isAllowed(request.part.piece)));
    this.#dispatch.all(nowMs);
  }

  unchoked(id: number, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (peer === undefined || !peer.choked) return;
    peer.permits.unchoke();
    if (peer.stalled) peer.restart();
    this.#core.idle.wake(peer);
    this.#dispatch.all(nowMs);
  }

  // Data

  progress(id: number, bytes: number, nowMs: Millis): void {
    const peer = this.#core.peers.get(id);
    if (peer === undefined) return;
    if (peer.stalled) {
      peer.restart();
      this.#core.idle.wake(peer);
    }
    peer.onBytes(bytes, nowMs);
  }

  expects(id: number, piece: number, offset: number, bytes?: number): boolean {
    const { book, peers } = this.#core;
    const peer = peers.get(id);
    const part = book.parts.get(piece);
    if (peer === undefined || part === undefined) return false;
    if (book.findPart(peer, part, offset, bytes) !== null) return true;
    return book.isBlock(piece, offset, bytes) && peer.late.has(this.#core.key(piece, offset / book.blockBytes));
  }

  blockReceived(id: number, piece: number, offset: number, nowMs: Millis, bytes?: number): boolean {
    const core = this.#core;
    const { book } = core;
    const peer = core.peers.get(id);
    if (peer === undefined) return false;
    peer.onWhole(bytes);
    peer.permits.delivered();
    const block = Math.floor(offset / book.blockBytes);
    const part = book.parts.get(piece);
    const request = part === undefined ? null : book.findPart(peer, part, offset, bytes);
    let wanted = book.isBlock(piece, offset, bytes);
    if (request === null) wanted &&= peer.late.take(core.key(piece, block)) && part !== undefined;
    else {
      peer.onBlock(request, core.slackMs(peer), nowMs);
      wanted = book.received(request);
    }
    if (part !== undefined && wanted && (!request?.cut || book.isWhole(part, block))) {
      if (part.state[block] === BLOCK_HERE) wanted = false;
      else {
        book.arrived(part, block, id);
        for (let copy = part.asked[block]!; copy !== null; copy = part.asked[block]!) {
          const loser = copy.peer;
          core.release(copy, true);
          if (loser !== peer) this.#dispatch.one(loser, nowMs);
        }
      }
    }
    this.#dispatch.one(peer, nowMs);
    return wanted;
  }

  rejected(id: number, piece: number, offset: number, nowMs: Millis): void {
    const core = this.#core;
    const peer = core.peers.get(id);
    if (peer === undefined) return;
    const block = Math.floor(offset / core.book.blockBytes);
    if (peer.late.take(core.key(piece, block))) return;
    const part = core.book.parts.get(piece);
    const request = part && core.book.find(peer, part, block);
    if (!request) return;
    if (core.book.end(request)) core.freed(piece);
    peer.permits.rejected(piece, nowMs, core.tuning.rejectMs);
    this.#dispatch.all(nowMs);
  }

  /** Whether all blocks of the piece have arrived: for simulations, which assemble no pieces. */
  pieceComplete(piece: number): boolean {
    return this.#core.book.state[piece]! >= COMPLETE;
  }

  pieceVerified(piece: number, nowMs: Millis): void {
    const core = this.#core;
    if (core.book.state[piece] === HAVE) return;
    core.verified(piece);
    this.#roster.gained(piece, nowMs);
    if (!this.#picker.roomMade()) return;
    core.idle.wakeAll();
    this.#dispatch.all(nowMs);
  }

  pieceFailed(piece: number, nowMs: Millis): void {
    const core = this.#core;
    const { book } = core;
    const part = book.parts.get(piece);
    if (part !== undefined) book.fail(part);
    else if (book.state[piece] === HAVE) return this.pieceLost(piece, nowMs);
    core.restart(piece);
    this.#dispatch.all(nowMs);
  }

  pieceDiscarded(piece: number, nowMs: Millis): void {
    if (this.#core.book.state[piece] === HAVE) return;
    this.#core.restart(piece);
    this.#dispatch.all(nowMs);
  }

  blockRestored(peer: number, piece: number, offset: number): boolean {
    return this.#core.restore(peer, piece, offset / this.#core.book.blockBytes);
  }

  blocksLost(piece: number, blocks: readonly number[], nowMs: Millis): void {
    this.#core.lose(piece, blocks);
    this.#dispatch.all(nowMs);
  }

  pieceLost(piece: number, nowMs: Millis): void {
    const core = this.#core;
    const { book } = core;
    if (book.state[piece] !== HAVE) return;
    book.lack(piece);
    this.#roster.lost(piece, nowMs);
    core.reopened(piece);
    this.#dispatch.all(nowMs);
  }

  // Demand

  setReader(id: number, demand: ReaderDemand, nowMs: Millis): void {
    const core = this.#core;
    const reader = core.readers.get(id) ?? core.openReader(id);
    const { first, windowEnd, criticalEnd, waitingEnd } = reader;
    const jumped = reader.update(demand, nowMs);
    noteWaiting(this.#core, reader, nowMs);
    const moved = reader.first !== first || reader.windowEnd !== windowEnd || reader.criticalEnd !== criticalEnd;
    if (!moved && !jumped && reader.waitingEnd === waitingEnd) return;
    if (jumped) {
      if (reader.advance() < reader.criticalEnd) core.clearPipes(nowMs);
      core.abandon(first, windowEnd, nowMs);
    } else if (reader.first > first) core.abandon(first, reader.first, nowMs);
    if (reader.windowEnd < windowEnd) core.abandon(reader.windowEnd, windowEnd, nowMs);
    this.#demandChanged(nowMs);
  }

  removeReader(id: number, nowMs: Millis): void {
    const reader = this.#core.readers.get(id);
    if (reader === undefined) return;
    this.#core.closeReader(id);
    this.#core.abandon(reader.first, reader.windowEnd, nowMs);
    this.#demandChanged(nowMs);
  }

  setBackground(range: { firstPiece: number; endPiece: number } | null, nowMs: Millis): void {
    const core = this.#core;
    core.setBackground(range);
    core.abandon(0, core.book.pieceCount, nowMs);
    this.#demandChanged(nowMs);
  }

  #demandChanged(nowMs: number): void {
    const core = this.#core;
    core.idle.wakeAll();
    this.#roster.demandChanged(nowMs);
    this.#dispatch.all(nowMs);
  }

  // Time

  tick(nowMs: Millis): number | null {
    const core = this.#core;
    const { tuning } = core;
    if (nowMs - this.#tickDueMs > PAUSE_MS) {
      for (const peer of core.peers.values()) peer.excuse(nowMs);
    }
    if (nowMs >= this.#retryMs) {
      // Changes that come from time alone (avoided pieces, estimates) are checked this often.
      this.#retryMs = nowMs + tuning.idleTickMs;
      core.idle.wakeAll();
    }
    core.pool.survey(nowMs);
    this.#rescue.stalls(nowMs);
    for (const reader of core.readers.values()) noteWaiting(core, reader, nowMs);
    this.#dispatch.all(nowMs);
    this.#rescue.hedge(nowMs);
    this.#rescue.endgame(nowMs);
    const next = this.#nextTick(nowMs);
    this.#tickDueMs = next === null ? Number.POSITIVE_INFINITY : nowMs + next;
    return next;
  }

  #nextTick(nowMs: number): number | null {
    const core = this.#core;
    for (const peer of core.peers.values()) if (peer.outstanding > 0) return core.tuning.tickMs;
    const lingerMs = this.#roster.lingerMs(nowMs);
    if (lingerMs === null) return core.book.missingCount > 0 ? core.tuning.idleTickMs : null;
    if (lingerMs > 0) return lingerMs;
    this.#roster.refreshAll(nowMs);
    return null;
  }

  // Questions

  stallReason(id: number, nowMs: Millis): "no_peers" | "missing_piece" | "choked" | "slow_peers" | null {
    const reader = this.#core.readers.get(id);
    return reader === undefined ? null : stallReason(this.#core, reader, nowMs);
  }

  wanted(piece: number): boolean {
    return this.#core.wanted(piece);
  }
}
