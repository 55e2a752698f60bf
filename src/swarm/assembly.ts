/**
 * An unfinished piece. Blocks are written straight into the piece's buffer as they come off the socket, by at most one
 * peer per block. Each block remembers its sender, so that a failed hash can be traced.
 */
import { BLOCK_BYTES } from "../wire/types.ts";

/** Nobody. */
const NONE = -1;

/** Piece buffers, reused. */
export interface BufferSource {
  acquire(bytes: number): Uint8Array;
  /** Only for a buffer of which nobody holds a view. */
  release(buffer: Uint8Array): void;
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
  #doneCount = 0;
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

  /** All blocks are here. */
  get complete(): boolean {
    return this.#doneCount === this.blocks;
  }

  /** No block is here and nobody is writing. */
  get empty(): boolean {
    return this.#doneCount === 0 && this.#writers === 0;
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

  /** Takes back the blocks that `peer` sent; returns their numbers. */
  drop(peer: number): number[] {
    const blocks: number[] = [];
    this.#source.forEach((sender, block) => {
      if (sender === peer) blocks.push(block);
    });
    for (const block of blocks) this.#source[block] = NONE;
    this.#doneCount -= blocks.length;
    return blocks;
  }

  #markDone(block: number, peer: number, nowMs: number): void {
    if (this.#source[block] === NONE) this.#doneCount++;
    this.#source[block] = peer;
    this.touchedMs = nowMs;
  }
}
