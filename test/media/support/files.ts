/** Fixtures and sources for media tests. */
import { readFileSync } from "node:fs";
import type { ByteSource } from "../../../src/bytes/source.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { openMedia } from "../../../src/media/open-media.ts";
import type { IndexedPresentation, PresentationOptions } from "../../../src/media/model/types.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
export { seeded } from "../../support/random.ts";

/** A signal that never fires. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Uncounted work for `presentIndex`. */
export const UNCOUNTED = { spend: (): Promise<void> => Promise.resolve() };

/** Bytes of a file in test/fixtures. */
export function fixture(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url)));
}

/** Opens bytes as a media file and makes its HLS plan. */
export async function openBytes(bytes: Uint8Array, options: PresentationOptions = {}): Promise<IndexedPresentation> {
  const source = new MemorySource(bytes);
  const presentation = await openMedia(source, { fileName: "test", signal: NEVER, ...options });
  return { ...presentation, hls: await presentation.planHls(source, NEVER) };
}

/** All that an iteration of chunks yields. */
export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return concatBytes(parts);
}

/** A source that counts reads. */
export class CountingSource implements ByteSource {
  readonly sizeBytes: number;
  readonly reads: { offset: number; length: number }[] = [];
  readonly #inner: MemorySource;

  constructor(bytes: Uint8Array) {
    this.#inner = new MemorySource(bytes);
    this.sizeBytes = bytes.length;
  }

  get bytesRead(): number {
    return this.reads.reduce((sum, read) => sum + read.length, 0);
  }

  read(offset: number, length: number, options: { signal: AbortSignal }): Promise<Uint8Array> {
    this.reads.push({ offset, length });
    return this.#inner.read(offset, length, options);
  }
}
