/**
 * Decides which block to request next from a peer.
 * A peer with room takes the most urgent free block, *unless* the others would have that block sooner. Then it takes
 * the block that the pool will reach just when this peer could deliver it. So a slow peer fetches blocks further ahead
 * than the fast ones instead of delaying the most urgent blocks, and no bandwidth is left unused.
 */
import type { Core } from "./core.ts";
import { ACTIVE, MISSING } from "./pieces.ts";
import type { ActivePiece, PeerState, Room } from "./peer-state.ts";
import type { ReaderState } from "./reader-state.ts";

/** A block is not urgent if it is due at least this long after the peer could deliver it. */
const SAFETY_MS = 1000;
/** Peers whose times differ by less than this count as equal. */
const TOLERANCE_MS = 40;
/** … as do those whose times differ by less than this factor. */
const TOLERANCE_FACTOR = 1.25;
/** Pieces compared by rarity per pick. */
const MAX_COMPARED = 32;
/** Refetching a piece that failed its hash from one peer alone may take this much longer than expected … */
const SOLE_MS = 300;
/** … but never more than this, because somebody may be waiting. */
const SOLE_MAX_MS = 4000;
/** Open pieces examined per background pick when looking for one to share. */
const MAX_SHARED = 64;

/** Chooses the next block for one peer. */
export class Picker {
  readonly #core: Core;
  /** The piece of the last successful pick. */
  part: ActivePiece | null = null;
  block = 0;
  /** How much of the block; undefined: all of it. */
  bytes: number | undefined;
  /** The piece that each peer fetches in the background. */
  readonly #current = new WeakMap<PeerState, number>();
  /** The memory limit for unfinished pieces kept a peer from starting one. */
  #isLimited = false;
  #piece = -1;
  #dueMs = 0;
  #skipBytes = 0;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Finds work for `peer`; the result is in `part` and `block`. */
  pick(peer: PeerState, etaMs: number, room: Room, nowMs: number): boolean {
    const core = this.#core;
    let bestPiece = -1;
    let bestSkip = 0;
    let bestDue = Number.POSITIVE_INFINITY;
    let best: ReaderState | null = null;
    for (const reader of core.readers.values()) {
      if (!this.#pickFor(reader, peer, etaMs, room, nowMs) || this.#dueMs > bestDue) continue;
      // Of readers that are equally late, the one that got least is next: else the first would get everything.
      if (this.#dueMs === bestDue && best !== null && core.shareOf(reader) >= core.shareOf(best)) continue;
      best = reader;
      bestDue = this.#dueMs;
      bestPiece = this.#piece;
      bestSkip = this.#skipBytes;
    }
    if (best !== null) {
      core.served(best);
      this.bytes = undefined;
      const part = core.start(bestPiece);
      let block = this.#blockFor(peer, part);
      for (let skip = Math.floor(bestSkip / core.book.blockBytes); skip > 0 && block >= 0; skip--) {
        const next = core.book.otherBlock(part, block + 1, peer);
        if (next < 0) break;
        block = next;
      }
      if (best.endOf("awaited") > part.piece) this.bytes = this.#partBytes(peer, part);
      return this.#found(peer, part, block, nowMs);
    }
    this.bytes = undefined;
    return room === "any" && this.#pickBackground(peer, nowMs);
  }

  /** The piece after `piece` if a run of `peer`, a web seed, may go on there; null if not. */
  following(peer: PeerState, piece: number, nowMs: number): ActivePiece | null {
    const core = this.#core;
    const { book } = core;
    const next = piece + 1;
    // The blocks of a failed piece are chosen one by one.
    if (next >= book.pieceCount || !book.isOpen(next) || book.failed.has(next)) return null;
    if (!this.#may(peer, next, nowMs)) return null;
    if (!core.wanted(next) && (core.rarity?.covers(next) !== true || !this.#hasRoom())) return null;
    return core.start(next);
  }

  /** The peer fetches the piece in the background from now on. */
  assign(peer: PeerState, piece: number): void {
    this.#current.set(peer, piece);
  }

  /** A piece is done. Returns whether its memory was lacking. */
  roomMade(): boolean {
    const wasLimited = this.#isLimited;
    this.#isLimited = false;
    return wasLimited;
  }

  /** Whether the background download may start another piece. */
  #hasRoom(): boolean {
    const { book, tuning } = this.#core;
    return book.parts.size * book.pieceBytes < tuning.activeLimitBytes || book.parts.size < 2;
  }

  /** The first block that `peer` may be asked for; one that it sent before only when nobody else can send it. */
  #blockFor(peer: PeerState, part: ActivePiece): number {
    const { book } = this.#core;
    const block = book.otherBlock(part, 0, peer);
    return block >= 0 || part.cuts.size > 0 ? block : book.freeBlock(part);
  }

  /**
   * How much of a block of an awaited piece a slow peer is asked for, so that all end at about the same time; undefined:
   * a block. Where a block takes seconds, the last blocks would arrive one after another while most peers have none.
   */
  #partBytes(peer: PeerState, part: ActivePiece): number | undefined {
    const { book, pool, tuning } = this.#core;
    if (!peer.measured || peer.isWebSeed || book.failed.has(part.piece)) return undefined;
    const rate = peer.rate(1);
    if ((book.blockBytes * 1000) / rate < tuning.slowBlockMs) return undefined;
    const share = (book.freeBytes(part.piece) * rate) / Math.max(pool.bytesPerSecond, rate);
    const { leastPartBytes } = tuning;
    const bytes = Math.max(1, Math.ceil(share / leastPartBytes)) * leastPartBytes;
    return bytes < book.blockBytes ? bytes : undefined;
  }

  #found(peer: PeerState, part: ActivePiece, block: number, nowMs: number): boolean {
    if (block < 0) return false;
    if (part.sole && part.owner !== peer) {
      part.owner = peer;
      part.ownedMs = nowMs;
    }
    this.part = part;
    this.block = block;
    return true;
  }

  /** Whether `peer` may fetch blocks of the open piece. */
  #may(peer: PeerState, piece: number, nowMs: number): boolean {
    if (!peer.offers(piece, nowMs)) return false;
    const { book, peers } = this.#core;
    const failed = book.failed.get(piece);
    if (failed === undefined) {
      const part = book.parts.get(piece);
      return part === undefined || part.cuts.size === 0 || book.otherBlock(part, 0, peer) >= 0;
    }
    if (failed.senders !== null) return this.#mayRepeat(peer, piece, failed.senders, nowMs);
    if (!failed.sole) return true;
    const part = book.parts.get(piece);
    const owner = part?.sole === true ? part.owner : null;
    if (part !== undefined && owner !== null && owner !== peer) {
      const trusted = peers.get(owner.id) === owner && owner.usable && owner.offers(piece, nowMs);
      const fairMs = SOLE_MS + (2000 * book.pieceBytes) / owner.rate(this.#core.pool.unknownRate);
      if (trusted && nowMs - part.ownedMs < Math.min(fairMs, SOLE_MAX_MS)) return false;
      part.sole = false;
    }
    if (part?.sole === false) return true;
    // Best is a fast peer that had no part in the failure, then any other fast peer.
    const rank = (other: PeerState): number =>
      other.rate(this.#core.pool.unknownRate) < this.#core.pool.unknownRate ? 0 : failed.suspects.has(other.id) ? 1 : 2;
    const own = rank(peer);
    if (own === 2) return true;
    for (const other of peers.values()) {
      if (other !== peer && other.takesRequests && rank(other) > own && other.offers(piece, nowMs)) {
        return false;
      }
    }
    return true;
  }

  /** Whether a free block of the failed piece was not sent by `peer` before, or nobody else can send one. */
  #mayRepeat(peer: PeerState, piece: number, senders: Int32Array, nowMs: number): boolean {
    const { book, peers } = this.#core;
    const part = book.parts.get(piece);
    const isNew = part === undefined ? senders.some((id) => id !== peer.id) : book.otherBlock(part, 0, peer) >= 0;
    if (isNew) return true;
    for (const other of peers.values()) if (other !== peer && other.usable && other.offers(piece, nowMs)) return false;
    return true;
  }

  #pickFor(reader: ReaderState, peer: PeerState, etaMs: number, room: Room, nowMs: number): boolean {
    const core = this.#core;
    const { book, tuning } = core;
    const end = reader.endOf(room);
    const head = reader.advance();
    if (head >= end) return false;
    let skip = 0;
    const late = etaMs - Math.max(core.pool.bestEtaMs * TOLERANCE_FACTOR, core.pool.bestEtaMs + TOLERANCE_MS);
    // A slow peer gets a smaller part of what is awaited (see `#partBytes`).
    const takesPart = peer.isSlow && head < reader.endOf("awaited");
    if (late > 0 && !takesPart && etaMs + SAFETY_MS > reader.dueMs(head * book.pieceBytes)) {
      const others = Math.max(0, core.pool.bytesPerSecond - peer.rate(core.pool.unknownRate));
      skip = (others * (etaMs - core.pool.bestEtaMs)) / 1000;
    }
    const inOrderEnd = reader.position + reader.bytesPerSecond * (tuning.inOrderMs / 1000);
    for (let piece = head; piece < end; piece++) {
      if (!book.isOpen(piece)) continue;
      const free = skip > 0 ? book.freeBytes(piece) : 0;
      if (skip >= free && skip > 0) {
        skip -= free;
        continue;
      }
      if (!this.#may(peer, piece, nowMs)) continue;
      const offset = piece * book.pieceBytes;
      this.#piece = piece;
      if (peer.seed && this.#spreads(reader, piece, nowMs)) {
        // Do not deepen pipes for a contested piece: more requests do not make the few peers that have it faster.
        if (room !== "any") return false;
        this.#piece = this.#scarcest(peer, piece, end, nowMs);
        this.#skipBytes = 0;
        this.#dueMs = reader.leadMs(nowMs) + reader.dueMs(Math.max(offset, reader.position));
        return true;
      }
      if (offset > inOrderEnd && !(peer.seed && book.seedCount === core.peers.size)) {
        this.#piece = this.#rarest(peer, piece, end, nowMs);
      }
      this.#skipBytes = skip;
      this.#dueMs = reader.leadMs(nowMs) + reader.dueMs(Math.max(offset, reader.position));
      return true;
    }
    return false;
  }

  /** The rarest of the next open pieces; on a tie, one under way. */
  #rarest(peer: PeerState, from: number, end: number, nowMs: number): number {
    const { book } = this.#core;
    let best = from;
    let bestHolders = Number.POSITIVE_INFINITY;
    const stop = Math.min(end, from + MAX_COMPARED);
    for (let piece = from; piece < stop; piece++) {
      if (!book.isOpen(piece) || !this.#may(peer, piece, nowMs)) continue;
      const holders = book.holders(piece) - (book.state[piece] === ACTIVE ? 0.5 : 0);
      if (holders < bestHolders) {
        bestHolders = holders;
        best = piece;
      }
    }
    return best;
  }

  /**
   * Whether to ask a seed for another piece than the next one, `piece`. Nearly all peers lack it, like viewers at the
   * same place of a film. If each asked the seed for it, the seed would send one piece over and over.
   */
  #spreads(reader: ReaderState, piece: number, nowMs: number): boolean {
    const { book, tuning } = this.#core;
    if (!this.#core.contested(piece)) return false;
    // At a start or a seek the next piece comes first. In a young swarm of downloaders nobody competes for it.
    const isAwaited = piece * book.pieceBytes < reader.waitingEnd;
    return !isAwaited || (reader.waitingSinceMs !== null && nowMs - reader.waitingSinceMs >= tuning.spreadAfterMs);
  }

  /** One of the next open pieces that the fewest have: one under way, or else a random one. */
  #scarcest(peer: PeerState, from: number, end: number, nowMs: number): number {
    const { book, tuning } = this.#core;
    const scarce: number[] = [];
    let fewest = Number.POSITIVE_INFINITY;
    for (let piece = from, looked = 0; piece < end && looked < tuning.spreadPieces; piece++) {
      if (!book.isOpen(piece) || !this.#may(peer, piece, nowMs)) continue;
      looked++;
      const holders = book.holders(piece);
      if (holders > fewest) continue;
      if (holders < fewest) scarce.length = 0;
      fewest = holders;
      scarce.push(piece);
    }
    const begun = scarce.find((piece) => book.state[piece] === ACTIVE);
    return begun ?? scarce[Math.floor(scarce.length * tuning.random())] ?? from;
  }

  #pickBackground(peer: PeerState, nowMs: number): boolean {
    const core = this.#core;
    const { book, rarity } = core;
    if (rarity === null) return false;
    const currentPiece = this.#current.get(peer) ?? -1;
    const current = book.parts.get(currentPiece);
    if (current !== undefined && current.free > 0 && this.#may(peer, current.piece, nowMs)) {
      return this.#found(peer, current, this.#blockFor(peer, current), nowMs);
    }
    const after = peer.isWebSeed ? this.following(peer, currentPiece, nowMs) : null;
    if (after !== null) return this.#take(peer, after, nowMs);
    // Pieces that others left unfinished come before new ones: they hold memory.
    let shared: ActivePiece | null = null;
    let looked = 0;
    for (const part of book.open) {
      if (++looked > MAX_SHARED) break;
      if (!rarity.covers(part.piece) || !this.#may(peer, part.piece, nowMs)) continue;
      const owner = part.owner;
      const kept = owner !== null && owner !== peer && owner.usable && this.#current.get(owner) === part.piece &&
        core.peers.get(owner.id) === owner;
      if (!kept) return this.#take(peer, part, nowMs);
      shared ??= part;
    }
    if (this.#hasRoom()) {
      const suggested = this.#suggested(peer, nowMs);
      const piece = suggested >= 0 ? suggested : rarity.pick(peer, nowMs);
      if (piece >= 0 && this.#may(peer, piece, nowMs)) return this.#take(peer, core.start(piece), nowMs);
    } else this.#isLimited = true;
    return shared !== null && this.#found(peer, shared, this.#blockFor(peer, shared), nowMs);
  }

  /** A piece of the background that `peer` suggested and nobody has begun; -1 when there is none. */
  #suggested(peer: PeerState, nowMs: number): number {
    const { book, rarity } = this.#core;
    const may = (piece: number) => rarity!.covers(piece) && this.#may(peer, piece, nowMs);
    return peer.suggested.first((piece) => book.state[piece] === MISSING, may);
  }

  #take(peer: PeerState, part: ActivePiece, nowMs: number): boolean {
    part.owner = peer;
    this.assign(peer, part.piece);
    return this.#found(peer, part, this.#blockFor(peer, part), nowMs);
  }
}
