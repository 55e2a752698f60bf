/** Which pieces one peer would serve at the moment, as its chokes, rejects and allowed-fast sets say. */
import { AvoidedPieces } from "./avoided-pieces.ts";

/** Pieces that a peer may allow while it chokes. BEP 6 suggests sets of 10; the bound keeps a peer from filling memory. */
const MAX_ALLOWED = 128;

/** The permissions of one peer. */
export class Permits {
  #isChoking = true;
  /** Pieces that it serves although it chokes (BEP 6). */
  #allowed: Set<number> | null = null;
  readonly #avoided = new AvoidedPieces();

  /** The peer chokes us. */
  get isChoking(): boolean {
    return this.#isChoking;
  }

  /** Whether there may be anything that it would serve. */
  get isOpen(): boolean {
    return !this.#isChoking || this.#allowed !== null;
  }

  /** Whether it would serve the piece now, if it has it. */
  grants(piece: number, nowMs: number): boolean {
    if (this.#isChoking && (this.#allowed === null || !this.#allowed.has(piece))) return false;
    return !this.#avoided.has(piece, nowMs);
  }

  /** Whether it serves the piece even while it chokes. */
  isAllowed(piece: number): boolean {
    return this.#allowed?.has(piece) === true;
  }

  /** The peer chokes. */
  choke(): void {
    this.#isChoking = true;
  }

  /** The peer chokes no more. */
  unchoke(): void {
    this.#isChoking = false;
  }

  /** The peer serves the piece even while it chokes. Returns false when it allowed too many before. */
  allow(piece: number): boolean {
    if ((this.#allowed?.size ?? 0) >= MAX_ALLOWED) return false;
    (this.#allowed ??= new Set()).add(piece);
    return true;
  }

  /** The peer rejected a block of the piece: it is not asked for the piece for a while, `maxMs` at most. */
  rejected(piece: number, nowMs: number, maxMs: number): void {
    if (this.#isChoking) this.#allowed?.delete(piece);
    else this.#avoided.add(piece, nowMs, maxMs);
  }

  /** The peer sent a block: what it rejects next is a first reject again. */
  delivered(): void {
    this.#avoided.delivered();
  }

  /** The peer has the piece again: its earlier rejects no longer count. */
  forgive(piece: number): void {
    this.#avoided.forgive(piece);
  }
}
