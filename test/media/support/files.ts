/** Fixtures and sources for media tests. */
import { readFileSync } from "node:fs";
import { type ByteSource, MemorySource } from "../../../src/bytes/source.ts";
import { openMedia } from "../../../src/media/open.ts";
import type { Presentation, PresentationOptions } from "../../../src/media/types.ts";
import { join } from "../../support/ts-check.ts";

/** A signal that never fires. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Bytes of a file in test/fixtures. */
export function fixture(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url)));
}

/** Opens bytes as a media file. */
export function openBytes(bytes: Uint8Array, options: PresentationOptions = {}): Promise<Presentation> {
  return openMedia(new MemorySource(bytes), { fileName: "test", signal: NEVER, ...options });
}

/** All that an iteration of chunks yields. */
export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return join(parts);
}

/** A source that counts what is asked of it. */
export class CountingSource implements ByteSource {
  readonly sizeBytes: number;
  readonly reads: { offset: number; length: number }[] = [];
  private readonly inner: MemorySource;

  constructor(bytes: Uint8Array) {
    this.inner = new MemorySource(bytes);
    this.sizeBytes = bytes.length;
  }

  get bytesRead(): number {
    return this.reads.reduce((sum, read) => sum + read.length, 0);
  }

  read(offset: number, length: number, options: { signal: AbortSignal }): Promise<Uint8Array> {
    this.reads.push({ offset, length });
    return this.inner.read(offset, length, options);
  }
}

/** Small seeded generator (mulberry32): floats in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
