/**
 * Missing pieces of the background range, by how many peers have them: buckets with swap-removal, so that a `have`, a
 * start and an end each cost O(1). The order within a bucket is random (rarest first with random ties).
 */
import type { PeerState } from "./peer-state.ts";
import type { PieceBook } from "./pieces.ts";

/** Bucket entries examined before the peer's own bits are scanned instead. */
const MAX_PROBES = 256;
/** Bytes of a peer's bits scanned per pick (8 pieces each); the next pick continues from there. */
const MAX_SCAN_BYTES = 4096;

/** The missing pieces, rarest first. */
export class Rarity {
  readonly firstPiece: number;
  readonly endPiece: number;
  readonly #buckets: number[][] = [];
  readonly #place: Int32Array;
  readonly #bucketOf: Int16Array;
  readonly #book: PieceBook;
  readonly #random: () => number;
  /** Where the scan of each peer's bits continues. */
  readonly #scanFrom = new WeakMap<PeerState, number>();

  constructor(book: PieceBook, firstPiece: number, endPiece: number, random: () => number) {
    this.#book = book;
    this.firstPiece = firstPiece;
    this.endPiece = endPiece;
    this.#random = random;
    this.#place = new Int32Array(Math.max(0, endPiece - firstPiece)).fill(-1);
    this.#bucketOf = new Int16Array(this.#place.length);
    for (let piece = firstPiece; piece < endPiece; piece++) this.add(piece);
  }

  covers(piece: number): boolean {
    return piece >= this.firstPiece && piece < this.endPiece;
  }

  /** Adds a piece if it is missing. */
  add(piece: number): void {
    if (!this.covers(piece) || this.#book.state[piece] !== 0) return;
    const index = piece - this.firstPiece;
    if (this.#place[index]! >= 0) return;
    const rarity = Math.min(this.#book.availability[piece]!, 0x7fff);
    while (this.#buckets.length <= rarity) this.#buckets.push([]);
    const bucket = this.#buckets[rarity]!;
    const at = Math.floor(this.#random() * (bucket.length + 1));
    this.#bucketOf[index] = rarity;
    if (at < bucket.length) {
      const moved = bucket[at]!;
      this.#place[moved - this.firstPiece] = bucket.length;
      bucket.push(moved);
      bucket[at] = piece;
    } else bucket.push(piece);
    this.#place[index] = at;
  }

  remove(piece: number): void {
    if (!this.covers(piece)) return;
    const index = piece - this.firstPiece;
    const at = this.#place[index]!;
    if (at < 0) return;
    const bucket = this.#buckets[this.#bucketOf[index]!]!;
    const last = bucket.pop()!;
    if (last !== piece) {
      bucket[at] = last;
      this.#place[last - this.firstPiece] = at;
    }
    this.#place[index] = -1;
  }

  /** Its availability changed. */
  moved(piece: number): void {
    if (!this.covers(piece) || this.#place[piece - this.firstPiece]! < 0) return;
    this.remove(piece);
    this.add(piece);
  }

  /** The rarest missing piece that `peer` offers (approximately: long searches are cut short), -1 when none was found. */
  pick(peer: PeerState, nowMs: number): number {
    let probes = 0;
    // Bucket 0 holds the pieces that only seeds have.
    for (let rarity = peer.seed ? 0 : 1; rarity < this.#buckets.length; rarity++) {
      const bucket = this.#buckets[rarity]!;
      for (let i = bucket.length - 1; i >= 0; i--) {
        if (peer.offers(bucket[i]!, nowMs)) return bucket[i]!;
        if (++probes >= MAX_PROBES) return this.#scan(peer, nowMs);
      }
    }
    return -1;
  }

  #scan(peer: PeerState, nowMs: number): number {
    const { bits } = peer.holdings;
    if (bits === null) return -1;
    let at = this.#scanFrom.get(peer) ?? 0;
    for (let n = Math.min(bits.length, MAX_SCAN_BYTES); n > 0; n--) {
      if (at >= bits.length) at = 0;
      const found = bits[at] === 0 ? -1 : this.#firstOf(peer, at * 8, nowMs);
      if (found >= 0) {
        this.#scanFrom.set(peer, at);
        return found;
      }
      at++;
    }
    this.#scanFrom.set(peer, at);
    return -1;
  }

  /** The first of eight pieces from `base` on that is missing, not begun, and offered by `peer`; -1 when there is none. */
  #firstOf(peer: PeerState, base: number, nowMs: number): number {
    for (let piece = base; piece < base + 8; piece++) {
      if (!this.covers(piece) || this.#place[piece - this.firstPiece]! < 0) continue;
      if (peer.offers(piece, nowMs)) return piece;
    }
    return -1;
  }
}
