/**
 * Telling a list that is the same as the last time by its bytes, for servers that send no validator: reading a hundred
 * thousand entries again to change none of them takes seconds of the engine's only thread, their hash a tenth of one.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { toHex } from "../../bytes/hex.ts";
import { spool, type Spooled, type SpoolParts } from "../spool.ts";

/** Largest list that is kept aside in memory, where there is no directory, bytes: larger ones are read again each time. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** Size and hash of a list, made while its bytes pass. */
class ListDigest {
  readonly #hash = sha256.create();
  #sizeBytes = 0;

  /** Entries may be relative to `baseUrl`; its query, which may be another each time, is no part of that. */
  constructor(baseUrl: string) {
    const { origin, pathname } = new URL(baseUrl);
    this.#hash.update(new TextEncoder().encode(`${origin}${pathname}\n`));
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The next bytes of the list. */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.length;
    this.#hash.update(chunk);
  }

  /** `<size>:<hexadecimal>`; the list is complete. */
  finish(): string {
    return `${this.#sizeBytes}:${toHex(this.#hash.digest())}`;
  }
}

/** A list that was fetched and differs from the last one, or may. */
export interface FetchedList {
  /** All of it; once. */
  readonly body: ReadableStream<Uint8Array>;
  /** What it is known by the next time; once `body` was read to its end. */
  digest(): string;
  /** Lets go of what was kept aside. Idempotent. */
  remove(): Promise<void>;
}

/**
 * Reads `body` as far as needed to tell whether it is the list of `lastDigest` (empty: unknown), which `digest()` gave;
 * null when it is. No more is kept aside than that list had. Rejects as `body` does, with `disk_full` or `io`.
 */
export async function differingList(
  spools: SpoolParts,
  body: ReadableStream<Uint8Array>,
  baseUrl: string,
  lastDigest: string,
): Promise<FetchedList | null> {
  const digest = new ListDigest(baseUrl);
  const lastBytes = sizeOf(lastDigest);
  const mayKeep = lastBytes !== null && (spools.directory !== null || lastBytes <= MAX_HELD_BYTES);
  const reader = body.getReader();
  let hasEnded = false;
  const next = async () => {
    const { done, value } = await reader.read();
    if (done) hasEnded = true;
    else digest.update(value);
    return value;
  };
  async function* asLongAsTheLast(): AsyncGenerator<Uint8Array> {
    while (digest.sizeBytes <= lastBytes!) {
      const chunk = await next();
      if (chunk === undefined) return;
      yield chunk;
    }
  }
  let aside: Spooled | null = null;
  let known: string | null = null;
  if (mayKeep) {
    aside = await spool(spools, asLongAsTheLast(), Infinity).catch(async (error) => {
      await reader.cancel(error).catch(() => {});
      throw error;
    });
    if (hasEnded) known = digest.finish();
    if (known === lastDigest) {
      await aside.remove();
      return null;
    }
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    if (aside !== null) yield* aside.open();
    while (!hasEnded) {
      const chunk = await next();
      if (chunk !== undefined) yield chunk;
    }
  }
  const chunks = all();
  return {
    body: new ReadableStream({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        // A read that waits would keep the generator, and with it this call, waiting.
        await reader.cancel(reason);
        await chunks.return(undefined);
      },
    }, { highWaterMark: 0 }),
    digest: () => known ??= digest.finish(),
    remove: async () => await aside?.remove(),
  };
}

/** Bytes of the list of a digest; null when there is none. */
function sizeOf(digest: string): number | null {
  const size = /^(\d{1,15}):/.exec(digest)?.[1];
  return size === undefined ? null : Number(size);
}
