/** What a peer says to have while the number of pieces, and so what the numbers mean, is unknown. */
import { MAX_PIECES } from "../wire/limits.ts";
import type { PeerLinkHandlers } from "../wire/types.ts";

/** `have` messages remembered of a peer, and as many of BEP 54: what a peer that downloads while we wait may send. */
const MAX_EARLY_HAVES = 4096;

/** Collects it until the metadata is there, then tells it again. */
export class EarlyPieces {
  /** It said to have everything. */
  all = false;
  private bits: Uint8Array | null = null;
  private haves: number[] = [];
  private readonly lost = new Set<number>();

  bitfield(bytes: Uint8Array): void {
    this.bits = bytes.slice(0, Math.ceil(MAX_PIECES / 8));
    this.all = false;
  }

  none(): void {
    this.all = false;
    this.bits = null;
  }

  have(piece: number): void {
    this.lost.delete(piece);
    if (this.haves.length < MAX_EARLY_HAVES) this.haves.push(piece);
  }

  dontHave(piece: number): void {
    if (this.lost.size < MAX_EARLY_HAVES) this.lost.add(piece);
  }

  /** Tells `peer` all of it in an order that comes to the same, and forgets it. */
  replay(peer: Required<Pick<PeerLinkHandlers, "haveAll" | "bitfield" | "have" | "dontHave">>): void {
    if (this.all) peer.haveAll();
    else if (this.bits !== null) peer.bitfield(this.bits);
    for (const piece of this.haves) peer.have(piece);
    for (const piece of this.lost) peer.dontHave(piece);
    this.bits = null;
    this.haves = [];
    this.lost.clear();
  }
}
