/** Frees what has arrived from the network soon after it was read. */
import process from "node:process";

/** Bytes that may arrive between two collections: 8 MiB leave a download of 512 MiB at 131 MB, none at 185. */
const COLLECT_EVERY_BYTES = 8 * 1024 * 1024;

/** The part of the module `bun:jsc` that is used. */
interface JavaScriptCore {
  /** Collects young objects; returns the bytes of those that live on. */
  edenGC(): number;
}

/** Read at run time: a bundler would look for the module on all runtimes. */
function collectYoung(): void {
  (process.getBuiltinModule("bun:jsc") as unknown as JavaScriptCore | undefined)?.edenGC();
}

/**
 * Bun hands out every read in memory of its own, and JavaScriptCore waits for up to 100 MB of those before it looks for
 * dead ones. This has young objects looked through earlier, once nobody holds the last read: what is held then would
 * count as old, and stay until the next full collection.
 */
export class ReceivedMemory {
  readonly #collect: () => void;
  readonly #later: (step: () => void) => void;
  readonly #everyBytes: number;
  #bytes = 0;

  /**
   * `collect` frees young objects, `later` calls a step when the stack is empty: by default the runtime's own.
   * `everyBytes`: bytes between two collections, default 8 MiB.
   */
  constructor(
    collect: () => void = collectYoung,
    later: (step: () => void) => void = setImmediate,
    everyBytes = COLLECT_EVERY_BYTES,
  ) {
    this.#collect = collect;
    this.#later = later;
    this.#everyBytes = everyBytes;
  }

  /** Counts bytes that arrived. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < this.#everyBytes) return;
    this.#bytes = 0;
    this.#later(this.#collect);
  }
}
