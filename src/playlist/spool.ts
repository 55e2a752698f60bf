/** Lists that were sent along, kept aside until a task has read them: in a file of the state directory, else in memory. */
import { MillraceError } from "../errors.ts";
import type { Clock, FileHandle, FilePort } from "../ports.ts";
import { toHex } from "../bytes/hex.ts";

/** Bytes read at once. */
const READ_BYTES = 64 * 1024;
/** What an earlier run left behind goes after so long: another engine may use the same directory now. */
const STALE_MS = 86_400_000;

/** A list kept aside. */
export interface Spooled {
  readonly sizeBytes: number;
  /** From its start; may be opened several times. */
  open(): ReadableStream<Uint8Array>;
  /** Idempotent. */
  remove(): Promise<void>;
}

/** What spooling needs. */
export interface SpoolParts {
  readonly files: FilePort;
  readonly clock: Clock;
  /** null: memory. */
  readonly directory: string | null;
}

/** Keeps all of `chunks`. Rejects with `too_large` beyond `maxBytes`, `disk_full` or `io`; then nothing is left behind. */
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

async function fileSpool({ files, clock }: SpoolParts, directory: string): Promise<Target> {
  await files.makeDirectory(directory);
  await removeStale(files, clock, directory);
  const path = `${directory}/${toHex(crypto.getRandomValues(new Uint8Array(16)))}.list`;
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

async function removeStale(files: FilePort, clock: Clock, directory: string): Promise<void> {
  for (const name of await files.list(directory)) {
    const path = `${directory}/${name}`;
    const info = await files.info(path).catch(() => null);
    if (info !== null && clock.now() - info.modifiedMs > STALE_MS) await files.remove(path);
  }
}
