/** What a channel has received and its window has not taken yet, as the pieces of a broadcast. */
import type { LiveSupply, PlaybackFeed, SuppliedPiece } from "../../live/swarm/live-source.ts";
import type { PieceHeader } from "../../live/header.ts";

const NO_BYTES = new Uint8Array();

/**
 * The packets that wait. The window takes them ten times a second, and what comes meanwhile is bounded by the pacer of
 * sources (16 MiB a second, and as much saved up).
 */
export class ChannelFeed implements LiveSupply, PlaybackFeed {
  readonly joined = true;
  readonly behindMs = null;
  readonly newestSeq = null;
  readonly heldMs = 0;
  readonly skippedPieces = 0;
  /** All of it was taken, and nothing follows. */
  ended = false;
  #isOver = false;
  #seq = 0;
  #waiting: { blocks: Uint8Array[]; bytes: number; discontinuity: boolean; timestampMs: number }[] = [];
  #isCut = false;

  /** Something came, though nothing is kept here after it was taken. */
  get hasPieces(): boolean {
    return this.started;
  }

  get started(): boolean {
    return this.#seq > 0 || this.#waiting.length > 0;
  }

  get position(): number | null {
    return this.started ? this.#seq : null;
  }

  piecesBefore(): SuppliedPiece[] {
    return [];
  }

  openFeed(): PlaybackFeed {
    return this;
  }

  closeFeed(): void {
    this.#waiting = [];
  }

  /** What comes next does not continue what came before. */
  cut(): void {
    this.#isCut = this.started;
  }

  /** Takes whole packets that came at this time, Unix ms. */
  push(packets: Uint8Array, nowMs: number): void {
    const last = this.#waiting.at(-1);
    if (last === undefined || this.#isCut) {
      this.#waiting.push({ blocks: [packets], bytes: packets.length, discontinuity: this.#isCut, timestampMs: nowMs });
    } else {
      last.blocks.push(packets);
      last.bytes += packets.length;
    }
    this.#isCut = false;
  }

  /** Nothing follows what was pushed. */
  end(): void {
    this.#isOver = true;
  }

  take(): SuppliedPiece[] {
    this.ended = this.#isOver;
    return this.#waiting.splice(0).map(({ blocks, bytes, discontinuity, timestampMs }) => ({
      header: this.#header(bytes, timestampMs),
      blocks,
      discontinuity,
    }));
  }

  #header(lengthBytes: number, timestampMs: number): PieceHeader {
    return {
      epoch: 0,
      seq: this.#seq++,
      timestampMs,
      flags: 0,
      lengthBytes,
      hashes: NO_BYTES,
      signature: NO_BYTES,
      bytes: NO_BYTES,
    };
  }
}
