/** Reads a whole stream within a limit. */
import { concatBytes } from "./hex.ts";

/** Size of the first block, and of the largest, bytes. */
const FIRST_BLOCK_BYTES = 4 * 1024;
const BLOCK_BYTES = 64 * 1024;

/**
 * All bytes of `stream`; beyond `maxBytes` it is cancelled and `tooLarge()` is thrown. They are copied into blocks as
 * they arrive: a million chunks of one byte, kept as they are, would take a hundred times their size. If
 * `expectedBytes` says how many will come, there is a single block, and no byte is in memory twice; default: unknown.
 */
export async function readBounded(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
  expectedBytes?: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const full: Uint8Array[] = [];
  let block = new Uint8Array(expectedBytes === undefined ? FIRST_BLOCK_BYTES : Math.min(expectedBytes, maxBytes));
  let filled = 0;
  let total = 0;
  // Leaving the loop by an exception cancels the stream.
  for await (const chunk of stream) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge();
    for (let at = 0; at < chunk.length;) {
      const count = Math.min(block.length - filled, chunk.length - at);
      block.set(chunk.subarray(at, at + count), filled);
      filled += count;
      at += count;
      if (filled < block.length || at === chunk.length) continue;
      full.push(block);
      block = new Uint8Array(Math.max(FIRST_BLOCK_BYTES, Math.min(BLOCK_BYTES, 2 * block.length)));
      filled = 0;
    }
  }
  if (full.length === 0) return filled === block.length ? block : block.slice(0, filled);
  return concatBytes([...full, block.subarray(0, filled)]);
}
