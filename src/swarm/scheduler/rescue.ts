/**
 * What happens on the timer: requests of silent peers go to others, late critical blocks are requested a second time
 * from a peer that can deliver sooner, and the last blocks of a download are shared out (endgame).
 *
 * Copies cost bandwidth, so a block is copied only if no free block precedes it and the gain is clear.
 */
import type { Core } from "./core.ts";
import { ACTIVE, BLOCK_ASKED, BLOCK_HERE } from "./pieces.ts";
import type { ActivePiece, BlockRequest, PeerState } from "./peer-state.ts";

/** A background block is copied only if the idle peer is this many times faster: nobody waits for it. */
const ENDGAME_FACTOR = 2;
/** … and the request is at least this old. */
const ENDGAME_AFTER_MS = 500;
/** Active pieces examined for endgame per tick. */
const MAX_ENDGAME_PARTS = 64;

/** Times that a silent peer without others beside it is asked again for the same; then its silence counts. */
const MAX_REPEATS = 3;

/** A peer that fell silent. */
interface Silence {
  readonly sinceMs: number;
  /** When its requests were taken back. */
  readonly noticedMs: number;
  /** When it was last asked for a single block. */
  probedMs: number;
}

/** Finds late and lost blocks, and requests them again. */
export class Rescue {
  readonly #core: Core;
  #copies = 0;
  /** Of peers that are stalled. */
  readonly #silences = new WeakMap<PeerState, Silence>();
  /** Slow peers from which what waited behind their first block was taken back. */
  readonly #relieved = new WeakSet<PeerState>();
  /** Peers that the host was asked to drop. */
  readonly #dropped = new WeakSet<PeerState>();
  /** Times that requests were sent again to a peer since it last sent something. */
  readonly #repeats = new WeakMap<PeerState, { readonly lastDataMs: number; readonly count: number }>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Whether any other peer is serving: unchoked and not silent. */
  #others(peer: PeerState): boolean {
    for (const other of this.#core.peers.values()) {
      if (other !== peer && other.usable && !other.choked) return true;
    }
    return false;
  }

  /** Finds peers that fell silent; returns whether requests were taken from one. */
  stalls(nowMs: number): boolean {
    const core = this.#core;
    const { tuning, book } = core;
    let freed = false;
    for (const peer of core.peers.values()) {
      if (peer.stalled) {
        const silence = this.#silences.get(peer);
        if (silence !== undefined) this.#probe(peer, silence, nowMs);
        continue;
      }
      if (this.#relieve(peer)) continue;
      const silenceMs = peer.silenceMs(nowMs);
      if (silenceMs < tuning.stallMs) continue;
      const floorMs = peer.isWebSeed ? tuning.runStallMs : peer.hasBegun ? tuning.begunStallMs : tuning.stallMs;
      const blocksMs = (3 * book.blockBytes * 1000) / peer.rate(core.pool.unknownRate);
      if (silenceMs < Math.max(floorMs, peer.rttMs + blocksMs)) continue;
      if (silenceMs > tuning.dropMs) this.#drop(peer);
      // Without any other peer its requests are the only hope: they stay where they are.
      if (!this.#others(peer)) {
        // Exception: it may have ignored requests sent before its handshake or beyond its limit. They are sent again.
        if (peer.presumed || !this.#mayHaveLost(peer, silenceMs)) continue;
        peer.trust();
        core.releaseAll(peer, true);
        freed = true;
        continue;
      }
      peer.stall();
      this.#silences.set(peer, { sinceMs: nowMs - silenceMs, noticedMs: nowMs, probedMs: nowMs });
      core.releaseAll(peer, true);
      freed = true;
    }
    if (freed && core.readers.size > 0) this.#makeRoom();
    return freed;
  }

  /** Whether the only peer may have lost what it owes. With BEP 6 it would have rejected what it does not send. */
  #mayHaveLost(peer: PeerState, silenceMs: number): boolean {
    if (peer.doubtful) return true;
    if (peer.fast || silenceMs < this.#core.tuning.lonelyRepeatMs) return false;
    const known = this.#repeats.get(peer);
    const count = known?.lastDataMs === peer.lastDataMs ? known.count + 1 : 1;
    this.#repeats.set(peer, { lastDataMs: peer.lastDataMs, count });
    return count <= MAX_REPEATS;
  }

  /**
   * What a silent peer owes is due now, but a peer whose speed was overestimated owes more than it can send soon. So
   * the later half of its requests is taken back and assigned again, the most urgent first.
   */
  #makeRoom(): void {
    const core = this.#core;
    for (const peer of core.peers.values()) {
      const depth = peer.criticalDepth(core.slackMs(peer), core.pool.share);
      if (!peer.takesRequests || peer.outstanding <= depth) continue;
      peer.rank();
      core.releaseAll(peer, true, (request) => request.rank >= depth >> 1, false);
    }
  }

  /**
   * A peer that turns out to be slow keeps only what it is sending: what waits behind that would take seconds to begin,
   * and others may be free sooner.
   */
  #relieve(peer: PeerState): boolean {
    const core = this.#core;
    if (core.readers.size === 0 || !peer.isSlow || peer.isWebSeed || this.#relieved.has(peer)) return false;
    this.#relieved.add(peer);
    peer.rank();
    core.releaseAll(peer, true, (request) => request.rank > 0 && !request.stray, false);
    return true;
  }

  #drop(peer: PeerState): void {
    if (this.#dropped.has(peer)) return;
    this.#dropped.add(peer);
    this.#core.actions.drop(peer.id, "silent");
  }

  /** Asks a silent peer for one block now and then, and drops it if it stays silent. */
  #probe(peer: PeerState, silence: Silence, nowMs: number): void {
    const core = this.#core;
    const { tuning } = core;
    if (peer.choked || peer.isWebSeed) return;
    if (nowMs - silence.sinceMs > tuning.dropMs && silence.probedMs > silence.noticedMs) {
      return this.#drop(peer);
    }
    if (!this.#others(peer)) {
      // It is the only hope left.
      if (nowMs - silence.probedMs >= tuning.lonelyProbeMs) peer.restart();
      return;
    }
    if (nowMs - silence.probedMs < tuning.probeMs) return;
    const part = this.#farthest(peer, nowMs);
    if (part === null) return;
    for (let block = part.blocks - 1; block >= 0; block--) {
      if (part.state[block] === BLOCK_HERE) continue;
      silence.probedMs = nowMs;
      // Not recorded as a request: the block stays free for others, and counts if it comes.
      return core.probe(peer, part, block);
    }
  }

  /** The piece that is needed last among those that `peer` could be asked for. */
  #farthest(peer: PeerState, nowMs: number): ActivePiece | null {
    const core = this.#core;
    const { book } = core;
    let under: ActivePiece | null = null;
    for (const part of book.parts.values()) {
      if (book.state[part.piece] === ACTIVE && peer.offers(part.piece, nowMs)) under = part;
    }
    if (under !== null) return under;
    for (const reader of core.readers.values()) {
      for (let piece = reader.windowEnd - 1; piece >= reader.first; piece--) {
        if (book.isOpen(piece) && peer.offers(piece, nowMs)) return core.start(piece);
      }
    }
    const piece = core.rarity?.pick(peer, nowMs) ?? -1;
    return piece < 0 ? null : core.start(piece);
  }

  /** Requests second copies of late blocks. */
  hedge(nowMs: number): void {
    const core = this.#core;
    const { book } = core;
    this.#copies = 0;
    let ranked = false;
    for (const reader of core.readers.values()) {
      for (let piece = reader.first; piece < reader.criticalEnd; piece++) {
        const state = book.state[piece]!;
        if (state > ACTIVE) continue;
        const part = book.parts.get(piece);
        // Free blocks are better work than copies, if anybody can take them.
        if (part === undefined || part.free > 0) {
          if (book.holders(piece) > 0) break;
          continue;
        }
        if (!ranked) {
          ranked = true;
          for (const peer of core.peers.values()) peer.rank();
        }
        const base = piece * book.pieceBytes;
        for (let block = 0; block < part.blocks; block++) {
          if (part.state[block] !== BLOCK_ASKED) continue;
          const offset = base + block * book.blockBytes;
          this.#consider(part, block, reader.dueMs(offset), core.tuning.hedgeAfterMs, core.tuning.hedgeRatio, nowMs);
        }
        if (this.#copies >= core.tuning.maxHedgesPerTick) return;
      }
    }
  }

  /** Once nothing is free any more, idle peers request copies of blocks that would take long. */
  endgame(nowMs: number): void {
    const core = this.#core;
    const { book } = core;
    if (core.rarity === null || book.parts.size === 0 || book.open.size > 0) return;
    let idle = false;
    for (const peer of core.peers.values()) {
      idle ||= peer.takesRequests && !peer.choked && peer.outstanding < 2;
    }
    if (!idle) return;
    for (const peer of core.peers.values()) peer.rank();
    this.#copies = 0;
    let looked = 0;
    for (const part of book.parts.values()) {
      if (book.state[part.piece] !== ACTIVE || !core.rarity?.covers(part.piece)) continue;
      if (++looked > MAX_ENDGAME_PARTS) return;
      for (let block = 0; block < part.blocks; block++) {
        if (part.state[block] === BLOCK_ASKED) {
          this.#consider(part, block, 0, ENDGAME_AFTER_MS, 1 / ENDGAME_FACTOR, nowMs);
        }
      }
      if (this.#copies >= core.tuning.maxHedgesPerTick) return;
    }
  }

  #consider(
    part: ActivePiece,
    block: number,
    dueMs: number,
    afterMs: number,
    ratio: number,
    nowMs: number,
  ): void {
    const core = this.#core;
    const { tuning } = core;
    // The parts of a cut block are small already.
    if (part.cuts.has(block)) return;
    let copies = 0;
    let last: BlockRequest | null = null;
    let remainingMs = Number.POSITIVE_INFINITY;
    for (let copy: BlockRequest | null = part.asked[block]!; copy !== null; copy = copy.copy) {
      // The newest copy is first in the list.
      if (copies === 0 && nowMs - copy.sentMs < afterMs) return;
      copies++;
      last = copy;
      remainingMs = Math.min(remainingMs, copy.peer.remainingMs(copy, core.pool.unknownRate, nowMs));
    }
    if (last === null || copies >= tuning.maxCopies || this.#copies >= tuning.maxHedgesPerTick) return;
    if (remainingMs < dueMs) return;
    const before = core.book.failed.get(part.piece)?.senders?.[block];
    let best: PeerState | null = null;
    let bestMs = Math.min(remainingMs * ratio, remainingMs - tuning.hedgeGainMs);
    for (const peer of core.peers.values()) {
      if (!peer.takesRequests || peer.id === before) continue;
      const room = Math.min(2 * peer.criticalDepth(core.slackMs(peer), core.pool.share), peer.limit);
      if (peer.outstanding >= (peer.isSlow ? 1 : room)) continue;
      // Ignore peers that never delivered while any peer has.
      if (core.pool.isProven && !peer.measured) continue;
      const etaMs = peer.etaMs(core.pool.unknownRate, nowMs);
      if (etaMs >= bestMs || !peer.offers(part.piece, nowMs) || core.book.find(peer, part, block) !== null) continue;
      if (part.sole && part.owner !== null && part.owner.usable && part.owner !== peer) continue;
      best = peer;
      bestMs = etaMs;
    }
    if (best === null) return;
    this.#copies++;
    // A request that is still queued at the slow peer is moved; one that it is already sending is only copied.
    const behind = copies === 1 && last.rank > 0 ? last : null;
    core.request(best, part, block, nowMs);
    if (behind !== null) core.release(behind, true);
  }
}
