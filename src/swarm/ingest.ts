/**
 * Assembles arriving blocks into pieces. Sources are the swarm's numbers for peers and web seeds; a source delivers one
 * block at a time: `target` when its header has arrived, then `deliver` or `leave`.
 */
import { BLOCK_BYTES } from "../wire/types.ts";
import { Assembly } from "./assembly.ts";
import { isBlock, pieceBytes, type PieceShape } from "./layout.ts";

/** Unfinished pieces held at once, bytes: the read-ahead of a 4K stream over many slow peers. */
const ASSEMBLY_LIMIT_BYTES = 64 * 1024 * 1024;

/** Unfinished pieces that are always allowed, whatever their size. */
const MIN_ASSEMBLIES = 4;

/** Piece buffers, reused. */
export interface BufferSource {
  acquire(bytes: number): Uint8Array;
  /** Only for a buffer that nobody holds a view of. */
  release(buffer: Uint8Array): void;
}

/** What ingest asks of its owner. */
export interface IngestHost {
  /** We have the piece or are verifying it: its blocks are not wanted. */
  settled(piece: number): boolean;
  /** Where a block that a retrial asked for goes; null when none did. */
  retrialTarget(source: number, piece: number, block: number): Uint8Array | null;
  retrialBlock(source: number, piece: number, block: number): void;
  /** Whether the source was asked for the block: unrequested blocks cost no memory. */
  expected(source: number, piece: number, offset: number): boolean;
  /** Reports it to the scheduler; true when the block is wanted. */
  blockReceived(source: number, piece: number, offset: number): boolean;
  /** The piece's received blocks were thrown away: all of it is wanted again. */
  discarded(piece: number): void;
  /** Whether the piece is needed soon. Others give way when memory is short. */
  wanted(piece: number): boolean;
  complete(assembly: Assembly): void;
  wasted(bytes: number): void;
}

interface Delivery {
  readonly assembly: Assembly | null;
  readonly piece: number;
  readonly block: number;
  readonly view: Uint8Array;
}

/** Unfinished pieces of one torrent. */
export class Ingest {
  private readonly shape: PieceShape;
  private readonly buffers: BufferSource;
  private readonly host: IngestHost;
  private readonly now: () => number;
  private readonly assemblies = new Map<number, Assembly>();
  private readonly deliveries = new Map<number, Delivery>();
  private bytes = 0;

  constructor(shape: PieceShape, buffers: BufferSource, host: IngestHost, now: () => number) {
    this.shape = shape;
    this.buffers = buffers;
    this.host = host;
    this.now = now;
  }

  /** Bytes of piece buffers in use. */
  get heldBytes(): number {
    return this.bytes;
  }

  /** Pieces that are partly here. */
  get underWay(): Iterable<number> {
    return this.assemblies.keys();
  }

  /** Where an arriving block goes, or null to discard it. */
  target(source: number, piece: number, offset: number, length: number): Uint8Array | null {
    this.leave(source);
    if (!isBlock(this.shape, piece, offset, length)) return null;
    const block = offset / BLOCK_BYTES;
    const retrial = this.host.retrialTarget(source, piece, block);
    if (retrial !== null) {
      this.deliveries.set(source, { assembly: null, piece, block, view: retrial });
      return retrial;
    }
    if (this.host.settled(piece) || !this.host.expected(source, piece, offset)) return null;
    const assembly = this.assembly(piece);
    if (assembly === null || assembly.has(block)) return null;
    // A second copy of a block in flight (a hedge) gets a buffer of its own: two writers must never share bytes.
    const view = assembly.writing(block) ? new Uint8Array(length) : assembly.begin(block, source);
    this.deliveries.set(source, { assembly, piece, block, view });
    return view;
  }

  /** The block is complete in its target, or was discarded (`kept` false). Returns how many bytes were of use. */
  deliver(source: number, piece: number, offset: number, length: number, kept: boolean): number {
    const delivery = this.deliveries.get(source);
    this.deliveries.delete(source);
    const matches = kept && delivery !== undefined && delivery.piece === piece &&
      delivery.block * BLOCK_BYTES === offset;
    if (matches && delivery.assembly === null) {
      this.host.retrialBlock(source, piece, delivery.block);
      return length;
    }
    const wanted = this.host.blockReceived(source, piece, offset);
    if (!matches) return this.lost(piece, length, wanted);
    const { block, view } = delivery;
    const assembly = this.assemblies.get(piece) ??
      (wanted && !this.host.settled(piece) ? this.assembly(piece) : null);
    if (!wanted || assembly === null || assembly.has(block)) {
      delivery.assembly!.abandon(block, source);
      this.dropIfEmpty(delivery.assembly!);
      return this.lost(piece, length, wanted && assembly === null && !this.host.settled(piece));
    }
    if (assembly !== delivery.assembly || !assembly.finish(block, source, this.now())) {
      assembly.finishElsewhere(block, source, view, this.now());
    }
    if (assembly.complete) {
      this.assemblies.delete(piece);
      this.bytes -= assembly.lengthBytes;
      this.host.complete(assembly);
    }
    return length;
  }

  /** The source left, or gave up its block. */
  leave(source: number): void {
    const delivery = this.deliveries.get(source);
    if (delivery === undefined) return;
    this.deliveries.delete(source);
    if (delivery.assembly === null) return;
    delivery.assembly.abandon(delivery.block, source);
    this.dropIfEmpty(delivery.assembly);
  }

  /** Throws away every unfinished piece that holds blocks of this source. */
  discardFrom(source: number): void {
    for (const assembly of [...this.assemblies.values()]) {
      if (assembly.contributors().has(source)) this.discard(assembly);
    }
  }

  /**
   * Frees what arrived of a piece that the scheduler gave up and already counts as missing. If its blocks stayed, the
   * same blocks would look like duplicates when they come again, and the piece like one whose hash failed.
   */
  forget(piece: number): void {
    const assembly = this.assemblies.get(piece);
    if (assembly !== undefined) this.free(assembly);
  }

  /** Throws everything away without telling the host. */
  clear(): void {
    this.assemblies.clear();
    this.deliveries.clear();
    this.bytes = 0;
  }

  private assembly(piece: number): Assembly | null {
    const known = this.assemblies.get(piece);
    if (known !== undefined) return known;
    const bytes = pieceBytes(this.shape, piece);
    if (!this.makeRoom(bytes, piece)) return null;
    const assembly = new Assembly(piece, this.buffers.acquire(bytes), this.now());
    this.assemblies.set(piece, assembly);
    this.bytes += bytes;
    return assembly;
  }

  /** Keeps within the limit by giving up the longest-quiet piece that nobody needs soon. */
  private makeRoom(bytes: number, piece: number): boolean {
    while (this.bytes + bytes > ASSEMBLY_LIMIT_BYTES && this.assemblies.size >= MIN_ASSEMBLIES) {
      let victim: Assembly | null = null;
      for (const a of this.assemblies.values()) {
        if (!this.host.wanted(a.piece) && (victim === null || a.touchedMs < victim.touchedMs)) victim = a;
      }
      if (victim === null) return this.host.wanted(piece) && this.assemblies.size < 4 * MIN_ASSEMBLIES;
      this.discard(victim);
    }
    return true;
  }

  private discard(assembly: Assembly): void {
    this.free(assembly);
    this.host.discarded(assembly.piece);
  }

  private free(assembly: Assembly): void {
    this.assemblies.delete(assembly.piece);
    this.bytes -= assembly.lengthBytes;
    if (!assembly.busy) this.buffers.release(assembly.buffer);
  }

  private dropIfEmpty(assembly: Assembly): void {
    if (!assembly.empty || this.assemblies.get(assembly.piece) !== assembly) return;
    this.assemblies.delete(assembly.piece);
    this.bytes -= assembly.lengthBytes;
    // The peer that left may still hold a view of the buffer, so it is not reused.
  }

  /** A block was thrown away; if the scheduler counted it as received, the whole piece starts over. */
  private lost(piece: number, length: number, counted: boolean): number {
    this.host.wasted(length);
    if (counted) {
      const assembly = this.assemblies.get(piece);
      if (assembly !== undefined) this.discard(assembly);
      else if (!this.host.settled(piece)) this.host.discarded(piece);
    }
    return 0;
  }
}
