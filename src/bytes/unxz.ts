/**
 * Undoes xz. The decoder is xz-embedded as WebAssembly (`xz-decompress`): it takes 64 KiB at a time, so that other tasks get
 * turns, and holds the dictionary that the file asks for, at most 64 MiB; it refuses files that ask for more.
 */
import * as xz from "xz-decompress";
import { withSignal } from "./deadline.ts";
import { isTurnDue, nextTurn } from "./turn.ts";

const MAGIC = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];

/** The library, which some runtimes show as a default export alone, with where it keeps its decoder. */
interface Library {
  readonly XzReadableStream: typeof xz.XzReadableStream & {
    _moduleInstance?: unknown;
    _moduleInstancePromise?: unknown;
  };
}
const { XzReadableStream } = ("default" in xz ? xz.default : xz) as unknown as Library;

/** One file is read at a time, so that dictionaries don't add up; the others wait. */
let last: Promise<void> = Promise.resolve();

/** True when `bytes`, two or more, begin as xz does. */
export function isXz(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, at) => at >= bytes.length || bytes[at] === byte) && bytes.length >= 2;
}

/**
 * `packed` with one layer of xz removed, all streams of it, read only as fast as the result is read. The reader must limit its
 * size. Errors of `packed` are passed on; damaged, truncated or unreadable data causes the error that `damaged` makes of the
 * cause, and `signal` ends a wait for other files.
 */
export function unxzed(
  packed: ReadableStream<Uint8Array>,
  damaged: (cause: unknown) => Error,
  signal?: AbortSignal,
): ReadableStream<Uint8Array> {
  const source = packed.getReader();
  let failure: { readonly error: unknown } | null = null;
  const fed = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        // The library takes an empty chunk for the end.
        for (;;) {
          const { done, value } = await source.read();
          if (done) return controller.close();
          if (value.length > 0) return controller.enqueue(value);
        }
      } catch (error) {
        failure = { error };
        throw error;
      }
    },
    cancel: (reason) => source.cancel(reason),
  }, { highWaterMark: 0 });
  let plain: ReadableStreamDefaultReader<Uint8Array> | null = null;
  let isOver = false;
  let release = () => {};
  const end = () => {
    isOver = true;
    release();
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        if (plain === null) {
          release = await takeTurn(signal);
          if (isOver) return release();
          plain = new XzReadableStream(fed).getReader();
        }
        for (;;) {
          if (isTurnDue()) await nextTurn();
          const { done, value } = await plain.read();
          if (done) {
            end();
            return controller.close();
          }
          if (value.length > 0) return controller.enqueue(value);
        }
      } catch (cause) {
        end();
        source.cancel(cause).catch(() => {});
        if (signal?.aborted) throw cause;
        throw failure === null ? damaged(cause) : failure.error;
      }
    },
    async cancel(reason) {
      isOver = true;
      try {
        await (plain === null ? source.cancel(reason) : plain.cancel(reason));
      } finally {
        release();
      }
    },
  }, { highWaterMark: 0 });
}

/** Waits until no other file is read; returns what lets the next one begin, and frees the memory of this one. */
async function takeTurn(signal: AbortSignal | undefined): Promise<() => void> {
  const before = last;
  let release = () => {};
  const mine = new Promise<void>((resolve) => release = resolve);
  last = before.then(() => mine);
  try {
    await (signal === undefined ? before : withSignal(before, signal));
  } catch (error) {
    release();
    throw error;
  }
  return () => {
    // The memory of a WebAssembly module never shrinks: the next file gets another one.
    delete XzReadableStream._moduleInstance;
    delete XzReadableStream._moduleInstancePromise;
    release();
  };
}
