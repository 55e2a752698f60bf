/** Node streams as Web Streams with true backpressure; the runtimes' own converters differ and have bugs. */
import type { Readable, Writable } from "node:stream";

/** Bytes buffered between a Node stream and its reader. */
const BUFFER_BYTES = 64 * 1024;

/**
 * `source` as a stream of bytes; reading stops while nobody pulls. `cancel` runs `onCancel`, by default destroying `source`.
 * Errors of `source` are mapped by `errorOf`. `bufferBytes` are read ahead of the reader, beside the chunk that reaches them,
 * which may have 512 KiB on Bun; with 0 nothing is read before somebody asks.
 */
export function webReadable(
  source: Readable,
  errorOf: (error: Error) => Error = (error) => error,
  onCancel: () => void = () => source.destroy(),
  bufferBytes = BUFFER_BYTES,
): ReadableStream<Uint8Array> {
  let over = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      source.pause();
      source.on("data", (chunk: Uint8Array) => {
        if (over) return;
        controller.enqueue(detached(chunk));
        if ((controller.desiredSize ?? 0) <= 0) source.pause();
      });
      const finish = (error?: Error) => {
        if (over) return;
        over = true;
        if (error) controller.error(errorOf(error));
        else controller.close();
      };
      source.on("end", () => finish());
      source.on("error", finish);
      source.on("close", () => finish());
    },
    pull() {
      source.resume();
    },
    cancel() {
      over = true;
      onCancel();
    },
  }, new ByteLengthQueuingStrategy({ highWaterMark: bufferBytes }));
}

/** A view of the chunk where it fills most of its memory; else a copy, because it would keep all of that memory. */
function detached(chunk: Uint8Array): Uint8Array {
  const { buffer, byteOffset, byteLength } = chunk;
  return byteLength * 2 >= buffer.byteLength ? new Uint8Array(buffer, byteOffset, byteLength) : new Uint8Array(chunk);
}

/** `target` as a sink; a write resolves when the stream has taken it. */
export function webWritable(target: Writable): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    start(controller) {
      target.on("error", (error) => controller.error(error));
      target.on("close", () => controller.error(new Error("the stream was closed")));
    },
    write: (chunk) =>
      new Promise((resolve, reject) => target.write(chunk, (error) => error ? reject(error) : resolve())),
    close: () => new Promise((resolve) => target.end(() => resolve())),
    abort() {
      target.destroy();
    },
  });
}
