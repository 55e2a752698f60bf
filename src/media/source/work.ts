/**
 * What opening a file may cost. An index comes from strangers, and a few kilobytes of it can ask for any amount of
 * work. So every reader of an index reads through an `IndexWork`, which gives other work its turn and ends an index
 * that takes too much.
 * The work stays in this process. A worker with a watchdog would also stop an endless loop. But it takes 30 to 60 MB
 * and 50 to 150 ms for each file that is opened, bytes of the swarm would have to go to it and tables come back as
 * messages, and other work in the same process could still be made to freeze it.
 */
import type { ByteSource, ReadOptions } from "../../bytes/source.ts";
import { isTurnDue, nextTurn, turnWhenDue } from "../../bytes/turn.ts";
import { abortError, MillraceError } from "../../errors.ts";
import { PartSource } from "./part-source.ts";

/** Steps: access units, boxes, candidates. The largest accepted index (4 million access units) takes 16 million. */
const MAX_STEPS = 64_000_000;
/** Reads: an MP3 of a gigabyte whose frames are counted takes 65,000. */
const MAX_READS = 200_000;
/** Processor time, ms; waiting for bytes and for other programs is not counted. The largest index takes 1 to 3 s. */
const MAX_BUSY_MS = 20_000;

/** Bounds; the defaults are for all but tests. */
export interface WorkLimits {
  readonly steps?: number;
  readonly reads?: number;
  readonly busyMs?: number;
}

/** Where the memory of an index is counted. */
export interface MemoryAccount {
  /** `bytes` more are needed. Throws `too_busy`. */
  take(bytes: number): void;
  /** `bytes` of those taken are released. */
  giveBack(bytes: number): void;
}

/** A read of this size or less is not counted, bytes: there is one at a time. */
const SMALL_READ_BYTES = 256 * 1024;
/** A table takes as much memory again while it is read. */
const MEMORY_FACTOR = 2;

/** The source of a file whose index is being read, with the account of its cost. */
export class IndexWork implements ByteSource {
  readonly sizeBytes: number;
  readonly holder: ByteSource["holder"];
  readonly signal: AbortSignal;
  /** Null after `end`. */
  #source: ByteSource | null;
  readonly #limits: Required<WorkLimits>;
  readonly #memory: MemoryAccount | null;
  #heldBytes = 0;
  /** The work on the whole file, which is charged; null if this is it. */
  #whole: IndexWork | null = null;
  #steps = 0;
  #reads = 0;
  #busyMs = 0;
  #resumedMs = performance.now();
  /** Waits for other programs under way. */
  #idles = 0;

  /** The work on `source` until `signal` fires; `source` itself if it is one already. */
  static on(source: ByteSource, signal: AbortSignal): IndexWork {
    return source instanceof IndexWork ? source : new IndexWork(source, signal);
  }

  /** `memory` counts the memory of the largest read, until `end`; null: it is not counted. */
  constructor(source: ByteSource, signal: AbortSignal, limits: WorkLimits = {}, memory: MemoryAccount | null = null) {
    this.#source = source;
    this.signal = signal;
    this.#memory = memory;
    this.sizeBytes = source.sizeBytes;
    this.holder = source.holder;
    this.#limits = { steps: MAX_STEPS, reads: MAX_READS, busyMs: MAX_BUSY_MS, ...limits };
  }

  /** The work on the bytes `[start, end)` as on a file of their own; the cost is charged to this one. */
  part(start: number, end: number): IndexWork {
    if (start === 0 && end === this.sizeBytes) return this;
    const part = new IndexWork(new PartSource(this, start, end), this.signal, this.#limits);
    part.#whole = this.#whole ?? this;
    return part;
  }

  /** As `ByteSource.read`; a step of the work. Rejects with `too_busy` when there is no memory for it. */
  async read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    const source = this.#source;
    if (source === null) throw new MillraceError("closed", "the index was read");
    if (this.#whole !== null) return await source.read(offset, length, options);
    if (++this.#reads > this.#limits.reads) throw tooMuch(`${this.#limits.reads} reads`);
    this.#hold(length);
    await this.spend(1);
    this.#pause();
    try {
      return await source.read(offset, length, options);
    } finally {
      this.#resumedMs = performance.now();
    }
  }

  /** As `ByteSource.release`. */
  release(bytes: Uint8Array): void {
    this.#source?.release?.(bytes);
  }

  /**
   * The index was read, or never will be: gives its memory back. Idempotent. Releases the source, too: an index is kept long after
   * its session, closures of it may keep this work (on Bun those of an async function keep all of its parameters), and the
   * source is a whole swarm.
   */
  end(): void {
    this.#source = null;
    this.#memory?.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
  }

  /**
   * Counts `steps` and gives other work its turn when that is due. Call it in every loop over a file's content, once
   * per few thousand steps if one is short. Rejects with `bad_media` when the index takes too much, or the signal's
   * reason.
   */
  async spend(steps: number): Promise<void> {
    if (this.#whole !== null) return await this.#whole.spend(steps);
    this.#steps += steps;
    if (this.#steps > this.#limits.steps) throw tooMuch(`${this.#limits.steps} steps`);
    if (this.signal.aborted) throw abortError(this.signal);
    if (!isTurnDue()) return;
    this.#pause();
    await nextTurn();
    this.#resumedMs = performance.now();
    if (this.signal.aborted) throw abortError(this.signal);
  }

  /** What `wait` waits for, another program: its time is not counted, however slow the machine is. Rejects as `wait` does. */
  async idle<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#whole !== null) return await this.#whole.idle(wait);
    this.#pause();
    this.#idles++;
    try {
      return await wait();
    } finally {
      this.#idles--;
      this.#resumedMs = performance.now();
    }
  }

  #hold(readBytes: number): void {
    const bytes = readBytes > SMALL_READ_BYTES ? readBytes * MEMORY_FACTOR : 0;
    if (this.#memory === null || bytes <= this.#heldBytes) return;
    this.#memory.take(bytes - this.#heldBytes);
    this.#heldBytes = bytes;
  }

  #pause(): void {
    if (this.#idles === 0) this.#busyMs += performance.now() - this.#resumedMs;
    this.#resumedMs = performance.now();
    if (this.#busyMs > this.#limits.busyMs) throw tooMuch(`${this.#limits.busyMs / 1000} s`);
  }
}

function tooMuch(limit: string): MillraceError {
  return new MillraceError(
    "bad_media",
    `the index of the file takes too much work to read (more than ${limit}): the file is damaged, or made for that`,
  );
}

/**
 * How long a reader may keep others waiting, ms. Its reads usually wait for the network anyway, and a turn costs 1 to 2
 * ms.
 */
const READING_BUSY_MS = 20;

/**
 * A source whose reads give other work its turn: for the loops that play a file, whose length is not known in advance.
 */
export class ConsiderateSource implements ByteSource {
  readonly sizeBytes: number;
  readonly holder: ByteSource["holder"];
  readonly release?: (bytes: Uint8Array) => void;
  readonly hold?: (bytes: Uint8Array) => void;
  readonly availableFrom?: (offset: number, maxBytes: number) => number;
  readonly #source: ByteSource;

  constructor(source: ByteSource) {
    this.#source = source;
    this.sizeBytes = source.sizeBytes;
    this.holder = source.holder;
    if (source.availableFrom) this.availableFrom = (offset, maxBytes) => source.availableFrom!(offset, maxBytes);
    if (source.release) this.release = (bytes) => source.release!(bytes);
    if (source.hold) this.hold = (bytes) => source.hold!(bytes);
  }

  /** As `ByteSource.read`. */
  async read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    await turnWhenDue(options.signal, READING_BUSY_MS);
    return await this.#source.read(offset, length, options);
  }
}
