/**
 * Recognises by its bytes a list that has not changed, for servers that send no validator: reading 100,000 entries again
 * to change none of them takes seconds of the engine's only thread, hashing them a tenth of a second.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { isGzip } from "../../bytes/gunzip.ts";
import { toHex } from "../../bytes/hex.ts";
import { isXz } from "../../bytes/unxz.ts";
import { spool, type Spooled, type SpoolParts } from "../spool.ts";

const CR = 0x0d;
const LF = 0x0a;
/** Largest list that is held in memory when there is no directory, bytes: larger ones are read again each time. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** Size and hash of a list, computed while its bytes pass. */
class ListDigest {
  readonly #hash = sha256.create();
  #sizeBytes = 0;
  #isPacked = false;
  #last = LF;

  /** `baseUrl` counts because entries may be relative to it, but not its query, which may differ each time. */
  constructor(baseUrl: string) {
    const { origin, pathname } = new URL(baseUrl);
    this.#hash.update(new TextEncoder().encode(`${origin}${pathname}\n`));
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds the next bytes of the list. */
  update(chunk: Uint8Array): void {
    if (this.#sizeBytes === 0) this.#isPacked = isGzip(chunk) || isXz(chunk);
    this.#last = chunk[chunk.length - 1] ?? this.#last;
    this.#sizeBytes += chunk.length;
    this.#hash.update(chunk);
  }

  /** True when the list so far ends inside a line. */
  get isInLine(): boolean {
    return !this.#isPacked && this.#last !== LF && this.#last !== CR;
  }

  /** `<size>:<hexadecimal>`; to be called after the whole list. */
  finish(): string {
    return `${this.#sizeBytes}:${toHex(this.#hash.digest())}`;
  }
}

/** A list that was fetched and differs from the last one, or may. */
export interface FetchedList {
  /** The whole list; can be read once. */
  readonly body: ReadableStream<Uint8Array>;
  /** Identifies the list the next time; to be called after `body` was read to its end. */
  digest(): string;
  /** True when `body`, read to its end, ended inside a line. */
  endsInLine(): boolean;
  /** Releases what was stored. Idempotent. */
  remove(): Promise<void>;
}

/**
 * Reads `body` as far as needed to decide whether it is the list of `lastDigest`, an earlier result of `digest()` (empty:
 * unknown); returns null when it is. Stores no more bytes than that list had. Rejects as `body` does, or with `disk_full`
 * or `io`.
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
        // Without this, a pending read would keep the generator, and so this call, waiting.
        await reader.cancel(reason);
        await chunks.return(undefined);
      },
    }, { highWaterMark: 0 }),
    endsInLine: () => digest.isInLine,
    digest: () => known ??= digest.finish(),
    remove: async () => await aside?.remove(),
  };
}

/** Size of the list that a digest stands for; null for an empty digest. */
function sizeOf(digest: string): number | null {
  const size = /^(\d{1,15}):/.exec(digest)?.[1];
  return size === undefined ? null : Number(size);
}
