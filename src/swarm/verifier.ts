/**
 * Hashes complete pieces (several at once, off the main thread) and stores them, or traces a failure to a peer:
 * a sole sender is convicted at once; several are asked again one by one (see `retrial.ts`).
 */
import type { Clock, Sha1 } from "../ports.ts";
import type { Assembly } from "./assembly.ts";
import { blockDigests, Evidence, type Suspect } from "./evidence.ts";
import type { BufferSource } from "./ingest.ts";
import { pieceBytes, type PieceShape } from "./layout.ts";
import type { PieceBank } from "./piece-bank.ts";
import { Retrial } from "./retrial.ts";

/** Bytes of pieces being verified or written at once; above it, peers are not read from until half of it is done. */
const BACKLOG_LIMIT_BYTES = 8 * 1024 * 1024;

/** The same in pieces, for torrents whose pieces are huge. */
const MIN_BACKLOG_PIECES = 3;

/** What the verifier asks of its owner. */
export interface VerifierHost {
  readonly clock: Clock;
  /** The suspect for a source, even after it left. */
  suspect(source: number): Suspect | undefined;
  /** Its data was corrupt: ban it. Its other unfinished pieces are in doubt too. */
  convicted(suspect: Suspect): void;
  canAsk(source: number, piece: number): boolean;
  request(source: number, piece: number, offset: number, length: number): void;
  cancel(source: number, piece: number, offset: number, length: number): void;
  verified(piece: number): void;
  /** The piece is wanted again. */
  failed(piece: number): void;
  wasted(bytes: number): void;
  /** Too much is waiting to be hashed and written (true), or no longer. */
  congested(value: boolean): void;
}

/** Verification of one torrent's pieces. */
export class Verifier {
  private readonly shape: PieceShape;
  private readonly hashes: Uint8Array;
  private readonly bank: PieceBank;
  private readonly buffers: BufferSource;
  private readonly sha1: Sha1;
  private readonly host: VerifierHost;
  private readonly evidence = new Evidence();
  private readonly retrials = new Map<number, Retrial>();
  private readonly hashing = new Set<number>();
  private readonly backlogLimit: number;
  private backlog = 0;
  private isCongested = false;
  private closed = false;
  /** Pieces with a wrong hash since the start. */
  failedPieces = 0;

  /** `hashes`: SHA-1 of piece i at [20·i, 20·i+20). */
  constructor(
    options: {
      shape: PieceShape;
      hashes: Uint8Array;
      bank: PieceBank;
      buffers: BufferSource;
      sha1: Sha1;
      host: VerifierHost;
    },
  ) {
    this.shape = options.shape;
    this.hashes = options.hashes;
    this.bank = options.bank;
    this.buffers = options.buffers;
    this.sha1 = options.sha1;
    this.host = options.host;
    this.backlogLimit = Math.max(BACKLOG_LIMIT_BYTES, MIN_BACKLOG_PIECES * this.shape.pieceLengthBytes);
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
      const digest = await this.sha1(buffer);
      if (this.closed) return;
      if (this.matches(piece, digest)) await this.accept(piece, buffer);
      else await this.refuse(assembly);
    } catch {
      // Hashing can fail only for lack of memory: the piece is fetched again.
      this.hashing.delete(piece);
      if (!this.closed) this.host.failed(piece);
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
    for (let i = 0; i < 20; i++) if (digest[i] !== this.hashes[at + i]) return false;
    return true;
  }

  private async accept(piece: number, buffer: Uint8Array): Promise<void> {
    if (this.evidence.has(piece)) {
      const good = await blockDigests(buffer, this.sha1);
      if (this.closed) return;
      for (const liar of this.evidence.convict(piece, good)) this.host.convicted(liar);
    }
    this.retrials.get(piece)?.close();
    this.retrials.delete(piece);
    const stored = this.bank.put(piece, buffer);
    this.hashing.delete(piece);
    this.host.verified(piece);
    await stored;
  }

  private async refuse(assembly: Assembly): Promise<void> {
    const { piece, buffer } = assembly;
    this.failedPieces++;
    this.host.wasted(buffer.length);
    const sources = [...assembly.contributors()];
    const sole = sources.length === 1 ? this.host.suspect(sources[0]!) : undefined;
    if (sole !== undefined) {
      this.buffers.release(buffer);
      this.host.convicted(sole);
    } else if (sources.length > 1) {
      const digests = await blockDigests(buffer, this.sha1);
      if (this.closed) return;
      const senders = digests.map((_, block) => this.host.suspect(assembly.sourceOf(block)!));
      this.evidence.record(piece, digests, senders);
      this.buffers.release(buffer);
    }
    const retrial = this.retrials.get(piece) ?? this.open(piece, sources);
    this.hashing.delete(piece);
    retrial.proceed();
  }

  /** A retrial of the piece; with a sole sender it has nobody to ask and ends at once. */
  private open(piece: number, sources: readonly number[]): Retrial {
    const suspects = sources.length > 1 ? sources : [];
    const retrial = new Retrial(
      {
        clock: this.host.clock,
        canAsk: (source, p) => this.host.canAsk(source, p),
        request: (source, p, offset, length) => this.host.request(source, p, offset, length),
        cancel: (source, p, offset, length) => this.host.cancel(source, p, offset, length),
        acquireBuffer: (bytes) => this.buffers.acquire(bytes),
        heard: (_, assembly) => void this.submit(assembly),
        exhausted: () => {
          this.retrials.delete(piece);
          this.host.failed(piece);
        },
      },
      piece,
      pieceBytes(this.shape, piece),
      suspects,
    );
    this.retrials.set(piece, retrial);
    return retrial;
  }

  private grow(bytes: number): void {
    this.backlog += bytes;
    if (!this.isCongested && this.backlog > this.backlogLimit) {
      this.isCongested = true;
      this.host.congested(true);
    } else if (this.isCongested && this.backlog <= this.backlogLimit / 2) {
      this.isCongested = false;
      if (!this.closed) this.host.congested(false);
    }
  }
}
