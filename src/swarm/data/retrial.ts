/**
 * Fetches a failed piece again from one of its senders alone, so that the next hash judges only that peer. Good bytes
 * show which blocks of the failed attempt were forged; bad bytes convict the peer itself. Without it three peers that
 * share every piece with one liar would never finish a piece.
 */
import type { Clock, Timer } from "../../ports.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";
import { Assembly, type BufferSource } from "./assembly.ts";
import type { Sources } from "./sources.ts";

/** Requests kept under way; the peer's other requests share its connection. */
const DEPTH = 32;

/** A witness that is silent for this long is skipped, ms. */
const WITNESS_TIMEOUT_MS = 8_000;

/** What a retrial works with. */
export interface RetrialParts {
  readonly piece: number;
  readonly lengthBytes: number;
  /** The piece's senders, in the order in which they are asked. */
  readonly suspects: readonly number[];
  readonly clock: Clock;
  readonly buffers: BufferSource;
  readonly sources: Pick<Sources, "canAsk" | "request" | "cancel">;
  /** One witness delivered the whole piece. */
  heard(assembly: Assembly): void;
  /** No witness is left. */
  exhausted(): void;
}

/** The retrial of one piece. */
export class Retrial {
  readonly #parts: RetrialParts;
  readonly #suspects: number[];
  #assembly: Assembly | null = null;
  #witness = -1;
  #next = 0;
  readonly #asked = new Set<number>();
  #timer: Timer | null = null;

  /** Call `proceed` to begin. */
  constructor(parts: RetrialParts) {
    this.#parts = parts;
    this.#suspects = [...parts.suspects];
  }

  /** The peer being asked, -1 when there is none. */
  get source(): number {
    return this.#witness;
  }

  /** Asks the next suspect; ends with `exhausted` when there is none. */
  proceed(): void {
    this.#dismiss();
    const { piece, lengthBytes, buffers, clock, sources } = this.#parts;
    for (let source = this.#suspects.shift(); source !== undefined; source = this.#suspects.shift()) {
      if (!sources.canAsk(source, piece)) continue;
      this.#witness = source;
      this.#assembly = new Assembly(piece, buffers.acquire(lengthBytes), clock.monotonic());
      this.#watch();
      this.#fill();
      return;
    }
    this.#parts.exhausted();
  }

  /** Where the witness's block goes; null when it is not the witness's turn. */
  target(source: number, block: number): Uint8Array | null {
    const assembly = this.#assembly;
    if (source !== this.#witness || assembly === null || !this.#asked.has(block) || assembly.has(block)) return null;
    return assembly.view(block);
  }

  /** The witness's block is complete in its target. */
  block(source: number, block: number): void {
    const assembly = this.#assembly;
    if (source !== this.#witness || assembly === null || !this.#asked.delete(block)) return;
    assembly.begin(block, source);
    assembly.finish(block, source, this.#parts.clock.monotonic());
    this.#watch();
    if (!assembly.complete) return this.#fill();
    this.#timer?.cancel();
    this.#timer = null;
    this.#assembly = null;
    this.#parts.heard(assembly);
  }

  /** The peer left, choked us or refused: if it was the witness, the next one is asked. */
  unavailable(source: number): void {
    if (source === this.#witness && this.#assembly !== null) this.proceed();
  }

  /** Ends it without reporting anything. */
  close(): void {
    this.#suspects.length = 0;
    this.#dismiss();
  }

  #fill(): void {
    const assembly = this.#assembly!;
    while (this.#asked.size < DEPTH && this.#next < assembly.blocks) {
      const block = this.#next++;
      this.#asked.add(block);
      this.#parts.sources.request(this.#witness, this.#parts.piece, block * BLOCK_BYTES, assembly.view(block).length);
    }
  }

  #watch(): void {
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.setTimeout(() => this.proceed(), WITNESS_TIMEOUT_MS);
  }

  #dismiss(): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#assembly !== null) {
      for (const block of this.#asked) {
        this.#parts.sources.cancel(
          this.#witness,
          this.#parts.piece,
          block * BLOCK_BYTES,
          this.#assembly.view(block).length,
        );
      }
    }
    this.#assembly = null;
    this.#witness = -1;
    this.#next = 0;
    this.#asked.clear();
  }
}
