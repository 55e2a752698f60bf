/**
 * The only place where anything is decompressed. Deno's `DecompressionStream` makes one chunk of everything in a
 * compressed chunk: 64 KiB can become 64 MiB. So compressed bytes are fed in small steps, the next one after the last
 * was read.
 */
import { isTurnDue, nextTurn } from "./turn.ts";

/** Compressed bytes per step: deflate expands at most 1032 times, so no chunk is larger than 516 KiB. */
const STEP_BYTES = 512;

/** True when `bytes` begin as gzip does (RFC 1952, section 2.3.1). */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/**
 * `packed` with one layer of gzip removed, read only as fast as the result is read. Other tasks get turns however large
 * the result; the reader must limit its size. Errors of `packed` are passed on; damaged or truncated data causes the
 * error that `damaged` makes of the cause.
 */
export function gunzipped(
  packed: ReadableStream<Uint8Array>,
  damaged: (cause: unknown) => Error,
): ReadableStream<Uint8Array> {
  const source = packed.getReader();
  const { readable, writable } = new DecompressionStream("gzip");
  const plain = readable.getReader();
  const writer = writable.getWriter();
  let failure: { readonly error: unknown } | null = null;
  let isFeeding = false;
  const feed = async () => {
    while (true) {
      let chunk: Uint8Array | undefined;
      try {
        chunk = (await source.read()).value;
      } catch (error) {
        failure = { error };
      }
      if (chunk === undefined) break;
      for (let at = 0; at < chunk.length; at += STEP_BYTES) {
        // A copy, because the owner of the chunk may reuse it.
        await writer.write(chunk.slice(at, at + STEP_BYTES));
      }
    }
    // After a failure the last bytes are missing, so the read below fails and reports it.
    await writer.close();
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (!isFeeding) {
        isFeeding = true;
        // Failures here make the read below fail too.
        feed().catch(() => {});
      }
      if (isTurnDue()) await nextTurn();
      try {
        const { done, value } = await plain.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (cause) {
        source.cancel(cause).catch(() => {});
        throw failure === null ? damaged(cause) : failure.error;
      }
    },
    // The compressed rest is left to the garbage collection: Node throws an exception that ends the process when the
    // reader of a `DecompressionStream` cancels it while a chunk is on its way.
    cancel: (reason) => source.cancel(reason),
  }, { highWaterMark: 0 });
}
