/**
 * Hashes complete pieces (several at once, off the main thread) and stores them, or traces a failure to a peer. A sole
 * sender is convicted at once. With several senders, the piece is fetched once more, each block from another peer, and
 * both copies are compared (`cross-check.ts`). If that leaves doubt, the senders are asked one by one (`retrial.ts`).
 */
import type { Clock, Digest } from "../../ports.ts";
import type { Assembly, BufferSource } from "./assembly.ts";
import { AwaitedVerdicts } from "./awaited-verdicts.ts";
import { type Copy, mixtures } from "./cross-check.ts";
import { blockDigests, Evidence, type Suspect } from "./evidence.ts";
import { pieceBytes, type PieceShape } from "./layout.ts";
import type { PieceBank } from "./piece-bank.ts";
import type { BlockCheck, PieceCheck } from "./piece-check.ts";
import { Retrial } from "./retrial.ts";
import type { Sources } from "./sources.ts";

/** Bytes of pieces being verified or written at once. Above it, nothing is read from peers until half of it is done. */
const BACKLOG_LIMIT_BYTES = 8 * 1024 * 1024;

/** The same in pieces, for torrents whose pieces are huge. */
const MIN_BACKLOG_PIECES = 3;

/** Bytes of failed copies kept for comparison: all unfinished pieces of a torrent of small pieces, or a few large ones. */
const DOUBT_LIMIT_BYTES = 16 * 1024 * 1024;

/** The same in pieces, for torrents whose pieces are huge. */
const MIN_DOUBTS = 1;

/**
 * Liars remembered by their numbers. They were banned, so only blocks that were under way at that moment can still
 * come.
 */
const MAX_LIARS = 256;

/** What becomes of pieces, for what assembles them. */
export interface PieceOutcome {
  /** The piece is good, and in the bank. */
  verified(piece: number): void;
  /** Its hash is wrong: all of it is wanted again, the first time each block from another peer than before. */
  failed(piece: number): void;
  /** The blocks of a failed copy whose senders are good need not be sent again. */
  restored(piece: number, copy: Copy, isGood: (sender: number) => boolean): void;
  /** Its blocks from known `liars` are wanted again, the others are kept. */
  reopened(assembly: Assembly, liars: readonly number[]): void;
  /** These blocks are wrong and wanted again, the others are good. */
  spoiled(assembly: Assembly, blocks: readonly number[]): void;
  /** This many bytes of payload were thrown away. */
  wasted(bytes: number): void;
  /** This source sent corrupt data in `piece`. It is to be banned, and its blocks in other pieces are in doubt too. */
  convicted(suspect: Suspect, piece: number): void;
}

/** What a verifier works with. */
export interface VerifierParts {
  readonly shape: PieceShape;
  readonly matches: PieceCheck;
  /** Absent: nobody knows which blocks of a bad piece are wrong. */
  readonly wrongBlocks?: BlockCheck;
  readonly clock: Clock;
  readonly sha1: Digest;
  readonly buffers: BufferSource;
  readonly bank: PieceBank;
  readonly sources: Sources;
  readonly outcome: PieceOutcome;
}

/** Verification of one torrent's pieces. */
export class Verifier {
  readonly #parts: VerifierParts;
  readonly #evidence = new Evidence();
  readonly #retrials = new Map<number, Retrial>();
  /** First failed copies, until a second one has arrived to compare. */
  readonly #doubts = new Map<number, Copy>();
  readonly #verdicts: AwaitedVerdicts;
  readonly #liars = new Set<number>();
  #doubtBytes = 0;
  readonly #hashing = new Set<number>();
  readonly #backlogLimit: number;
  #backlog = 0;
  #isCongested = false;
  #closed = false;
  /** Pieces with a wrong hash since the start. */
  failedPieces = 0;

  constructor(parts: VerifierParts) {
    this.#parts = parts;
    this.#verdicts = new AwaitedVerdicts(parts.clock, DOUBT_LIMIT_BYTES, {
      explained: (assembly, liars) => {
        this.#hashing.delete(assembly.piece);
        parts.outcome.reopened(assembly, liars);
      },
      unexplained: (assembly) => void this.#judge(assembly).catch(() => this.#failed(assembly.piece)),
    });
    this.#backlogLimit = Math.max(BACKLOG_LIMIT_BYTES, MIN_BACKLOG_PIECES * parts.shape.pieceLengthBytes);
  }

  /** Whether the piece is being hashed, or is in doubt and being fetched again. */
  holds(piece: number): boolean {
    return this.#hashing.has(piece) || this.#retrials.has(piece);
  }

  /** The retrial of a piece, if one is under way. */
  retrial(piece: number): Retrial | undefined {
    return this.#retrials.size === 0 ? undefined : this.#retrials.get(piece);
  }

  /** A peer left or choked us. */
  unavailable(source: number): void {
    for (const retrial of [...this.#retrials.values()]) retrial.unavailable(source);
  }

  /** Hashes a complete piece and settles it. Never rejects. */
  async submit(assembly: Assembly): Promise<void> {
    const { piece, buffer } = assembly;
    this.#hashing.add(piece);
    this.#grow(buffer.length);
    try {
      const isGood = await this.#parts.matches(piece, buffer);
      if (this.#closed) return;
      if (isGood) await this.#accept(piece, buffer);
      else await this.#refuse(assembly);
    } catch {
      // Hashing can fail only for lack of memory: the piece is fetched again.
      this.#failed(piece);
    } finally {
      this.#grow(-buffer.length);
    }
  }

  #failed(piece: number): void {
    this.#hashing.delete(piece);
    if (!this.#closed) this.#parts.outcome.failed(piece);
  }

  close(): void {
    this.#closed = true;
    this.#verdicts.close();
    for (const retrial of this.#retrials.values()) retrial.close();
    this.#retrials.clear();
    this.#doubts.clear();
  }

  async #accept(piece: number, buffer: Uint8Array): Promise<void> {
    if (this.#evidence.has(piece)) {
      const good = await blockDigests(buffer, this.#parts.sha1);
      if (this.#closed) return;
      for (const liar of this.#evidence.convict(piece, good)) this.#convict(liar, piece);
    }
    this.#dropDoubt(piece);
    this.#verdicts.settled(piece);
    this.#retrials.get(piece)?.close();
    this.#retrials.delete(piece);
    const stored = this.#parts.bank.put(piece, buffer);
    this.#hashing.delete(piece);
    this.#parts.outcome.verified(piece);
    await stored;
  }

  async #refuse(assembly: Assembly): Promise<void> {
    this.failedPieces++;
    const wrong = assembly.isMixed ? null : await this.#wrongBlocks(assembly);
    if (this.#closed) return;
    if (wrong !== null) return this.#spoil(assembly, wrong);
    if (assembly.isMixed) {
      // One of several senders may have forged a part: the piece is fetched again in whole blocks, whose senders are known.
      this.#parts.outcome.wasted(assembly.buffer.length);
      return this.#failed(assembly.piece);
    }
    const sources = [...assembly.contributors()];
    const of = this.#priorCase(assembly.piece, sources);
    if (of !== null && this.#verdicts.add(assembly, sources, of)) return;
    await this.#judge(assembly);
  }

  /** Null when nobody says, or says something of use: then the copy is judged as in version 1. */
  async #wrongBlocks({ piece, buffer }: Assembly): Promise<readonly number[] | null> {
    if (this.#doubts.has(piece) || this.#retrials.has(piece)) return null;
    const wrong = await this.#parts.wrongBlocks?.(piece, buffer) ?? null;
    return wrong === null || wrong.length === 0 ? null : wrong;
  }

  /** The hashes of its blocks show which are wrong: their senders lied, and the others are kept. */
  #spoil(assembly: Assembly, wrong: readonly number[]): void {
    const liars = new Set(wrong.map((block) => assembly.sourceOf(block)!));
    for (const source of liars) {
      const suspect = this.#parts.sources.suspect(source);
      if (suspect !== undefined) this.#convict(suspect, assembly.piece);
    }
    this.#hashing.delete(assembly.piece);
    this.#parts.outcome.spoiled(assembly, wrong);
  }

  /** An earlier piece with a common sender whose second copy is awaited; null when there is none, or this one has its own case. */
  #priorCase(piece: number, senders: readonly number[]): number | null {
    if (senders.length < 2 || this.#doubts.has(piece) || this.#retrials.has(piece)) return null;
    if (senders.some((sender) => this.#liars.has(sender))) return null;
    for (const [other, copy] of this.#doubts) {
      // A later piece may be fetched again much later.
      if (other < piece && senders.some((sender) => copy.senders.includes(sender))) return other;
    }
    return null;
  }

  async #judge(assembly: Assembly): Promise<void> {
    const { piece, buffer } = assembly;
    const sources = [...assembly.contributors()];
    const known = sources.filter((source) => this.#liars.has(source));
    // Somebody was convicted in the meantime: the rest is probably good.
    if (known.length > 0 && known.length < sources.length) {
      this.#hashing.delete(piece);
      return this.#parts.outcome.reopened(assembly, known);
    }
    this.#parts.outcome.wasted(buffer.length);
    const sole = sources.length === 1 ? this.#parts.sources.suspect(sources[0]!) : undefined;
    if (sole !== undefined) {
      this.#parts.buffers.release(buffer);
      this.#convict(sole, piece);
    } else if (sources.length > 1) {
      const copy = await this.#record(assembly);
      if (this.#closed) return;
      const first = this.#takeDoubt(piece);
      const good = first === null ? null : await this.#settle(piece, first, copy);
      if (this.#closed) return;
      if (first !== null) this.#parts.buffers.release(first.buffer);
      if (first !== null && good === null) this.#verdicts.settled(piece);
      if (good !== null) {
        this.#parts.buffers.release(buffer);
        return await this.#accept(piece, good);
      }
      if (first === null && this.#keepDoubt(piece, copy)) {
        this.#hashing.delete(piece);
        return this.#parts.outcome.failed(piece);
      }
      this.#parts.buffers.release(buffer);
    }
    const retrial = this.#retrials.get(piece) ?? this.#open(piece, sources);
    this.#hashing.delete(piece);
    retrial.proceed();
  }

  /** Notes the sender of each block of a failed copy. */
  async #record(assembly: Assembly): Promise<Copy> {
    const { piece, buffer } = assembly;
    const digests = await blockDigests(buffer, this.#parts.sha1);
    const senders = digests.map((_, block) => assembly.sourceOf(block)!);
    this.#evidence.record(piece, digests, senders.map((source) => this.#parts.sources.suspect(source)));
    return { buffer, digests, senders };
  }

  /** The piece, mixed from two failed copies; null when they don't show which peer lied. */
  async #settle(piece: number, first: Copy, second: Copy): Promise<Uint8Array | null> {
    for (const mixed of mixtures(first, second, this.#liars)) {
      if (await this.#parts.matches(piece, mixed)) return mixed;
      if (this.#closed) return null;
    }
    return null;
  }

  #keepDoubt(piece: number, copy: Copy): boolean {
    const bytes = copy.buffer.length;
    if (this.#retrials.has(piece)) return false;
    if (this.#doubts.size >= MIN_DOUBTS && this.#doubtBytes + bytes > DOUBT_LIMIT_BYTES) return false;
    this.#doubts.set(piece, copy);
    this.#doubtBytes += bytes;
    return true;
  }

  #dropDoubt(piece: number): void {
    const copy = this.#takeDoubt(piece);
    if (copy !== null) this.#parts.buffers.release(copy.buffer);
  }

  /** The first failed copy of the piece, no longer kept here. */
  #takeDoubt(piece: number): Copy | null {
    const copy = this.#doubts.get(piece);
    if (copy === undefined) return null;
    this.#doubts.delete(piece);
    this.#doubtBytes -= copy.buffer.length;
    return copy;
  }

  #convict(liar: Suspect, piece: number): void {
    if (this.#liars.size >= MAX_LIARS) this.#liars.delete(this.#liars.values().next().value!);
    this.#liars.add(liar.source);
    this.#parts.outcome.convicted(liar, piece);
    this.#verdicts.convicted(this.#liars);
    // It explains other failed copies as well: only its own blocks in them are still needed.
    for (const [other, copy] of [...this.#doubts]) {
      if (this.#hashing.has(other) || !copy.senders.includes(liar.source)) continue;
      this.#takeDoubt(other);
      this.#parts.outcome.restored(other, copy, (sender) => !this.#liars.has(sender));
      this.#parts.buffers.release(copy.buffer);
    }
  }

  /** A retrial of the piece; with a sole sender it has nobody to ask and ends at once. */
  #open(piece: number, senders: readonly number[]): Retrial {
    const { clock, buffers, sources, shape } = this.#parts;
    const retrial = new Retrial({
      piece,
      lengthBytes: pieceBytes(shape, piece),
      suspects: senders.length > 1 ? senders : [],
      clock,
      buffers,
      sources,
      heard: (assembly) => void this.submit(assembly),
      exhausted: () => {
        this.#retrials.delete(piece);
        this.#parts.outcome.failed(piece);
      },
    });
    this.#retrials.set(piece, retrial);
    return retrial;
  }

  #grow(bytes: number): void {
    this.#backlog += bytes;
    if (!this.#isCongested && this.#backlog > this.#backlogLimit) {
      this.#isCongested = true;
      this.#parts.sources.setCongested(true);
    } else if (this.#isCongested && this.#backlog <= this.#backlogLimit / 2) {
      this.#isCongested = false;
      if (!this.#closed) this.#parts.sources.setCongested(false);
    }
  }
}
