/**
 * The one place where anything is unpacked. Deno's `DecompressionStream` makes one chunk of everything that a packed chunk
 * holds: 64 KiB can become 64 MiB. Packed bytes go in by small steps, the next one when the last was read.
 */
import { isTurnDue, nextTurn } from "./turn.ts";

/** Packed bytes of one step: deflate makes at most 1032 times as much of them, so no chunk is larger than 516 KiB. */
const STEP_BYTES = 512;

/** Whether `bytes` begin as gzip does (RFC 1952, section 2.3.1). */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/**
 * `packed` without one layer of gzip, read only as fast as the result is. Others get their turn however much comes of it;
 * whoever reads it bounds how much that may be. What `packed` errors with passes; damaged data, and data cut off, error with
 * what `damaged` makes of the cause.
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
        // A copy: the owner of the chunk may use it again.
        await writer.write(chunk.slice(at, at + STEP_BYTES));
      }
    }
    // After a failure the last bytes are missing: the read below fails, and tells of the failure.
    await writer.close();
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (!isFeeding) {
        isFeeding = true;
        // What fails here fails the read below, too.
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
    // What is packed still is left to the garbage collection: Node throws an exception that ends the process when the
    // reader of a `DecompressionStream` cancels it while a chunk is on its way.
    cancel: (reason) => source.cancel(reason),
  }, { highWaterMark: 0 });
}
