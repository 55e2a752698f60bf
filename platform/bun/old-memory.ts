/** Frees what has grown old and is held no more. */
import process from "node:process";

/**
 * Growth of the memory outside the heap after which everything is collected, bytes. What a broadcast holds for its viewers (48
 * MiB) and reads ahead (12 MiB) is old when it is let go, and Bun collected the old ones when there was four times as much.
 * A collection takes 50 ms of processor time: twice a second for the fastest source, every seven seconds for one of 10 Mb/s.
 */
const GROWTH_BYTES = 16 * 1024 * 1024;

/** The parts of the module `bun:jsc` that are used. */
interface JavaScriptCore {
  /** Collects all dead objects; returns the bytes of those that live on. */
  fullGC(): number;
}

/** Read at run time: a bundler would look for the module on all runtimes. */
function collectAll(): void {
  (process.getBuiltinModule("bun:jsc") as unknown as JavaScriptCore | undefined)?.fullGC();
}

/** Collects everything whenever memory outside the heap has grown by 48 MiB since it was least. */
export class OldMemory {
  readonly #collect: () => void;
  readonly #externalBytes: () => number;
  #leastBytes = Infinity;

  /** `collect` frees what is dead, `externalBytes` says how much memory outside the heap is in use: by default the runtime's. */
  constructor(collect: () => void = collectAll, externalBytes: () => number = () => process.memoryUsage().external) {
    this.#collect = collect;
    this.#externalBytes = externalBytes;
  }

  /** Collects if there is much to free. For moments when the stack is empty: what it holds would stay. */
  look(): void {
    const usedBytes = this.#externalBytes();
    this.#leastBytes = Math.min(this.#leastBytes, usedBytes);
    if (usedBytes - this.#leastBytes < GROWTH_BYTES) return;
    this.#collect();
    this.#leastBytes = this.#externalBytes();
  }
}
