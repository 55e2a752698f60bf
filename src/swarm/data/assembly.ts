/**
 * An unfinished piece. Blocks are written straight into the piece's buffer as they come off the socket, by at most one
 * peer per block. Each block remembers its sender, so that a failed hash can be traced.
 */
import { BLOCK_BYTES } from "../../wire/types.ts";

/** Nobody. */
const NONE = -1;

/** Piece buffers, reused. */
export interface BufferSource {
  acquire(bytes: number): Uint8Array;
  /** Only for a buffer of which nobody holds a view. */
  release(buffer: Uint8Array): void;
}

/** A part of a block, and who sent it. */
interface Part {
  readonly from: number;
  readonly peer: number;
  readonly bytes: Uint8Array;
}

/** One unfinished piece. Peers are the swarm's numbers. */
export class Assembly {
  readonly piece: number;
  readonly lengthBytes: number;
  readonly blocks: number;
  /** Where the piece is assembled; replaced when a slow writer is abandoned (see `finishElsewhere`). */
  buffer: Uint8Array;
  /** Monotonic ms of the last finished block. */
  touchedMs: number;
  /** A block was put together from parts of several peers: a failed hash says nothing about whose part was forged. */
  isMixed = false;
  #doneCount = 0;
  /** Parts of blocks of which others are missing. */
  readonly #parts = new Map<number, Part[]>();
  #writers = 0;
  /** The sender of each finished block. */
  readonly #source: Int32Array;
  /** The peer that is writing each block now. */
  readonly #writer: Int32Array;

  constructor(piece: number, buffer: Uint8Array, nowMs: number) {
    this.piece = piece;
    this.buffer = buffer;
    this.lengthBytes = buffer.length;
    this.blocks = Math.ceil(buffer.length / BLOCK_BYTES);
    this.#source = new Int32Array(this.blocks).fill(NONE);
    this.#writer = new Int32Array(this.blocks).fill(NONE);
    this.touchedMs = nowMs;
  }

  /** All blocks have arrived. */
  get complete(): boolean {
    return this.#doneCount === this.blocks;
  }

  /** No block has arrived and nobody is writing. */
  get empty(): boolean {
    return this.#doneCount === 0 && this.#writers === 0 && this.#parts.size === 0;
  }

  /** Somebody is in the middle of a block. */
  get busy(): boolean {
    return this.#writers > 0;
  }

  has(block: number): boolean {
    return this.#source[block] !== NONE;
  }

  /** Whether somebody is writing this block. */
  writing(block: number): boolean {
    return this.#writer[block] !== NONE;
  }

  /** View of a block's bytes. */
  view(block: number): Uint8Array {
    const from = block * BLOCK_BYTES;
    return this.buffer.subarray(from, Math.min(from + BLOCK_BYTES, this.lengthBytes));
  }

  /** `peer` begins to write the block, which is neither finished nor being written. */
  begin(block: number, peer: number): Uint8Array {
    this.#writer[block] = peer;
    this.#writers++;
    return this.view(block);
  }

  /** The writer of the block gave up (or left). */
  abandon(block: number, peer: number): void {
    if (this.#writer[block] !== peer) return;
    this.#writer[block] = NONE;
    this.#writers--;
  }

  /** The writer finished the block; false when it is no longer the writer. */
  finish(block: number, peer: number, nowMs: number): boolean {
    if (this.#writer[block] !== peer) return false;
    this.#writer[block] = NONE;
    this.#writers--;
    this.#markDone(block, peer, nowMs);
    return true;
  }

  /**
   * Another peer delivered the block (in `bytes`) before its writer was done. The writer keeps the old buffer, which
   * nobody else reads again: otherwise it could still overwrite bytes that have been verified by then. Writers of other
   * blocks keep the old buffer too; their blocks are copied into the new one when they finish.
   */
  finishElsewhere(block: number, peer: number, bytes: Uint8Array, nowMs: number): void {
    if (this.writing(block)) {
      this.buffer = this.buffer.slice();
      this.#writer.fill(NONE);
      this.#writers = 0;
    }
    this.view(block).set(bytes);
    this.#markDone(block, peer, nowMs);
  }

  /** `peer` sent a part of the block, which begins at `from`. With the last part the block has arrived. */
  addPart(block: number, from: number, peer: number, bytes: Uint8Array, nowMs: number): void {
    const parts = [...this.#parts.get(block) ?? [], { from, peer, bytes }].sort((a, b) => a.from - b.from);
    this.#parts.set(block, parts);
    this.touchedMs = nowMs;
    let end = 0;
    for (const part of parts) if (part.from <= end) end = Math.max(end, part.from + part.bytes.length);
    if (end < this.view(block).length) return;
    const whole = new Uint8Array(end);
    for (const part of parts) whole.set(part.bytes, part.from);
    this.isMixed = true;
    this.finishElsewhere(block, peer, whole, nowMs);
  }

  /** The sender of the block; undefined when it is missing. */
  sourceOf(block: number): number | undefined {
    const peer = this.#source[block];
    return peer === undefined || peer === NONE ? undefined : peer;
  }

  /** Every sender of one of its blocks. */
  contributors(): Set<number> {
    const all = new Set(this.#source);
    all.delete(NONE);
    return all;
  }

  /** Puts in a block that `peer` sent before; nobody may be writing it. */
  put(block: number, peer: number, bytes: Uint8Array, nowMs: number): void {
    this.view(block).set(bytes);
    this.#markDone(block, peer, nowMs);
  }

  /** Takes back the blocks that `peer` sent, and those of which it sent a part; returns their numbers. */
  drop(peer: number): number[] {
    const begun = [...this.#parts].filter(([, parts]) => parts.some((part) => part.peer === peer));
    for (const [block] of begun) this.#parts.delete(block);
    const blocks: number[] = [];
    this.#source.forEach((sender, block) => {
      if (sender === peer) blocks.push(block);
    });
    for (const block of blocks) this.#source[block] = NONE;
    this.#doneCount -= blocks.length;
    return [...blocks, ...begun.map(([block]) => block)];
  }

  /** Takes back these blocks, which have arrived. */
  remove(blocks: readonly number[]): void {
    for (const block of blocks) this.#source[block] = NONE;
    this.#doneCount -= blocks.length;
  }

  #markDone(block: number, peer: number, nowMs: number): void {
    if (this.#source[block] === NONE) this.#doneCount++;
    this.#source[block] = peer;
    this.#parts.delete(block);
    this.touchedMs = nowMs;
  }
}
