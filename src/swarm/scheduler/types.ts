/**
 * The scheduler decides which block is requested from which peer, when it is requested elsewhere as well, and when a
 * request is given up. It is pure: time comes from `nowMs` arguments, effects go to `SchedulerActions`, nothing else is
 * read.
 */

/** Milliseconds, monotonic. */
export type Millis = number;

/** What the scheduler has done at a source. Called synchronously from its methods. */
export interface SchedulerActions {
  request(peer: number, piece: number, offset: number, length: number): void;
  cancel(peer: number, piece: number, offset: number, length: number): void;
  /** Our interest in a peer changed. */
  interested(peer: number, value: boolean): void;
  /** A peer was silent for too long: drop it. */
  drop(peer: number, reason: "silent"): void;
}

/** Frees the blocks of an unfinished piece that nobody wants any more: all of it is missing again. */
export type ForgetPiece = (piece: number) => void;

/** Facts fixed for a torrent. */
export interface SchedulerShape {
  readonly pieceCount: number;
  readonly pieceLengthBytes: number;
  readonly totalBytes: number;
  /** As in `PieceShape`. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  readonly blockBytes: number;
}

/** A reader: something that plays or copies from a position on. Offsets are in the torrent's byte space. */
export interface ReaderDemand {
  /** First byte not yet delivered. */
  position: number;
  /** End of what it wants (exclusive): end of file, or of the range. */
  end: number;
  /** Media bitrate, bytes/s; null when unknown. */
  bytesPerSecond: number | null;
  /** How far to fetch ahead, bytes; null: by bitrate (see `Tuning`); 0: only awaited bytes. */
  readAheadBytes: number | null;
  /** A `read()` is waiting for `[position, waitingEnd)` now; equal to `position` when none is. */
  waitingEnd: number;
  /**
   * Everything it wants is due this much later, ms: readers with more urgent wishes go first. Less than 1 only decides
   * between it and readers that are equally late. Default 0.
   */
  readonly yieldMs?: number;
}

/** What is known of a peer whose handshake is done. */
export interface AddedPeer {
  readonly requestQueueLimit: number;
  readonly rttMs: number | null;
  /** BEP 6. */
  readonly fast: boolean;
  /** The peer already knows that we are interested. Default false. */
  readonly interested?: boolean;
}

/** Blocks that follow each other from a place in `piece` on, maybe over several pieces. Both numbers in bytes. */
export interface BlockRun {
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

/** What web seeds fetch. `cancel` may take blocks back; `blockReceived` reports them. */
export interface WebRunsApi {
  /** The next run of free blocks for it, at most `maxBytes` or one block; null when there is none now. */
  reserve(webSeed: number, maxBytes: number, nowMs: Millis): BlockRun | null;
  /** Reserves a block that it sends unasked; false when that is of no use. */
  reserveBlock(webSeed: number, piece: number, offset: number, nowMs: Millis): boolean;
  /** Whether a block of the run has neither arrived nor been taken back. */
  isWanted(webSeed: number, run: BlockRun): boolean;
  /** What has not arrived of a run may go to others. */
  giveBack(webSeed: number, run: BlockRun, nowMs: Millis): void;
}

/** The scheduler as its host uses it. The host numbers the peers. */
export interface SchedulerApi {
  addPeer(peer: number, nowMs: Millis, options: AddedPeer): void;
  /** A web seed (BEP 19): it has everything and never chokes; it is sent no requests (see `webRuns`). */
  addWebSeed(source: number, nowMs: Millis): void;
  /**
   * The handshake of a peer we dialled is under way. A few blocks that readers need now are requested from it at once,
   * as if it had everything and did not choke (most seeds unchoke every interested peer). `addPeer` follows when the
   * handshake is done. Without BEP 6 those requests then count as lost; with it the peer serves or rejects them.
   */
  presume(peer: number, nowMs: Millis, rttMs: number): void;
  removePeer(peer: number, nowMs: Millis): void;
  setRequestQueueLimit(peer: number, limit: number): void;
  /** Pieces the peer has. */
  peerHas(peer: number, piece: number, nowMs: Millis): void;
  /** Replaces the peer's pieces; `bytes` as on the wire. */
  peerBitfield(peer: number, bytes: Uint8Array, nowMs: Millis): void;
  peerHasAll(peer: number, nowMs: Millis): void;
  /** Reports that the peer lost a piece. */
  peerLacks(peer: number, piece: number, nowMs: Millis): void;
  allowedFast(peer: number, piece: number, nowMs: Millis): void;
  /** The peer could send the piece at little cost (BEP 6): it is asked for it first where nothing is urgent. */
  suggested(peer: number, piece: number): void;
  choked(peer: number, nowMs: Millis): void;
  unchoked(peer: number, nowMs: Millis): void;
  /** Bytes of payload arrived (also of unfinished blocks). */
  progress(peer: number, bytes: number, nowMs: Millis): void;
  /**
   * Whether the block was requested from the peer, even if cancelled since: any other block of it is thrown away. `bytes`:
   * the whole block by default; slow peers are asked for parts of blocks.
   */
  expects(peer: number, piece: number, offset: number, bytes?: number): boolean;
  /** A whole block, or the part that was asked for, arrived. Returns whether it is wanted; false: it is a duplicate or was never requested. */
  blockReceived(peer: number, piece: number, offset: number, nowMs: Millis, bytes?: number): boolean;
  rejected(peer: number, piece: number, offset: number, nowMs: Millis): void;
  pieceVerified(piece: number, nowMs: Millis): void;
  /**
   * The hash failed: all blocks of the piece are wanted again. The first time, each block is requested from another
   * peer than the one that sent it, and the host finds the liar by comparing both copies. After that one peer alone
   * fetches the piece, so that the next failure is certainly its fault.
   */
  pieceFailed(piece: number, nowMs: Millis): void;
  /**
   * The blocks of the piece were thrown away for a reason that says nothing about their senders: all are wanted again.
   */
  pieceDiscarded(piece: number, nowMs: Millis): void;
  /** A block that `peer` sent in a failed copy is good after all. Returns whether it is wanted. */
  blockRestored(peer: number, piece: number, offset: number): boolean;
  /** Some arrived blocks of an unverified piece turned out to come from a liar: only they are wanted again. */
  blocksLost(piece: number, blocks: readonly number[], nowMs: Millis): void;
  /** A piece we had was evicted or lost. */
  pieceLost(piece: number, nowMs: Millis): void;
  /** Readers, by handle. */
  setReader(reader: number, demand: ReaderDemand, nowMs: Millis): void;
  removeReader(reader: number, nowMs: Millis): void;
  /** Pieces to fetch in the background when nobody reads (whole-torrent download); null = none. */
  setBackground(range: { firstPiece: number; endPiece: number } | null, nowMs: Millis): void;
  /** What web seeds fetch. */
  readonly webRuns: WebRunsApi;
  /**
   * Timer, every 20 ms while there is demand. Returns the ms until it wants to be called again. null: not before an
   * event; any other call may bring the next tick forward to 20 ms.
   */
  tick(nowMs: Millis): number | null;
  /** Why the nearest deadline is not met; for `stall_reason`. */
  stallReason(reader: number, nowMs: Millis): "no_peers" | "missing_piece" | "choked" | "slow_peers" | null;
  /** Whether any reader needs this piece soon (critical or read-ahead). For `PieceStore.protect`. */
  wanted(piece: number): boolean;
}
