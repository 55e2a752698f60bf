/**
 * Hashes complete pieces (several at once, off the main thread) and stores them, or traces a failure to a peer:
 * a sole sender is convicted at once; several are asked again one by one (see `retrial.ts`).
 */
import type { Clock, Sha1 } from "../ports.ts";
import type { Assembly, BufferSource } from "./assembly.ts";
import { blockDigests, Evidence, type Suspect } from "./evidence.ts";
import { pieceBytes, type PieceShape } from "./layout.ts";
import type { PieceBank } from "./piece-bank.ts";
import { Retrial } from "./retrial.ts";
import type { Sources } from "./sources.ts";

/** Bytes of pieces being verified or written at once; above it, peers are not read from until half of it is done. */
const BACKLOG_LIMIT_BYTES = 8 * 1024 * 1024;

/** The same in pieces, for torrents whose pieces are huge. */
const MIN_BACKLOG_PIECES = 3;

/** How pieces fare, for their torrent. */
export interface PieceEvents {
  /** The piece is good, and in the bank. */
  verified(piece: number): void;
  /** What arrived of the piece was thrown away: all of it is wanted again. */
  failed(piece: number): void;
  /** So many bytes of payload were thrown away. */
  wasted(bytes: number): void;
  /** This source sent corrupt data: it is to be banned, and what it sent of other pieces is in doubt too. */
  convicted(suspect: Suspect): void;
}

/** What a verifier works with. */
export interface VerifierParts {
  readonly shape: PieceShape;
  /** SHA-1 of piece i at [20·i, 20·i+20). */
  readonly hashes: Uint8Array;
  readonly clock: Clock;
  readonly sha1: Sha1;
  readonly buffers: BufferSource;
  readonly bank: PieceBank;
  readonly sources: Sources;
  readonly events: PieceEvents;
}

/** Verification of one torrent's pieces. */
export class Verifier {
  private readonly parts: VerifierParts;
  private readonly evidence = new Evidence();
  private readonly retrials = new Map<number, Retrial>();
  private readonly hashing = new Set<number>();
  private readonly backlogLimit: number;
  private backlog = 0;
  private isCongested = false;
  private closed = false;
  /** Pieces with a wrong hash since the start. */
  failedPieces = 0;

  constructor(parts: VerifierParts) {
    this.parts = parts;
    this.backlogLimit = Math.max(BACKLOG_LIMIT_BYTES, MIN_BACKLOG_PIECES * parts.shape.pieceLengthBytes);
  }

  /** Whether the piece is being hashed, or is in doubt and being fetched again. */
  holds(piece: number): boolean {
    return this.hashing.has(piece) || this.retrials.has(piece);
  }

  /** The retrial of a piece, if one is under way. */
  retrial(piece: number): Retrial | undefined {
    return this.retrials.size === 0 ? undefined : this.retrials.get(piece);
  }

  /** A peer left or choked us. */
  unavailable(source: number): void {
    for (const retrial of [...this.retrials.values()]) retrial.unavailable(source);
  }

  /** Hashes a complete piece and settles it. Never rejects. */
  async submit(assembly: Assembly): Promise<void> {
    const { piece, buffer } = assembly;
    this.hashing.add(piece);
    this.grow(buffer.length);
    try {
      const digest = await this.parts.sha1(buffer);
      if (this.closed) return;
      if (this.matches(piece, digest)) await this.accept(piece, buffer);
      else await this.refuse(assembly);
    } catch {
      // Hashing can fail only for lack of memory: the piece is fetched again.
      this.hashing.delete(piece);
      if (!this.closed) this.parts.events.failed(piece);
    } finally {
      this.grow(-buffer.length);
    }
  }

  close(): void {
    this.closed = true;
    for (const retrial of this.retrials.values()) retrial.close();
    this.retrials.clear();
  }

  private matches(piece: number, digest: Uint8Array): boolean {
    const at = piece * 20;
    for (let i = 0; i < 20; i++) if (digest[i] !== this.parts.hashes[at + i]) return false;
    return true;
  }

  private async accept(piece: number, buffer: Uint8Array): Promise<void> {
    if (this.evidence.has(piece)) {
      const good = await blockDigests(buffer, this.parts.sha1);
      if (this.closed) return;
      for (const liar of this.evidence.convict(piece, good)) this.parts.events.convicted(liar);
    }
    this.retrials.get(piece)?.close();
    this.retrials.delete(piece);
    const stored = this.parts.bank.put(piece, buffer);
    this.hashing.delete(piece);
    this.parts.events.verified(piece);
    await stored;
  }

  private async refuse(assembly: Assembly): Promise<void> {
    const { piece, buffer } = assembly;
    this.failedPieces++;
    this.parts.events.wasted(buffer.length);
    const sources = [...assembly.contributors()];
    const sole = sources.length === 1 ? this.parts.sources.suspect(sources[0]!) : undefined;
    if (sole !== undefined) {
      this.parts.buffers.release(buffer);
      this.parts.events.convicted(sole);
    } else if (sources.length > 1) {
      const digests = await blockDigests(buffer, this.parts.sha1);
      if (this.closed) return;
      const senders = digests.map((_, block) => this.parts.sources.suspect(assembly.sourceOf(block)!));
      this.evidence.record(piece, digests, senders);
      this.parts.buffers.release(buffer);
    }
    const retrial = this.retrials.get(piece) ?? this.open(piece, sources);
    this.hashing.delete(piece);
    retrial.proceed();
  }

  /** A retrial of the piece; with a sole sender it has nobody to ask and ends at once. */
  private open(piece: number, senders: readonly number[]): Retrial {
    const { clock, buffers, sources, shape } = this.parts;
    const retrial = new Retrial({
      piece,
      lengthBytes: pieceBytes(shape, piece),
      suspects: senders.length > 1 ? senders : [],
      clock,
      buffers,
      sources,
      heard: (assembly) => void this.submit(assembly),
      exhausted: () => {
        this.retrials.delete(piece);
        this.parts.events.failed(piece);
      },
    });
    this.retrials.set(piece, retrial);
    return retrial;
  }

  private grow(bytes: number): void {
    this.backlog += bytes;
    if (!this.isCongested && this.backlog > this.backlogLimit) {
      this.isCongested = true;
      this.parts.sources.setCongested(true);
    } else if (this.isCongested && this.backlog <= this.backlogLimit / 2) {
      this.isCongested = false;
      if (!this.closed) this.parts.sources.setCongested(false);
    }
  }
}
