/** Which peers have which pieces, and which of them we are interested in. */
import type { ReadonlyNumbers } from "./active-piece.ts";
import type { Core } from "./core.ts";
import type { PeerState } from "./peer-state.ts";
import { HAVE } from "./pieces.ts";

/** Keeps the pieces of all peers, and our interest in each, up to date. */
export class Roster {
  readonly #core: Core;
  /** Peers that were told that we are interested. */
  readonly #interested = new Set<PeerState>();
  /** When demand ended; null while there is demand. */
  #idleSinceMs: number | null = Number.NEGATIVE_INFINITY;

  constructor(core: Core) {
    this.#core = core;
  }

  /** A peer came, or its handshake is done; `isInterested`: it was told already that we are. */
  joined(peer: PeerState, isInterested: boolean): void {
    if (isInterested) this.#interested.add(peer);
    else this.#interested.delete(peer);
  }

  /** A peer left. */
  left(peer: PeerState): void {
    this.clear(peer);
    this.#interested.delete(peer);
  }

  /** The peer has one more piece; false when that was known. */
  has(peer: PeerState, piece: number): boolean {
    const { book, rarity } = this.#core;
    if (!(piece >= 0 && piece < book.pieceCount) || peer.has(piece)) return false;
    peer.holdings.add(piece, book.pieceCount);
    book.countHolder(piece, 1);
    rarity?.moved(piece);
    if (book.state[piece] !== HAVE) peer.holdings.countUseful(1);
    return true;
  }

  /** The peer has one piece less; false when that was known. */
  lacks(peer: PeerState, piece: number): boolean {
    const { book, rarity } = this.#core;
    if (!(piece >= 0 && piece < book.pieceCount)) return false;
    if (peer.seed) {
      const bits = new Uint8Array((book.pieceCount + 7) >> 3).fill(0xff);
      bits[piece >> 3]! ^= 0x80 >> (piece & 7);
      this.bitfield(peer, bits);
      return true;
    }
    if (!peer.has(piece)) return false;
    peer.holdings.remove(piece);
    book.countHolder(piece, -1);
    rarity?.moved(piece);
    if (book.state[piece] !== HAVE) peer.holdings.countUseful(-1);
    return true;
  }

  /** Replaces the pieces it has; a full bitfield makes it a seed. */
  bitfield(peer: PeerState, bytes: Uint8Array): void {
    const { book, rarity } = this.#core;
    this.clear(peer);
    const bits = new Uint8Array((book.pieceCount + 7) >> 3);
    bits.set(bytes.subarray(0, bits.length));
    let count = 0;
    each(bits, book.pieceCount, () => count++);
    if (count === book.pieceCount) return this.hasAll(peer);
    peer.holdings.replace(bits);
    each(bits, book.pieceCount, (piece) => {
      book.countHolder(piece, 1);
      rarity?.moved(piece);
      if (book.state[piece] !== HAVE) peer.holdings.countUseful(1);
    });
  }

  hasAll(peer: PeerState): void {
    this.clear(peer);
    peer.holdings.replace("all");
    this.#core.book.countSeed(1);
  }

  /** The peer has no pieces, or none any more. */
  clear(peer: PeerState): void {
    const { book, rarity } = this.#core;
    if (peer.seed) book.countSeed(-1);
    const { bits } = peer.holdings;
    peer.holdings.replace(null);
    if (bits === null) return;
    each(bits, book.pieceCount, (piece) => {
      book.countHolder(piece, -1);
      rarity?.moved(piece);
    });
  }

  /** We have a piece that we lacked. */
  gained(piece: number, nowMs: number): void {
    const { book, peers } = this.#core;
    for (const peer of peers.values()) {
      if (!peer.seed && peer.has(piece)) peer.holdings.countUseful(-1);
      if (peer.seed ? book.missingCount === 0 : peer.holdings.usefulCount === 0) this.refreshInterest(peer, nowMs);
    }
  }

  /** We lack a piece that we had. */
  lost(piece: number, nowMs: number): void {
    const { peers } = this.#core;
    for (const peer of peers.values()) {
      if (!peer.seed && peer.has(piece)) peer.holdings.countUseful(1);
      this.refreshInterest(peer, nowMs);
    }
  }

  /** Readers or the background download came or went. */
  demandChanged(nowMs: number): void {
    const core = this.#core;
    const demand = core.readers.size > 0 || core.rarity !== null;
    if (demand === (this.#idleSinceMs === null)) return;
    this.#idleSinceMs = demand ? null : nowMs;
    this.refreshAll(nowMs);
  }

  /** Time until interest lapses, 0 when it has; null while there is demand. */
  lingerMs(nowMs: number): number | null {
    return this.#idleSinceMs === null
      ? null
      : Math.max(0, this.#idleSinceMs + this.#core.tuning.interestLingerMs - nowMs);
  }

  refreshAll(nowMs: number): void {
    for (const peer of this.#core.peers.values()) this.refreshInterest(peer, nowMs);
  }

  /** Notifies the host when our interest in a peer changed. */
  refreshInterest(peer: PeerState, nowMs: number): void {
    const { book, actions } = this.#core;
    const demand = this.lingerMs(nowMs) !== 0;
    const value = demand && (peer.seed ? book.missingCount > 0 : peer.holdings.usefulCount > 0);
    if (value === this.#interested.has(peer)) return;
    if (value) this.#interested.add(peer);
    else this.#interested.delete(peer);
    actions.interested(peer.id, value);
  }
}

/** Calls `visit` for each bit that is set. */
function each(bits: ReadonlyNumbers, size: number, visit: (piece: number) => void): void {
  for (let i = 0; i < bits.length; i++) {
    if (bits[i] === 0) continue;
    const end = Math.min(size, i * 8 + 8);
    for (let piece = i * 8; piece < end; piece++) if ((bits[i]! & (0x80 >> (piece & 7))) !== 0) visit(piece);
  }
}
