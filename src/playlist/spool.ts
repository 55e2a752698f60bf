/** Keeps uploaded lists until a task has read them: in a file of the state directory, else in memory. */
import { hasCode, MillraceError } from "../errors.ts";
import type { FileHandle, FilePort } from "../ports.ts";
import { toHex } from "../bytes/hex.ts";

/** Bytes per read. */
const READ_BYTES = 64 * 1024;
/** Ending of the files' names. */
const SPOOL_ENDING = ".list";

/** A stored list. */
export interface Spooled {
  readonly sizeBytes: number;
  /** Reads it from its start; may be called several times. */
  open(): ReadableStream<Uint8Array>;
  /** Deletes it. Idempotent. */
  remove(): Promise<void>;
}

/** Dependencies of `spool`. */
export interface SpoolParts {
  readonly files: FilePort;
  /** null: lists are kept in memory. */
  readonly directory: string | null;
}

/** Stores all of `chunks`. Rejects with `too_large` beyond `maxBytes`, `disk_full` or `io`; then no file remains. */
export async function spool(
  parts: SpoolParts,
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Spooled> {
  const target = parts.directory === null ? memorySpool() : await fileSpool(parts, parts.directory);
  let size = 0;
  try {
    for await (const chunk of chunks) {
      size += chunk.length;
      if (size > maxBytes) throw new MillraceError("too_large", `the list is larger than ${maxBytes} bytes`);
      await target.write(chunk, size - chunk.length);
    }
    await target.finish();
  } catch (error) {
    await target.remove();
    throw error;
  }
  return { sizeBytes: size, open: () => target.open(size), remove: target.remove };
}

interface Target {
  write(chunk: Uint8Array, position: number): Promise<void>;
  finish(): Promise<void>;
  open(sizeBytes: number): ReadableStream<Uint8Array>;
  remove(): Promise<void>;
}

function memorySpool(): Target {
  let chunks: Uint8Array[] = [];
  return {
    write(chunk) {
      chunks.push(chunk.slice());
      return Promise.resolve();
    },
    finish: () => Promise.resolve(),
    open() {
      let at = 0;
      return new ReadableStream({
        pull(controller) {
          const chunk = chunks[at++];
          if (chunk === undefined) controller.close();
          else controller.enqueue(chunk);
        },
      }, { highWaterMark: 0 });
    },
    remove() {
      chunks = [];
      return Promise.resolve();
    },
  };
}

async function fileSpool({ files }: SpoolParts, directory: string): Promise<Target> {
  await files.makeDirectory(directory);
  const path = `${directory}/${toHex(crypto.getRandomValues(new Uint8Array(16)))}${SPOOL_ENDING}`;
  const writing = await files.open(path, "write", { permissions: 0o600 });
  return {
    write: (chunk, position) => writing.write(chunk, position),
    finish: () => writing.close(),
    open(sizeBytes) {
      let handle: FileHandle | null = null;
      let at = 0;
      return new ReadableStream({
        async pull(controller) {
          handle ??= await files.open(path, "read");
          const chunk = new Uint8Array(Math.min(READ_BYTES, sizeBytes - at));
          const count = await handle.read(chunk, at);
          at += count;
          if (count > 0) return controller.enqueue(chunk.subarray(0, count));
          await handle.close();
          controller.close();
        },
        cancel: () => handle?.close(),
      }, { highWaterMark: 0 });
    },
    async remove() {
      await writing.close();
      await files.remove(path);
    },
  };
}

/**
 * Removes the files of a run that was killed. To be called before the first `spool`, as it removes every list; no other
 * engine uses the directory. Rejects with `io`.
 */
export async function removeLeftSpools({ files, directory }: SpoolParts): Promise<void> {
  if (directory === null) return;
  const names = await files.list(directory).catch((error) => {
    if (hasCode(error, "not_found")) return [];
    throw error;
  });
  for (const name of names) if (name.endsWith(SPOOL_ENDING)) await files.remove(`${directory}/${name}`);
}
