/** State shared by the parts of the scheduler, and the few operations that change it and call the host. */
import { ACTIVE, BLOCK_HERE, MISSING, PieceBook } from "./pieces.ts";
import type { ActivePiece, BlockRequest, PeerState } from "./peer-state.ts";
import type { Rarity } from "./rarity.ts";
import type { ReaderState } from "./reader-state.ts";
import type { Tuning } from "./tuning.ts";
import type { ForgetPiece, SchedulerActions, SchedulerShape } from "./types.ts";

/** Sums over peers stay valid for this long. */
const SURVEY_EVERY_MS = 5;

/** The scheduler's shared state. */
export class Core {
  readonly book: PieceBook;
  readonly actions: SchedulerActions;
  readonly #forgetPiece: ForgetPiece;
  readonly tuning: Tuning;
  readonly peers = new Map<number, PeerState>();
  readonly readers = new Map<number, ReaderState>();
  /** The background download; null when there is none. */
  rarity: Rarity | null = null;
  /** Counts changes that may give an idle peer something to do. */
  version = 0;
  /** Bytes/s assumed for peers with no history: half the median of the known rates. */
  unknownRate: number;
  /** Whether any usable peer has delivered enough for its rate to be known. */
  proven = false;
  /** Bytes/s of all usable peers. */
  poolRate = 0;
  /** Shortest time in which some usable peer could deliver one more block. */
  bestEtaMs = 0;
  /** Unfinished pieces no reader wants, least recently wanted first. */
  readonly abandoned = new Set<ActivePiece>();
  /**
   * A reader's critical span in blocks, divided by the peers: the most that is requested from a peer of unknown rate.
   */
  share = 1;
  /**
   * Every reader has media ahead, and the peers bring much more than the bitrate. Then short seeks matter more than
   * speed.
   */
  #calm = false;
  /** The memory limit for unfinished pieces kept a peer from starting one. */
  limited = false;
  #mostServed = 0;
  #surveyedMs = Number.NEGATIVE_INFINITY;
  #surveyedPeers = 0;
  readonly #rates: number[] = [];

  constructor(shape: SchedulerShape, actions: SchedulerActions, forgetPiece: ForgetPiece, tuning: Tuning) {
    this.book = new PieceBook(shape);
    this.actions = actions;
    this.#forgetPiece = forgetPiece;
    this.tuning = tuning;
    this.unknownRate = tuning.unknownBytesPerSecond;
  }

  /** How much queue a peer may keep beyond its round trip. */
  slackMs(peer: PeerState): number {
    const { tuning } = this;
    if (this.readers.size === 0) return tuning.backgroundSlackMs;
    return this.#calm && peer.rate(0) < tuning.fastBytesPerSecond ? tuning.calmSlackMs : tuning.readerSlackMs;
  }

  /** Blocks assigned for the reader, compared with what others got. Time in which it wanted nothing is soon forgiven. */
  shareOf(reader: ReaderState): number {
    return Math.max(reader.servedBlocks, this.#mostServed - this.tuning.fairnessBytes / this.book.blockBytes);
  }

  /** A block is assigned for the reader. */
  served(reader: ReaderState): void {
    reader.servedBlocks = this.shareOf(reader) + 1;
    this.#mostServed = Math.max(this.#mostServed, reader.servedBlocks);
  }

  /**
   * Whether a reader began to wait a moment ago, no peer has sent anything yet, and there are so many peers that each is
   * asked for a block or two of what is awaited. A second one at a peer that turns out to be slow would come seconds later.
   */
  isNew(nowMs: number): boolean {
    const { newMs, amplePeers } = this.tuning;
    if (this.proven || this.peers.size < amplePeers) return false;
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
    this.rarity?.remove(piece);
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
    this.version++;
    for (const reader of this.readers.values()) reader.rewind(piece);
  }

  /** All blocks of the unverified piece are wanted again. */
  restart(piece: number): void {
    const part = this.book.parts.get(piece);
    if (part !== undefined) {
      this.releasePart(part);
      this.abandoned.delete(part);
      this.book.deactivate(part, MISSING);
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
    this.rarity?.add(piece);
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
    let bytes = this.abandoned.size * book.pieceBytes;
    for (const part of this.abandoned) {
      if (bytes <= this.tuning.abandonedLimitBytes) break;
      if (this.wanted(part.piece)) this.abandoned.delete(part);
      else this.forget(part);
      bytes -= book.pieceBytes;
    }
  }

  #abandonPart(part: ActivePiece, nowMs: number): void {
    if (this.book.state[part.piece] !== ACTIVE || this.wanted(part.piece)) return;
    if (this.rarity?.covers(part.piece)) return;
    for (let block = 0; block < part.blocks; block++) {
      for (let copy: BlockRequest | null = part.asked[block]!; copy !== null;) {
        const next: BlockRequest | null = copy.copy;
        if (!copy.peer.strand(copy, nowMs)) this.release(copy, true);
        copy = next;
      }
    }
    this.abandoned.add(part);
  }

  /** Ends all requests for a piece. */
  releasePart(part: ActivePiece): void {
    for (let block = 0; block < part.blocks; block++) {
      for (let copy = part.asked[block]!; copy !== null; copy = part.asked[block]!) this.release(copy, true);
    }
  }

  /** Gives up the arrived blocks of a piece. */
  forget(part: ActivePiece): void {
    this.abandoned.delete(part);
    this.releasePart(part);
    const held = part.here > 0 || part.cuts.size > 0;
    this.book.deactivate(part, 0);
    this.reopened(part.piece);
    if (held) this.#forgetPiece(part.piece);
  }

  /** Whether there is anything a peer could be asked for. */
  hasWork(): boolean {
    // Called at every step of every reader, even when nothing is missing.
    if (this.book.missingCount === 0) return false;
    if (this.rarity !== null) return true;
    for (const reader of this.readers.values()) if (reader.advance() < reader.windowEnd) return true;
    return false;
  }

  /** Refreshes the sums over peers, unless they are fresh. */
  survey(nowMs: number): void {
    if (nowMs - this.#surveyedMs < SURVEY_EVERY_MS && this.peers.size === this.#surveyedPeers) return;
    this.#surveyedMs = nowMs;
    this.#surveyedPeers = this.peers.size;
    const rates = this.#rates;
    rates.length = 0;
    for (const peer of this.peers.values()) {
      peer.judge(nowMs, this.proven);
      if (peer.measured && peer.usable) rates.push(peer.rate(0));
    }
    rates.sort((a, b) => a - b);
    this.proven = rates.length > 0;
    // Half the median: when others have a known rate, a stranger must not be trusted with blocks that are due now.
    this.unknownRate = this.proven ? rates[rates.length >> 1]! / 2 : this.tuning.unknownBytesPerSecond;
    const critical = Math.max(this.tuning.criticalBytes, this.book.pieceBytes) / this.book.blockBytes;
    // Choking peers count too: they will want their share a round trip later.
    this.share = Math.max(1, Math.floor(critical / Math.max(1, this.peers.size)));
    this.poolRate = 0;
    this.bestEtaMs = Number.POSITIVE_INFINITY;
    for (const peer of this.peers.values()) {
      if (!peer.takesRequests) continue;
      this.poolRate += peer.rate(this.unknownRate);
      this.bestEtaMs = Math.min(this.bestEtaMs, peer.etaMs(this.unknownRate, nowMs));
    }
    this.#calm = true;
    for (const reader of this.readers.values()) {
      const ahead = reader.advance() * this.book.pieceBytes - reader.position;
      this.#calm &&= ahead > reader.bytesPerSecond * (this.tuning.calmMs / 1000) ||
        reader.cursor >= reader.windowEnd;
      this.#calm &&= this.poolRate > 2 * reader.bytesPerSecond;
    }
  }
}
