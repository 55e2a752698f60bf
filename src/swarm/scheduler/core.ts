/** State shared by the parts of the scheduler, and the few operations that change it and call the host. */
import { ACTIVE, BLOCK_HERE, PieceBook } from "./pieces.ts";
import { IdlePeers } from "./idle-peers.ts";
import { PeerPool } from "./peer-pool.ts";
import type { ActivePiece, BlockRequest, PeerState } from "./peer-state.ts";
import { Rarity } from "./rarity.ts";
import { ReaderState } from "./reader-state.ts";
import type { Tuning } from "./tuning.ts";
import type { ForgetPiece, SchedulerActions, SchedulerShape } from "./types.ts";

/** The scheduler's shared state. */
export class Core {
  readonly book: PieceBook;
  readonly actions: SchedulerActions;
  readonly #forgetPiece: ForgetPiece;
  readonly tuning: Tuning;
  readonly pool: PeerPool;
  readonly idle = new IdlePeers();
  readonly #readers = new Map<number, ReaderState>();
  #rarity: Rarity | null = null;
  /** Unfinished pieces no reader wants, least recently wanted first. */
  readonly #abandoned = new Set<ActivePiece>();
  /** Blocks assigned for each reader, and for the one that got most. */
  readonly #servedBlocks = new WeakMap<ReaderState, number>();
  #mostServed = 0;

  constructor(shape: SchedulerShape, actions: SchedulerActions, forgetPiece: ForgetPiece, tuning: Tuning) {
    this.book = new PieceBook(shape);
    this.actions = actions;
    this.#forgetPiece = forgetPiece;
    this.tuning = tuning;
    this.pool = new PeerPool(this.book, this.#readers, tuning);
  }

  /** All peers by their numbers. */
  get peers(): ReadonlyMap<number, PeerState> {
    return this.pool.peers;
  }

  /** All readers by their numbers. */
  get readers(): ReadonlyMap<number, ReaderState> {
    return this.#readers;
  }

  /** The background download; null when there is none. */
  get rarity(): Rarity | null {
    return this.#rarity;
  }

  /** Adds a reader. */
  openReader(id: number): ReaderState {
    const reader = new ReaderState(id, this.book, this.tuning);
    this.#readers.set(id, reader);
    return reader;
  }

  /** Removes a reader; what it wanted is not given up. */
  closeReader(id: number): void {
    this.#readers.delete(id);
  }

  /** Pieces that are downloaded in the background; null: none. */
  setBackground(range: { readonly firstPiece: number; readonly endPiece: number } | null): void {
    const end = range === null ? 0 : Math.min(range.endPiece, this.book.pieceCount);
    const first = range === null ? 0 : Math.max(range.firstPiece, 0);
    this.#rarity = range === null ? null : new Rarity(this.book, first, Math.max(first, end), this.tuning.random);
  }

  /** How much queue a peer may keep beyond its round trip. */
  slackMs(peer: PeerState): number {
    const { tuning } = this;
    if (this.readers.size === 0) return tuning.backgroundSlackMs;
    return this.pool.isCalm && peer.rate(0) < tuning.fastBytesPerSecond ? tuning.calmSlackMs : tuning.readerSlackMs;
  }

  /** Blocks assigned for the reader, compared with what others got. Time in which it wanted nothing is soon forgiven. */
  shareOf(reader: ReaderState): number {
    return Math.max(
      this.#servedBlocks.get(reader) ?? 0,
      this.#mostServed - this.tuning.fairnessBytes / this.book.blockBytes,
    );
  }

  /** A block is assigned for the reader. */
  served(reader: ReaderState): void {
    const blocks = this.shareOf(reader) + 1;
    this.#servedBlocks.set(reader, blocks);
    this.#mostServed = Math.max(this.#mostServed, blocks);
  }

  /**
   * Whether a reader began to wait a moment ago, no peer has sent anything yet, and there are so many peers that each is
   * asked for a block or two of what is awaited. A second one at a peer that turns out to be slow would come seconds later.
   */
  isNew(nowMs: number): boolean {
    const { newMs, amplePeers } = this.tuning;
    if (this.pool.isProven || this.peers.size < amplePeers) return false;
    let isWaiting = false;
    for (const { waitingSinceMs } of this.readers.values()) {
      isWaiting ||= waitingSinceMs !== null && nowMs - waitingSinceMs < newMs;
    }
    if (!isWaiting) return false;
    let usable = 0;
    for (const peer of this.peers.values()) {
      if (peer.isBrisk(nowMs)) return false;
      if (peer.takesRequests) usable++;
    }
    return usable >= amplePeers && 2 * usable > this.book.blocksPerPiece;
  }

  key(piece: number, block: number): number {
    return piece * this.book.blocksPerPiece + block;
  }

  wanted(piece: number): boolean {
    for (const reader of this.readers.values()) if (reader.covers(piece)) return true;
    return false;
  }

  /** Whether so many peers lack the piece that the few peers that have it would send it over and over. */
  contested(piece: number): boolean {
    const holders = this.book.holders(piece);
    return this.peers.size - holders > this.tuning.contestedRatio * holders;
  }

  critical(piece: number): boolean {
    for (const reader of this.readers.values()) {
      if (piece >= reader.first && piece < reader.criticalEnd) return true;
    }
    return false;
  }

  /** Asks `peer` for a block, or for `bytes` of it (see `PieceBook.ask`). */
  request(peer: PeerState, part: ActivePiece, block: number, nowMs: number, bytes?: number): void {
    const { book } = this;
    const { from, bytes: length } = book.ask(peer, part, block, nowMs, bytes);
    this.actions.request(peer.id, part.piece, block * book.blockBytes + from, length);
  }

  /** The piece's block state, taken out of the background order. */
  start(piece: number): ActivePiece {
    this.#rarity?.remove(piece);
    return this.book.activate(piece);
  }

  /** Asks a silent peer for a block without reserving it. */
  probe(peer: PeerState, part: ActivePiece, block: number): void {
    const { book } = this;
    peer.late.add(this.key(part.piece, block));
    this.actions.request(peer.id, part.piece, block * book.blockBytes, book.blockLength(part.piece, block));
  }

  /**
   * Ends a request without its block. With `tell` the peer gets a cancel, and the block may still come. `isOnItsWay`:
   * it most likely does, as clients keep half a second of blocks in their send buffers.
   */
  release(request: BlockRequest, tell: boolean, isOnItsWay = tell): void {
    const { book } = this;
    const { peer, part, block, from, bytes, sentMs } = request;
    const key = this.key(part.piece, block);
    if (isOnItsWay) peer.expectCancelled(key, sentMs);
    else peer.late.add(key);
    if (book.end(request)) this.freed(part.piece);
    if (tell) this.actions.cancel(peer.id, part.piece, block * book.blockBytes + from, bytes);
  }

  /** Ends all requests at `peer` that `which` picks. */
  releaseAll(
    peer: PeerState,
    tell: boolean,
    which: (request: BlockRequest) => boolean = () => true,
    isOnItsWay = tell,
  ): void {
    for (let request = peer.oldest; request !== null;) {
      const next: BlockRequest | null = request.newer;
      if (which(request)) this.release(request, tell, isOnItsWay);
      request = next;
    }
  }

  /** A block of the piece can be asked for again. */
  freed(piece: number): void {
    this.idle.wakeAll();
    for (const reader of this.readers.values()) reader.rewind(piece);
  }

  /** The piece is verified. */
  verified(piece: number): void {
    this.#rarity?.remove(piece);
    const part = this.book.parts.get(piece);
    if (part !== undefined) {
      this.releasePart(part);
      this.#abandoned.delete(part);
    }
    this.book.have(piece);
  }

  /** All blocks of the unverified piece are wanted again. */
  restart(piece: number): void {
    const part = this.book.parts.get(piece);
    if (part !== undefined) {
      this.releasePart(part);
      this.#abandoned.delete(part);
      this.book.deactivate(part);
    }
    this.reopened(piece);
  }

  /** Some arrived blocks of the unverified piece are wanted again. */
  lose(piece: number, blocks: readonly number[]): void {
    const part = this.book.parts.get(piece);
    if (part === undefined) return;
    this.book.lost(part, blocks);
    this.freed(piece);
  }

  /** A block was recovered without being sent again; its requests end. Returns whether it was missing. */
  restore(peer: number, piece: number, block: number): boolean {
    const { book } = this;
    if (book.state[piece]! > ACTIVE) return false;
    const part = this.start(piece);
    if (part.state[block] === BLOCK_HERE) return false;
    for (let copy = part.asked[block]!; copy !== null; copy = part.asked[block]!) this.release(copy, true);
    book.arrived(part, block, peer);
    return true;
  }

  /** After a seek: cancels requests that are critical to no reader, to make room. What comes anyway stays requested. */
  clearPipes(nowMs: number): void {
    for (const peer of this.peers.values()) {
      this.releaseAll(peer, true, (request) => !this.critical(request.part.piece) && !peer.strand(request, nowMs));
    }
  }

  /** The piece is entirely missing again. */
  reopened(piece: number): void {
    this.#rarity?.add(piece);
    this.freed(piece);
  }

  /** Cancels the requests for pieces in `[from, end)` that nobody wants any more, as far as they can be called back. */
  abandon(from: number, end: number, nowMs: number): void {
    const { book } = this;
    if (end - from < book.parts.size) {
      for (let piece = from; piece < end; piece++) {
        const part = book.parts.get(piece);
        if (part !== undefined) this.#abandonPart(part, nowMs);
      }
    } else {
      for (const part of book.parts.values()) {
        if (part.piece >= from && part.piece < end) this.#abandonPart(part, nowMs);
      }
    }
    let bytes = this.#abandoned.size * book.pieceBytes;
    for (const part of this.#abandoned) {
      if (bytes <= this.tuning.abandonedLimitBytes) break;
      if (this.wanted(part.piece)) this.#abandoned.delete(part);
      else this.forget(part);
      bytes -= book.pieceBytes;
    }
  }

  #abandonPart(part: ActivePiece, nowMs: number): void {
    if (this.book.state[part.piece] !== ACTIVE || this.wanted(part.piece)) return;
    if (this.#rarity?.covers(part.piece)) return;
    for (let block = 0; block < part.blocks; block++) {
      for (let copy: BlockRequest | null = part.asked[block]!; copy !== null;) {
        const next: BlockRequest | null = copy.copy;
        if (!copy.peer.strand(copy, nowMs)) this.release(copy, true);
        copy = next;
      }
    }
    this.#abandoned.add(part);
  }

  /** Ends all requests for a piece. */
  releasePart(part: ActivePiece): void {
    for (let block = 0; block < part.blocks; block++) {
      for (let copy = part.asked[block]!; copy !== null; copy = part.asked[block]!) this.release(copy, true);
    }
  }

  /** Gives up the arrived blocks of a piece. */
  forget(part: ActivePiece): void {
    this.#abandoned.delete(part);
    this.releasePart(part);
    const held = part.here > 0 || part.cuts.size > 0;
    this.book.deactivate(part);
    this.reopened(part.piece);
    if (held) this.#forgetPiece(part.piece);
  }

  /** Whether there is anything a peer could be asked for. */
  hasWork(): boolean {
    // Called at every step of every reader, even when nothing is missing.
    if (this.book.missingCount === 0) return false;
    if (this.#rarity !== null) return true;
    for (const reader of this.readers.values()) if (reader.advance() < reader.windowEnd) return true;
    return false;
  }
}
