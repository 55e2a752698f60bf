/** Makes signed pieces from a transport stream: cut, number, hash, sign, one after the other. */
import type { Clock, Digest } from "../../ports.ts";
import type { SequenceAllocator } from "./broadcast-state.ts";
import { BitrateMeter } from "./bitrate-meter.ts";
import { CaptureClock } from "./capture-clock.ts";
import { type CutPiece, PieceCutter } from "./cutter.ts";
import type { PieceHeader } from "../header.ts";
import { hashBlocks, type HeaderSigner } from "../signer.ts";

/** A piece ready to be served. */
export interface SignedPiece {
  readonly header: PieceHeader;
  readonly data: Uint8Array;
}

/** What a publisher needs. */
export interface PublisherOptions {
  readonly clock: Clock;
  readonly signer: HeaderSigner;
  readonly sha256: Digest;
  readonly sequence: SequenceAllocator;
  readonly pieceLengthBytes: number;
  /** False marks the first piece as a discontinuity: after a restart. */
  readonly continues: boolean;
  /** Monotonic ms at which the first bytes arrived; by default now. */
  readonly startMs?: number | undefined;
  /** Takes each piece, in order. */
  publish(piece: SignedPiece): void;
}

/** Bytes of a source in, signed pieces out. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #cutter: PieceCutter;
  readonly #meter: BitrateMeter;
  readonly #captureClock: CaptureClock;
  #lastTimestampMs = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#cutter = new PieceCutter(options.pieceLengthBytes, options.continues);
    this.#meter = new BitrateMeter();
    this.#captureClock = new CaptureClock(options.clock, options.sequence.savedMs, options.startMs);
  }

  /** Bytes per second over the last 10 s; null before the first 2 s. */
  get bytesPerS(): number | null {
    return this.#meter.bytesPerS(this.#options.clock.monotonic());
  }

  /** Bytes of the source that did not belong to packets. */
  get droppedBytes(): number {
    return this.#cutter.droppedBytes;
  }

  /**
   * Takes bytes that arrived at `atMs` (monotonic, by default now; never less than before). Resolves when the pieces that they complete are published: awaiting it before
   * the next call bounds what is kept. Rejects when the state can't be written.
   */
  push(chunk: Uint8Array, atMs: number = this.#options.clock.monotonic()): Promise<void> {
    this.#meter.add(chunk.length, atMs);
    return this.#enqueue(this.#cutter.push(chunk, this.#captureClock.at(atMs)));
  }

  /** The source was lost; the next piece is marked as a discontinuity. */
  sourceLost(): Promise<void> {
    return this.#enqueue(this.#cutter.sourceLost());
  }

  /** Ends the broadcast with a piece that says so. */
  async end(): Promise<void> {
    await this.#enqueue(this.#cutter.end(this.#captureClock.now()));
    await this.#options.sequence.close();
  }

  #enqueue(pieces: readonly CutPiece[]): Promise<void> {
    const work = this.#tail.then(async () => {
      for (const piece of pieces) await this.#sign(piece);
    });
    // The caller whose push failed gets the error; later pushes try again.
    this.#tail = work.catch(() => {});
    return work;
  }

  async #sign(piece: CutPiece): Promise<void> {
    const { signer, sequence, sha256, publish } = this.#options;
    // Receivers take a time that does not grow for a replay; a fast source fills several pieces in a millisecond.
    const timestampMs = Math.max(piece.timestampMs, this.#lastTimestampMs + 1);
    const [place, hashes] = await Promise.all([sequence.take(timestampMs), hashBlocks(piece.data, sha256)]);
    const { flags, data } = piece;
    const header = await signer.sign({ ...place, timestampMs, flags, lengthBytes: data.length, hashes });
    this.#lastTimestampMs = timestampMs;
    publish({ header, data });
  }
}
