/**
 * The pieces that a peer reports before we know the number of pieces. Without that number piece numbers mean nothing.
 */
import { MAX_PIECES } from "../../wire/limits.ts";
import type { TorrentHandlers } from "../../wire/types.ts";

/**
 * `have` messages remembered per peer, and as many of BEP 54: as many as a peer that is downloading may send in that
 * time.
 */
const MAX_EARLY_HAVES = 4096;

/** Allowed-fast pieces remembered per peer: BEP 6 suggests ten. As many suggested ones: the newest count. */
const MAX_EARLY_ALLOWED = 128;

/** Collects these messages until the metadata is known, then replays them. */
export class EarlyPieces {
  /** The peer said that it has everything. */
  all = false;
  #bits: Uint8Array | null = null;
  #haves: number[] = [];
  readonly #lost = new Set<number>();
  readonly #allowed = new Set<number>();
  readonly #suggested = new Set<number>();

  bitfield(bytes: Uint8Array): void {
    this.#bits = bytes.slice(0, Math.ceil(MAX_PIECES / 8));
    this.all = false;
  }

  none(): void {
    this.all = false;
    this.#bits = null;
  }

  have(piece: number): void {
    this.#lost.delete(piece);
    if (this.#haves.length < MAX_EARLY_HAVES) this.#haves.push(piece);
  }

  dontHave(piece: number): void {
    if (this.#lost.size < MAX_EARLY_HAVES) this.#lost.add(piece);
  }

  /** BEP 6: the piece may be requested while the peer chokes us. */
  allowedFast(piece: number): void {
    if (this.#allowed.size < MAX_EARLY_ALLOWED) this.#allowed.add(piece);
  }

  /** BEP 6: the peer could send the piece at little cost. */
  suggest(piece: number): void {
    if (this.#suggested.size >= MAX_EARLY_ALLOWED) this.#suggested.delete(this.#suggested.values().next().value!);
    this.#suggested.add(piece);
  }

  /** Replays everything to `peer`, in an order with the same result as the original, and forgets it. */
  replay(
    peer: Required<Pick<TorrentHandlers, "haveAll" | "bitfield" | "have" | "dontHave" | "allowedFast" | "suggest">>,
  ): void {
    if (this.all) peer.haveAll();
    else if (this.#bits !== null) peer.bitfield(this.#bits);
    for (const piece of this.#haves) peer.have(piece);
    for (const piece of this.#lost) peer.dontHave(piece);
    for (const piece of this.#allowed) peer.allowedFast(piece);
    for (const piece of this.#suggested) peer.suggest(piece);
    this.#bits = null;
    this.#haves = [];
    this.#lost.clear();
    this.#allowed.clear();
    this.#suggested.clear();
  }
}
