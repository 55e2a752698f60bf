/** Reading a whole stream within a limit. */
import { concatBytes } from "./hex.ts";

/** All bytes of `stream`; beyond `maxBytes` it is cancelled and `tooLarge()` is thrown. null reads as empty. */
export async function readBounded(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  if (stream === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let total = 0;
  // Leaving the loop by an exception cancels the stream.
  for await (const chunk of stream) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return concatBytes(chunks);
}
