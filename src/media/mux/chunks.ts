/** The sizes in which packets are collected and handed out. */

import type { ChunkBuffers } from "../../bytes/chunk-buffers.ts";

/**
 * Largest chunk handed out (see `TsLayout.read`): each costs some ten promises and a system call, so that a gigabyte of MP4 takes
 * a fifth less work in chunks of 256 KiB than of 64. With 256, on Bun films of large pictures took 20 MiB more.
 */
const MAX_CHUNK_BYTES = 128 * 1024;
/** Packets are collected in a buffer of this size and handed out as views of it. */
const BUFFER_BYTES = MAX_CHUNK_BYTES;

/** Splits `bytes` into chunks that the contract allows; the receiver of each chunk holds its memory in `buffers`. */
export function* chunksOf(bytes: Uint8Array, buffers?: ChunkBuffers): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
    buffers?.hold(bytes);
    yield bytes.subarray(at, at + MAX_CHUNK_BYTES);
  }
}

/** Memory for packets of `sizeBytes` and more after them. */
export function packetBuffer(sizeBytes: number, buffers?: ChunkBuffers): Uint8Array {
  const bytes = Math.max(sizeBytes, BUFFER_BYTES);
  return buffers?.acquire(bytes) ?? new Uint8Array(bytes);
}

/** Collects packets in buffers and passes on full ones. */
export class PacketSink {
  readonly #full: Uint8Array[] = [];
  readonly #buffers: ChunkBuffers | undefined;
  #buffer: Uint8Array = new Uint8Array(0);
  #start = 0;
  /** Where the reserved bytes begin in the buffer that `reserve` returned. */
  at = 0;

  /** Memory comes from `buffers` if there are any. */
  constructor(buffers?: ChunkBuffers) {
    this.#buffers = buffers;
  }

  /** A buffer with room for `bytes` at `at`. */
  reserve(bytes: number): Uint8Array {
    if (this.at + bytes > this.#buffer.length) {
      this.#flush();
      this.#buffers?.release(this.#buffer);
      this.#buffer = packetBuffer(bytes, this.#buffers);
      this.#start = this.at = 0;
    }
    return this.#buffer;
  }

  /** Call it when the reserved bytes were written. */
  advance(bytes: number): void {
    this.at += bytes;
  }

  /** Returns what was written since the last call, in order, as chunks. */
  *take(): Generator<Uint8Array> {
    this.#flush();
    for (const bytes of this.#full.splice(0)) {
      try {
        yield* chunksOf(bytes, this.#buffers);
      } finally {
        this.#buffers?.release(bytes);
      }
    }
  }

  /** Gives back the buffer once nothing more is written to it. */
  close(): void {
    this.#buffers?.release(this.#buffer);
  }

  #flush(): void {
    if (this.at > this.#start) {
      this.#buffers?.hold(this.#buffer);
      this.#full.push(this.#buffer.subarray(this.#start, this.at));
    }
    this.#start = this.at;
  }
}
