/**
 * The pieces a swarm has: those in its store and, when the store is in trouble (disk full), the newest few in memory, so
 * playback goes on. Nothing here rejects because of the medium: trouble is reported and the piece is fetched again.
 */
import { type Allocate, copyOf } from "../../bytes/source.ts";
import { Bitfield } from "../../bytes/bitfield.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import type { PieceStore } from "../../storage/piece-store.ts";

/** Pieces kept in memory while the store refuses them, bytes: tens of seconds of video. */
const OVERFLOW_BYTES = 64 * 1024 * 1024;

/** Time until the next try after the store refused a piece, ms. */
const STORE_RETRY_MS = 30_000;

/** What a bank reports to its owner. */
export interface PieceBankEvents {
  /** A piece we had was lost. */
  lost(piece: number): void;
  /** A piece was found on the medium after all. */
  found(piece: number): void;
  /** Trouble that a user should know about; null when it is over. */
  trouble(message: string | null): void;
}

/** Verified pieces of one torrent. */
export class PieceBank {
  /** The pieces we have. Read-only for users. */
  readonly have: Bitfield;
  readonly #store: PieceStore;
  readonly #clock: Clock;
  readonly #events: PieceBankEvents;
  readonly #overflow = new Map<number, Uint8Array>();
  #overflowBytes = 0;
  #storeRefusedUntilMs = -Infinity;
  #troubled = false;

  constructor(store: PieceStore, clock: Clock, events: PieceBankEvents) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    this.have = new Bitfield(store.have.size, store.have.bytes);
    store.onLost = (piece) => this.#lose(piece);
    store.onFound = (piece) => {
      if (this.have.set(piece)) events.found(piece);
    };
  }

  /** Pieces for which this returns true are kept (see `PieceStore.protect`). */
  set protect(fn: (piece: number) => boolean) {
    this.#store.protect = fn;
  }

  /** Takes a verified piece; resolves when it is stored or given up. It can be read at once. */
  async put(piece: number, data: Uint8Array): Promise<void> {
    this.have.set(piece);
    if (this.#clock.monotonic() < this.#storeRefusedUntilMs) return this.#keepInMemory(piece, data);
    const refusedUntilMs = this.#storeRefusedUntilMs;
    try {
      await this.#store.put(piece, data);
      // A piece that was under way before another was refused proves nothing.
      if (this.#troubled && refusedUntilMs === this.#storeRefusedUntilMs) this.#setTrouble(null);
    } catch (error) {
      if (hasCode(error, "closed")) return;
      this.#storeRefusedUntilMs = this.#clock.monotonic() + STORE_RETRY_MS;
      this.#setTrouble(describe(error));
      this.#lose(piece);
    }
  }

  /** A copy when the bytes are in memory, else null. */
  peek(piece: number, offset: number, length: number, allocate?: Allocate): Uint8Array | null {
    const kept = this.#overflow.get(piece);
    return kept === undefined
      ? this.#store.peek(piece, offset, length, allocate)
      : copyOf(kept, offset, length, allocate);
  }

  /** A copy of bytes of a piece; when it is gone rejects with `not_found` or the medium's error, and `lost` is called. */
  async read(piece: number, offset: number, length: number, allocate?: Allocate): Promise<Uint8Array> {
    const kept = this.#overflow.get(piece);
    if (kept !== undefined) return copyOf(kept, offset, length, allocate);
    if (!this.have.has(piece)) throw new MillraceError("not_found", `piece ${piece} is not stored`);
    try {
      return await this.#store.read(piece, offset, length, allocate);
    } catch (error) {
      if (!hasCode(error, "closed") && !this.#overflow.has(piece) && !this.#store.have.has(piece)) this.#lose(piece);
      throw error;
    }
  }

  #keepInMemory(piece: number, data: Uint8Array): void {
    this.#overflow.set(piece, data);
    this.#overflowBytes += data.length;
    for (const [oldest, bytes] of this.#overflow) {
      if (this.#overflowBytes <= OVERFLOW_BYTES || this.#overflow.size <= 2) break;
      this.#overflow.delete(oldest);
      this.#overflowBytes -= bytes.length;
      this.#lose(oldest);
    }
  }

  #lose(piece: number): void {
    if (this.#overflow.has(piece)) return;
    if (this.have.set(piece, false)) this.#events.lost(piece);
  }

  #setTrouble(message: string | null): void {
    this.#troubled = message !== null;
    this.#events.trouble(message);
  }
}

function describe(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `${
    hasCode(error, "disk_full") ? "no room to store pieces" : "pieces cannot be stored"
  } (${reason}); the newest are kept in memory`;
}
