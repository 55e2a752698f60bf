/**
 * What is known of pieces and their blocks: which have arrived, are requested or free, and who has them. Only pieces under way
 * have per-block state, so the cost grows with what is being fetched and not with the torrent; availability is a
 * counter per piece (seeds are counted once, separately).
 */
import type { Cut, ReadonlyNumbers } from "./active-piece.ts";
import type { ActivePiece, BlockRequest, PeerState } from "./peer-state.ts";
import type { SchedulerShape } from "./types.ts";

/** No block has arrived or is requested. */
export const MISSING = 0;
/** Some blocks have arrived or are requested. */
export const ACTIVE = 1;
/** All blocks have arrived; the hash is not checked yet. */
export const COMPLETE = 2;
/** Verified. */
export const HAVE = 3;

/** Block states of an active piece. */
export const BLOCK_FREE = 0;
/** Requested from at least one peer. */
export const BLOCK_ASKED = 1;
/** Arrived. */
export const BLOCK_HERE = 2;

/** A piece that failed its hash. */
export interface FailedPiece {
  /** Peers whose blocks were in its last failed copy. */
  readonly suspects: Set<number>;
  /** To be fetched from a single peer. */
  readonly sole: boolean;
  /**
   * Sender of each block of its only failed copy. Each block is now fetched from another peer, so that the difference
   * of both copies shows which peer lied. Null after a second failure.
   */
  readonly senders: Int32Array | null;
}

/** All pieces of a torrent. */
export class PieceBook {
  readonly pieceCount: number;
  readonly pieceBytes: number;
  readonly totalBytes: number;
  readonly blockBytes: number;
  readonly blocksPerPiece: number;
  readonly #state: Uint8Array;
  readonly #availability: Uint16Array;
  readonly #parts = new Map<number, ActivePiece>();
  readonly #open = new Set<ActivePiece>();
  readonly #failed = new Map<number, FailedPiece>();
  #seedCount = 0;
  #missingCount: number;
  readonly #short: ReadonlyMap<number, number> | undefined;
  #spare: BlockRequest | null = null;

  constructor(shape: SchedulerShape) {
    this.pieceCount = shape.pieceCount;
    this.pieceBytes = shape.pieceLengthBytes;
    this.totalBytes = shape.totalBytes;
    this.blockBytes = shape.blockBytes;
    this.#short = shape.shortPieces;
    this.blocksPerPiece = Math.ceil(shape.pieceLengthBytes / shape.blockBytes);
    this.#state = new Uint8Array(shape.pieceCount);
    this.#availability = new Uint16Array(shape.pieceCount);
    this.#missingCount = shape.pieceCount;
  }

  /** Of each piece: `MISSING`, `ACTIVE`, `COMPLETE` or `HAVE`. */
  get state(): ReadonlyNumbers {
    return this.#state;
  }

  /** Peers that have the piece, without seeds. */
  get availability(): ReadonlyNumbers {
    return this.#availability;
  }

  /** Pieces under way. */
  get parts(): ReadonlyMap<number, ActivePiece> {
    return this.#parts;
  }

  /** Active pieces with free blocks. */
  get open(): ReadonlySet<ActivePiece> {
    return this.#open;
  }

  /** Pieces that failed their hash. */
  get failed(): ReadonlyMap<number, FailedPiece> {
    return this.#failed;
  }

  get seedCount(): number {
    return this.#seedCount;
  }

  get missingCount(): number {
    return this.#missingCount;
  }

  /** A peer became a seed, or is none any more. */
  countSeed(change: 1 | -1): void {
    this.#seedCount += change;
  }

  /** A peer that is no seed has the piece, or lost it. */
  countHolder(piece: number, change: 1 | -1): void {
    this.#availability[piece]! += change;
  }

  /** The piece is verified; no request for it may be live. */
  have(piece: number): void {
    const part = this.#parts.get(piece);
    if (part !== undefined) this.deactivate(part);
    this.#state[piece] = HAVE;
    this.#failed.delete(piece);
    this.#missingCount--;
  }

  /** A piece that we had is missing again. */
  lack(piece: number): void {
    this.#state[piece] = MISSING;
    this.#missingCount++;
  }

  /** The hash of the piece failed. The host has banned or cleared earlier senders: only the latest count. */
  fail(part: ActivePiece): void {
    const suspects = new Set(part.sources.filter((peer) => peer >= 0));
    const sole = this.#failed.has(part.piece);
    this.#failed.set(part.piece, { suspects, sole, senders: sole ? null : part.sources });
  }

  pieceLength(piece: number): number {
    return this.#short?.get(piece) ?? Math.min(this.pieceBytes, this.totalBytes - piece * this.pieceBytes);
  }

  blockLength(piece: number, block: number): number {
    return Math.min(this.blockBytes, this.pieceLength(piece) - block * this.blockBytes);
  }

  /** Whether the piece has a block that was requested from nobody. */
  isOpen(piece: number): boolean {
    const state = this.#state[piece];
    if (state === MISSING) return true;
    return state === ACTIVE && this.#parts.get(piece)!.free > 0;
  }

  freeBytes(piece: number): number {
    const part = this.#parts.get(piece);
    if (part === undefined) return this.pieceLength(piece);
    let bytes = part.free * this.blockBytes;
    for (const [block, { next, holes }] of part.cuts) {
      if (part.state[block] === BLOCK_FREE) bytes += holes.reduce((sum, hole) => sum + hole.bytes, -next);
    }
    return bytes;
  }

  /** How many peers may have it: seeds and others. */
  holders(piece: number): number {
    return this.#seedCount + this.#availability[piece]!;
  }

  /** The piece's block state, created if absent. Only for missing and active pieces. */
  activate(piece: number): ActivePiece {
    const known = this.#parts.get(piece);
    if (known !== undefined) return known;
    const blocks = Math.ceil(this.pieceLength(piece) / this.blockBytes);
    const part: ActivePiece = {
      piece,
      blocks,
      state: new Uint8Array(blocks),
      asked: new Array<BlockRequest | null>(blocks).fill(null),
      cuts: new Map(),
      sources: new Int32Array(blocks).fill(-1),
      free: blocks,
      here: 0,
      hint: 0,
      owner: null,
      ownedMs: 0,
      sole: this.#failed.get(piece)?.sole === true,
    };
    this.#parts.set(piece, part);
    this.#open.add(part);
    this.#state[piece] = ACTIVE;
    return part;
  }

  /** Drops the block state, so that the piece is missing; no request may be live. */
  deactivate(part: ActivePiece): void {
    this.#parts.delete(part.piece);
    this.#open.delete(part);
    this.#state[part.piece] = MISSING;
  }

  /** First free block at or after `from`, -1 when there is none. */
  freeBlock(part: ActivePiece, from = 0): number {
    if (part.free === 0) return -1;
    const start = Math.max(from, part.hint);
    for (let i = start; i < part.blocks; i++) {
      if (part.state[i] === BLOCK_FREE) {
        if (start === part.hint) part.hint = i;
        return i;
      }
    }
    return -1;
  }

  /**
   * Records a request; the block may have live copies. `bytes`: how much of a free block is wanted, all of it by default;
   * less cuts it, and of a cut block it is at most the next part that is requested from nobody.
   */
  ask(peer: PeerState, part: ActivePiece, block: number, nowMs: number, bytes = Infinity): BlockRequest {
    const length = this.blockLength(part.piece, block);
    const isFree = part.state[block] === BLOCK_FREE;
    let cut = isFree ? part.cuts.get(block) ?? null : null;
    if (isFree && cut === null && bytes < length) part.cuts.set(block, cut = { next: 0, here: 0, holes: [] });
    // Whole blocks, nearly all there are, allocate nothing here.
    const range = cut === null ? null : takeFrom(cut, length, bytes);
    const from = range?.from ?? 0;
    const wanted = range?.bytes ?? length;
    let request = this.#spare;
    if (request === null) {
      request = {
        peer,
        part,
        block,
        from,
        bytes: wanted,
        cut,
        sentMs: nowMs,
        repeated: false,
        dueMs: 0,
        stray: false,
        older: null,
        newer: null,
        copy: null,
        rank: 0,
      };
    } else {
      this.#spare = request.copy;
      request.peer = peer;
      request.part = part;
      request.block = block;
      request.from = from;
      request.bytes = wanted;
      request.cut = cut;
      request.sentMs = nowMs;
      request.stray = false;
    }
    request.repeated = peer.late.has(part.piece * this.blocksPerPiece + block);
    request.copy = part.asked[block]!;
    part.asked[block] = request;
    if (isFree && (cut === null || (cut.next === length && cut.holes.length === 0))) {
      part.state[block] = BLOCK_ASKED;
      if (--part.free === 0) this.#open.delete(part);
    }
    peer.enqueue(request);
    return request;
  }

  /** The live request for a block at `peer`. */
  find(peer: PeerState, part: ActivePiece, block: number): BlockRequest | null {
    let request = part.asked[block] ?? null;
    while (request !== null && request.peer !== peer) request = request.copy;
    return request;
  }

  /** The live request at `peer` for exactly these bytes, by default the block at `offset`. */
  findPart(peer: PeerState, part: ActivePiece, offset: number, bytes?: number): BlockRequest | null {
    const block = Math.floor(offset / this.blockBytes);
    const request = this.find(peer, part, block);
    const length = bytes ?? this.blockLength(part.piece, block);
    const from = offset - block * this.blockBytes;
    return request !== null && request.from === from && request.bytes === length ? request : null;
  }

  /** Ends a request, `isHere` with what it asked for. Returns whether its block became free. */
  end(request: BlockRequest, isHere = false): boolean {
    const { part, block, peer, cut, from, bytes } = request;
    if (part.asked[block] === request) part.asked[block] = request.copy;
    else {
      let before = part.asked[block]!;
      while (before.copy !== request) before = before.copy!;
      before.copy = request.copy;
    }
    peer.dequeue(request);
    request.copy = this.#spare;
    this.#spare = request;
    const isCut = cut !== null && part.cuts.get(block) === cut;
    if (isCut && isHere) cut.here += bytes;
    else if (isCut) cut.holes.push({ from, bytes });
    if (part.state[block] !== BLOCK_ASKED || (isCut ? isHere : part.asked[block] !== null)) return false;
    part.state[block] = BLOCK_FREE;
    if (block < part.hint) part.hint = block;
    if (part.free++ === 0) this.#open.add(part);
    return true;
  }

  /** Ends a request with what it asked for. Returns whether that is of use: not when its block was cut again meanwhile. */
  received(request: BlockRequest): boolean {
    const { cut, part, block } = request;
    this.end(request, true);
    return cut === null || part.cuts.get(block) === cut;
  }

  /** Whether `bytes` at `offset` are one whole block. */
  isBlock(piece: number, offset: number, bytes?: number): boolean {
    const block = offset / this.blockBytes;
    return Number.isInteger(block) && (bytes === undefined || bytes === this.blockLength(piece, block));
  }

  /** Whether all parts of a cut block have arrived: a part is of use, but does not make the block whole. */
  isWhole(part: ActivePiece, block: number): boolean {
    return part.cuts.get(block)?.here === this.blockLength(part.piece, block);
  }

  /**
   * The first free block at or after `from` that `peer` did not already send in a copy that failed; -1 when there is none.
   * Of a cut block a peer sends one part at a time, and a web seed none.
   */
  otherBlock(part: ActivePiece, from: number, peer: PeerState): number {
    const senders = this.#failed.get(part.piece)?.senders;
    const skips = (block: number) =>
      senders?.[block] === peer.id ||
      (part.cuts.has(block) && (peer.isWebSeed || this.find(peer, part, block) !== null));
    let block = this.freeBlock(part, from);
    while (block >= 0 && skips(block)) block = this.freeBlock(part, block + 1);
    return block;
  }

  /** Blocks that had arrived are missing again. */
  lost(part: ActivePiece, blocks: Iterable<number>): void {
    for (const block of blocks) {
      this.#uncut(part, block);
      if (part.state[block] !== BLOCK_HERE) continue;
      part.state[block] = BLOCK_FREE;
      part.sources[block] = -1;
      part.here--;
      part.free++;
      part.hint = Math.min(part.hint, block);
      this.#open.add(part);
      this.#state[part.piece] = ACTIVE;
    }
  }

  /** What has arrived of a cut block is wanted again. */
  #uncut(part: ActivePiece, block: number): void {
    if (!part.cuts.delete(block) || part.state[block] !== BLOCK_ASKED) return;
    part.state[block] = BLOCK_FREE;
    part.free++;
    part.hint = Math.min(part.hint, block);
    this.#open.add(part);
  }

  /** Records an arrived block; the caller must end its live requests afterwards. */
  arrived(part: ActivePiece, block: number, peer: number): void {
    if (part.state[block] === BLOCK_FREE && --part.free === 0) this.#open.delete(part);
    part.state[block] = BLOCK_HERE;
    part.cuts.delete(block);
    part.sources[block] = peer;
    if (++part.here === part.blocks) this.#state[part.piece] = COMPLETE;
  }
}

/** Takes the next part of a cut block that is requested from nobody, of at most `bytes`. */
function takeFrom(cut: Cut, length: number, bytes: number): { from: number; bytes: number } {
  const hole = cut.holes.pop();
  if (hole !== undefined) {
    if (hole.bytes > bytes) cut.holes.push({ from: hole.from + bytes, bytes: hole.bytes - bytes });
    return { from: hole.from, bytes: Math.min(bytes, hole.bytes) };
  }
  const from = cut.next;
  cut.next = Math.min(length, from + bytes);
  return { from, bytes: cut.next - from };
}
