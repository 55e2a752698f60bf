/** What is kept of a piece under way and of the requests for its blocks. */
/** Numbers that others may read. */
export interface ReadonlyNumbers {
  readonly length: number;
  readonly [index: number]: number;
}

/** One request at one peer. Reused through the pool of `PieceBook`. */
export interface RequestAt<Peer> {
  peer: Peer;
  part: PieceOf<Peer>;
  block: number;
  /** The bytes of the block that it asks for. */
  from: number;
  bytes: number;
  /** Set when that is a part of the block. */
  cut: Cut | null;
  sentMs: number;
  /** An earlier request for the block was cancelled, so what comes may answer that one. */
  repeated: boolean;
  /** When the block should be here, as estimated when it was requested. */
  dueMs: number;
  /** Nobody wants the block any more, but it can't be called back. */
  stray: boolean;
  /** Neighbours in the peer's queue, oldest first. */
  older: RequestAt<Peer> | null;
  newer: RequestAt<Peer> | null;
  /** Next copy of the same block at another peer. */
  copy: RequestAt<Peer> | null;
  /** Its position in the peer's queue at the last `PeerState.rank`. */
  rank: number;
}

/** A block that several peers send in parts. It counts as free while a part of it is requested from nobody. */
export interface Cut {
  /** Where the part begins that was never requested. */
  next: number;
  /** Bytes here. */
  here: number;
  /** Parts whose requests ended without them. */
  readonly holes: { readonly from: number; readonly bytes: number }[];
}

/** A piece under way. */
export interface PieceOf<Peer> {
  readonly piece: number;
  readonly blocks: number;
  readonly state: Uint8Array;
  readonly asked: (RequestAt<Peer> | null)[];
  /** Blocks that several peers send in parts. */
  readonly cuts: Map<number, Cut>;
  /** Peer that sent each block, -1 before. */
  readonly sources: Int32Array;
  free: number;
  here: number;
  /** No free block below this index. */
  hint: number;
  /** The peer that fetches it in the background, so that others start other pieces. */
  owner: Peer | null;
  /** Since when, monotonic ms. */
  ownedMs: number;
  /** Its hash failed. One peer at a time fetches it, so that the next failure convicts that peer. */
  sole: boolean;
}
