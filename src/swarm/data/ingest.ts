/**
 * Assembles arriving blocks into pieces, has complete ones verified, and tells the scheduler which blocks are wanted again. Sources are the swarm's numbers for peers and web seeds; a source delivers one
 * block at a time: `target` when its header has arrived, then `deliver` or `leave`.
 */
import { BLOCK_BYTES } from "../../wire/types.ts";
import { Assembly } from "./assembly.ts";
import type { Copy } from "./cross-check.ts";
import type { Suspect } from "./evidence.ts";
import { isBlock, isWithinBlock, pieceBytes } from "./layout.ts";
import type { SchedulerApi } from "../scheduler/types.ts";
import { type PieceOutcome, Verifier, type VerifierParts } from "./verifier.ts";

/** Unfinished pieces held at once, bytes: the read-ahead of a 4K stream over many slow peers. */
const ASSEMBLY_LIMIT_BYTES = 64 * 1024 * 1024;

/** Unfinished pieces that are always allowed, whatever their size. */
const MIN_ASSEMBLIES = 4;

/** Bytes that pieces which readers wait for may take beyond those: four of the largest pieces, more of the usual ones. */
const WANTED_LIMIT_BYTES = 1024 * 1024 * 1024;

interface Delivery {
  readonly assembly: Assembly | null;
  readonly piece: number;
  readonly block: number;
  /** Where the bytes begin in the block: a slow peer is asked for parts of blocks. */
  readonly from: number;
  readonly view: Uint8Array;
}

/** What ingest reports to its torrent. */
export interface IngestEvents {
  /** A piece is good, and in the bank. */
  verified(piece: number): void;
  /** Blocks are wanted again. */
  wanted(): void;
}

/** What the scheduler is told and asked. */
type BlockScheduler = Pick<
  SchedulerApi,
  "expects" | "blockReceived" | "blockRestored" | "blocksLost" | "wanted" | "pieceFailed" | "pieceDiscarded"
>;

/** What ingest works with. */
export interface IngestParts extends Omit<VerifierParts, "outcome"> {
  readonly scheduler: BlockScheduler;
  readonly events: IngestEvents;
}

/** Unfinished pieces of one torrent, and those being verified. */
export class Ingest implements PieceOutcome {
  readonly #parts: IngestParts;
  readonly #verifier: Verifier;
  readonly #assemblies = new Map<number, Assembly>();
  readonly #deliveries = new Map<number, Delivery>();
  #bytes = 0;
  #wastedBytes = 0;

  constructor(parts: IngestParts) {
    this.#parts = parts;
    this.#verifier = new Verifier({ ...parts, outcome: this });
  }

  /** Payload thrown away since the start, bytes. */
  get wastedBytes(): number {
    return this.#wastedBytes;
  }

  /** Pieces with a wrong hash since the start. */
  get failedPieces(): number {
    return this.#verifier.failedPieces;
  }

  /** Bytes of piece buffers in use. */
  get heldBytes(): number {
    return this.#bytes;
  }

  /** Pieces that are partly here. */
  get underWay(): Iterable<number> {
    return this.#assemblies.keys();
  }

  /** Where an arriving block goes, or null to discard it. */
  target(source: number, piece: number, offset: number, length: number): Uint8Array | null {
    this.leave(source);
    const { shape, scheduler } = this.#parts;
    if (!isWithinBlock(shape, piece, offset, length)) return null;
    const isWhole = isBlock(shape, piece, offset, length);
    const block = Math.floor(offset / BLOCK_BYTES);
    const from = offset - block * BLOCK_BYTES;
    const retrial = isWhole ? this.#verifier.retrial(piece)?.target(source, block) ?? null : null;
    if (retrial !== null) {
      this.#deliveries.set(source, { assembly: null, piece, block, from, view: retrial });
      return retrial;
    }
    if (this.#settled(piece) || !scheduler.expects(source, piece, offset, length)) return null;
    const assembly = this.#assembly(piece);
    if (assembly === null || assembly.has(block)) return null;
    // A second copy of a block in flight (a hedge) gets a buffer of its own: two writers must never share bytes.
    const isApart = !isWhole || assembly.writing(block);
    const view = isApart ? new Uint8Array(length) : assembly.begin(block, source);
    this.#deliveries.set(source, { assembly, piece, block, from, view });
    return view;
  }

  /** The block is complete in its target, or was discarded (`kept` false). Returns how many bytes were of use. */
  deliver(source: number, piece: number, offset: number, length: number, kept: boolean): number {
    const delivery = this.#deliveries.get(source);
    this.#deliveries.delete(source);
    const matches = kept && delivery !== undefined && delivery.piece === piece &&
      delivery.block * BLOCK_BYTES + delivery.from === offset;
    if (matches && delivery.assembly === null) {
      this.#verifier.retrial(piece)?.block(source, delivery.block);
      return length;
    }
    const wanted = this.#parts.scheduler.blockReceived(source, piece, offset, this.#nowMs, length);
    if (!matches) return this.#lost(piece, length, wanted);
    const { block, from, view } = delivery;
    const assembly = this.#assemblies.get(piece) ??
      (wanted && !this.#settled(piece) ? this.#assembly(piece) : null);
    if (!wanted || assembly === null || assembly.has(block)) {
      delivery.assembly!.abandon(block, source);
      this.#dropIfEmpty(delivery.assembly!);
      return this.#lost(piece, length, wanted && assembly === null && !this.#settled(piece));
    }
    if (!isBlock(this.#parts.shape, piece, offset, length)) assembly.addPart(block, from, source, view, this.#nowMs);
    else if (assembly !== delivery.assembly || !assembly.finish(block, source, this.#nowMs)) {
      assembly.finishElsewhere(block, source, view, this.#nowMs);
    }
    this.#submit(assembly);
    return length;
  }

  #submit(assembly: Assembly): void {
    if (!assembly.complete) return;
    this.#assemblies.delete(assembly.piece);
    this.#bytes -= assembly.lengthBytes;
    void this.#verifier.submit(assembly);
  }

  /** The source left, or gave up its block. */
  leave(source: number): void {
    const delivery = this.#deliveries.get(source);
    if (delivery === undefined) return;
    this.#deliveries.delete(source);
    if (delivery.assembly === null) return;
    delivery.assembly.abandon(delivery.block, source);
    this.#dropIfEmpty(delivery.assembly);
  }

  /** The source left for good: no retrial waits for it either. */
  sourceLeft(source: number): void {
    this.leave(source);
    this.#verifier.unavailable(source);
  }

  /** A peer choked us: a retrial does not wait for it. */
  sourceChoked(source: number): void {
    this.#verifier.unavailable(source);
  }

  /** A peer refused a block. Returns true when a retrial had asked for it and the scheduler had not. */
  sourceRefused(source: number, piece: number): boolean {
    const retrial = this.#verifier.retrial(piece);
    if (retrial === undefined || retrial.source !== source) return false;
    retrial.unavailable(source);
    return true;
  }

  /** See `PieceOutcome`. */
  verified(piece: number): void {
    this.#parts.events.verified(piece);
  }

  /** See `PieceOutcome`. */
  failed(piece: number): void {
    this.#parts.scheduler.pieceFailed(piece, this.#nowMs);
    this.#parts.events.wanted();
  }

  /** See `PieceOutcome`. */
  wasted(bytes: number): void {
    this.#wastedBytes += bytes;
  }

  /** Bans the suspect, and throws away its blocks in unfinished pieces; those of others stay. */
  convicted(suspect: Suspect, piece: number): void {
    for (const assembly of [...this.#assemblies.values()]) {
      const blocks = assembly.drop(suspect.source);
      if (blocks.length === 0) continue;
      this.wasted(blocks.length * BLOCK_BYTES);
      this.#parts.scheduler.blocksLost(assembly.piece, blocks, this.#nowMs);
    }
    this.#parts.sources.convict(suspect, piece);
  }

  /** Takes the blocks of a failed copy that are good after all, unless they have come again in the meantime. */
  restored(piece: number, { buffer, senders }: Copy, isGood: (sender: number) => boolean): void {
    const assembly = this.#settled(piece) ? null : this.#assembly(piece);
    if (assembly === null) return;
    senders.forEach((sender, block) => {
      if (!isGood(sender) || assembly.has(block) || assembly.writing(block)) return;
      const from = block * BLOCK_BYTES;
      if (!this.#parts.scheduler.blockRestored(sender, piece, from)) return;
      assembly.put(block, sender, buffer.subarray(from, from + BLOCK_BYTES), this.#nowMs);
    });
    this.#dropIfEmpty(assembly);
    this.#submit(assembly);
  }

  /** Takes back a piece that was complete, without the blocks of `liars`, which are wanted again. */
  reopened(assembly: Assembly, liars: readonly number[]): void {
    this.#takeBack(assembly, liars.flatMap((source) => assembly.drop(source)));
  }

  /** Takes back a piece that was complete, without these blocks, which are wanted again. */
  spoiled(assembly: Assembly, blocks: readonly number[]): void {
    assembly.remove(blocks);
    this.#takeBack(assembly, blocks);
    this.#parts.events.wanted();
  }

  #takeBack(assembly: Assembly, blocks: readonly number[]): void {
    this.#assemblies.set(assembly.piece, assembly);
    this.#bytes += assembly.lengthBytes;
    this.wasted(blocks.length * BLOCK_BYTES);
    this.#parts.scheduler.blocksLost(assembly.piece, blocks, this.#nowMs);
  }

  /**
   * Frees the arrived blocks of a piece that the scheduler gave up and already counts as missing. If they stayed, the
   * same blocks would look like duplicates when they come again, and the piece like one whose hash failed.
   */
  forget(piece: number): void {
    const assembly = this.#assemblies.get(piece);
    if (assembly !== undefined) this.#free(assembly);
  }

  /** Ends verification, and throws everything away without reporting it. */
  close(): void {
    this.#verifier.close();
    this.#assemblies.clear();
    this.#deliveries.clear();
    this.#bytes = 0;
  }

  get #nowMs(): number {
    return this.#parts.clock.monotonic();
  }

  /** We have the piece or are verifying it: its blocks are not wanted. */
  #settled(piece: number): boolean {
    return this.#parts.bank.have.has(piece) || this.#verifier.holds(piece);
  }

  #assembly(piece: number): Assembly | null {
    const known = this.#assemblies.get(piece);
    if (known !== undefined) return known;
    const bytes = pieceBytes(this.#parts.shape, piece);
    if (!this.#makeRoom(bytes, piece)) return null;
    const assembly = new Assembly(piece, this.#parts.buffers.acquire(bytes), this.#nowMs);
    this.#assemblies.set(piece, assembly);
    this.#bytes += bytes;
    return assembly;
  }

  /** Keeps within the limit by giving up the longest-quiet piece that nobody needs soon. */
  #makeRoom(bytes: number, piece: number): boolean {
    while (this.#bytes + bytes > ASSEMBLY_LIMIT_BYTES && this.#assemblies.size >= MIN_ASSEMBLIES) {
      let victim: Assembly | null = null;
      for (const a of this.#assemblies.values()) {
        if (!this.#parts.scheduler.wanted(a.piece) && (victim === null || a.touchedMs < victim.touchedMs)) victim = a;
      }
      if (victim === null) {
        const fits = this.#assemblies.size < 4 * MIN_ASSEMBLIES && this.#bytes + bytes <= WANTED_LIMIT_BYTES;
        return fits && this.#parts.scheduler.wanted(piece);
      }
      this.#discard(victim);
    }
    return true;
  }

  #discard(assembly: Assembly): void {
    this.#free(assembly);
    this.#discarded(assembly.piece);
  }

  /** The arrived blocks of the piece were thrown away for a reason that says nothing about their senders. */
  #discarded(piece: number): void {
    this.#parts.scheduler.pieceDiscarded(piece, this.#nowMs);
    this.#parts.events.wanted();
  }

  #free(assembly: Assembly): void {
    this.#assemblies.delete(assembly.piece);
    this.#bytes -= assembly.lengthBytes;
    if (!assembly.busy) this.#parts.buffers.release(assembly.buffer);
  }

  #dropIfEmpty(assembly: Assembly): void {
    if (!assembly.empty || this.#assemblies.get(assembly.piece) !== assembly) return;
    this.#assemblies.delete(assembly.piece);
    this.#bytes -= assembly.lengthBytes;
    // The peer that left may still hold a view of the buffer, so it is not reused.
  }

  /** A block was thrown away; if the scheduler counted it as received, the whole piece starts over. */
  #lost(piece: number, length: number, counted: boolean): number {
    this.wasted(length);
    if (counted) {
      const assembly = this.#assemblies.get(piece);
      if (assembly !== undefined) this.#discard(assembly);
      else if (!this.#settled(piece)) this.#discarded(piece);
    }
    return 0;
  }
}
