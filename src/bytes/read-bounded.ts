/** Reading a whole stream within a limit. */
import { concatBytes } from "./hex.ts";

/** All bytes of `stream`; beyond `maxBytes` it is cancelled and `tooLarge()` is thrown. */
export async function readBounded(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
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
