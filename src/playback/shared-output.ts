/**
 * Muxed output, shared by its readers. Two hundred players of one file stand near each other, and muxing the same
 * packets for each costs twenty times what sending them does. A reader at a place where nobody has been makes a run of
 * the muxer begin there. Later readers take the chunks of that run, and continue it where it ends.
 */
import type { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import { withSignal } from "../bytes/deadline.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { StallReason } from "../swarm/types.ts";

/** Kept for each reader: players that began together drift apart. */
const KEPT_BYTES_PER_READER = 128 * 1024;
/** Kept at least once something is shared: a segment or two, or the seconds between two players. */
const MIN_KEPT_BYTES = 16 * 1024 * 1024;
/** Kept at most, all outputs of an engine: what hundreds of readers need. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
/** Chunks are found by their place in steps of this, bytes. */
const BUCKET_BYTES = 128 * 1024;

/** A run of the muxer. */
export interface OutputRun {
  /** Bytes from the place on where the run began. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Whether it waits for bytes that are not here. */
  isWaiting(): boolean;
  /** Why it waits, null when it does not. */
  stallReason(): StallReason | null;
  /** Where in the source it reads; null when it has not begun, or there is no one place. */
  readonly positionBytes: number | null;
  /** Releases what it reads from. */
  close(): void;
}

/** Begins a run at `offset`. Throws `too_busy`. */
export type RunOpener = (offset: number, signal: AbortSignal) => OutputRun;

/** A run that is under way, and how many readers follow it. */
interface Maker {
  readonly run: OutputRun;
  readonly ending: AbortController;
  readonly iterator: AsyncIterator<Uint8Array>;
  /** Place of the next chunk that it makes. */
  next: number;
  readers: number;
  /** The chunk that is being made; null between chunks. */
  making: Promise<Chunk | null> | null;
}

/** Bytes that a maker made. */
interface Chunk {
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly maker: Maker;
  /** `own`: only the reader that had it made takes it. `dropped`: its memory may hold something else by now. */
  state: "own" | "kept" | "dropped";
}

/** One reader's place. */
interface Seat {
  at: number;
  maker: Maker | null;
}

/** A body that is read from a shared output. */
export interface SharedReader {
  /** The bytes; the consumer releases each chunk to the outputs' buffers. */
  read(signal: AbortSignal): AsyncIterable<Uint8Array>;
  isWaiting(): boolean;
  stallReason(): StallReason | null;
  /** As of `OutputRun`. */
  readonly positionBytes: number | null;
  /** To be called once, also when the body was not read to its end. */
  close(): void;
}

/** All outputs of an engine, which share one bound. */
export class SharedOutputs {
  readonly buffers: ChunkBuffers;
  readonly #outputs = new WeakMap<object, Map<string, SharedOutput>>();
  /** By source: how many sessions play it in parts that are requested one by one. */
  readonly #audiences = new WeakMap<object, number>();
  /** Least recently used first. */
  readonly #kept = new Map<Chunk, SharedOutput>();
  #keptBytes = 0;
  #readers = 0;

  /** `buffers`: memory of the chunks. */
  constructor(buffers: ChunkBuffers) {
    this.buffers = buffers;
  }

  /** Bytes held. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Bytes held at most now. */
  get limitBytes(): number {
    return Math.min(MAX_KEPT_BYTES, Math.max(MIN_KEPT_BYTES, this.#readers * KEPT_BYTES_PER_READER));
  }

  /** One more session plays parts of `source` (segments). Parts that several play are kept between their requests. */
  joinAudience(source: object): void {
    this.#audiences.set(source, (this.#audiences.get(source) ?? 0) + 1);
  }

  /** One session less; with the last one the kept parts are dropped. */
  leaveAudience(source: object): void {
    const left = Math.max(0, (this.#audiences.get(source) ?? 0) - 1);
    this.#audiences.set(source, left);
    if (left > 0) return;
    for (const output of [...this.#outputs.get(source)?.values() ?? []]) output.clear();
  }

  /**
   * Reads `[start, end)` of the output `name` of `source`, `end` null: to its end. The same source and name must always
   * give the same bytes. Throws as `open` does.
   */
  read(source: object, name: string, start: number, end: number | null, open: RunOpener): SharedReader {
    let named = this.#outputs.get(source);
    if (named === undefined) this.#outputs.set(source, named = new Map());
    let output = named.get(name);
    if (output === undefined) {
      const all = named;
      const isPart = () => (this.#audiences.get(source) ?? 0) > 1;
      output = new SharedOutput(this, isPart, () => void all.delete(name));
      named.set(name, output);
    }
    return output.open(start, end, open);
  }

  /** A reader more or less. */
  count(readers: 1 | -1): void {
    this.#readers += readers;
  }

  /** Keeps a chunk, and drops others if there are too many. */
  keep(chunk: Chunk, output: SharedOutput): void {
    this.#kept.set(chunk, output);
    this.#keptBytes += chunk.bytes.length;
    for (const [oldest, its] of this.#kept) {
      if (this.#keptBytes <= this.limitBytes) break;
      its.drop(oldest);
    }
  }

  /** Marks the chunk as most recently used. */
  touch(chunk: Chunk, output: SharedOutput): void {
    if (!this.#kept.delete(chunk)) return;
    this.#kept.set(chunk, output);
  }

  /** Its output no longer needs it. */
  forget(chunk: Chunk): void {
    if (!this.#kept.delete(chunk)) return;
    chunk.state = "dropped";
    this.#keptBytes -= chunk.bytes.length;
    this.buffers.release(chunk.bytes);
  }
}

/** One output: its makers, their chunks, and the places of its readers. */
class SharedOutput {
  readonly #all: SharedOutputs;
  readonly #isPart: () => boolean;
  readonly #emptied: () => void;
  readonly #seats = new Set<Seat>();
  readonly #makers = new Set<Maker>();
  /** By `offset / BUCKET_BYTES`. */
  readonly #buckets = new Map<number, Chunk[]>();
  /** Where it ends; null until a reader came there. */
  #sizeBytes: number | null = null;

  /** `isPart`: it is kept for later requests of others. `emptied`: nobody reads it and nothing of it is kept. */
  constructor(all: SharedOutputs, isPart: () => boolean, emptied: () => void) {
    this.#all = all;
    this.#isPart = isPart;
    this.#emptied = emptied;
  }

  open(start: number, end: number | null, open: RunOpener): SharedReader {
    const seat: Seat = { at: start, maker: null };
    this.#seats.add(seat);
    this.#all.count(1);
    const leave = () => {
      if (!this.#seats.delete(seat)) return;
      this.#all.count(-1);
      this.#follow(seat, null);
      if (!this.#isPart()) this.#sweep();
      this.#lookEmpty();
    };
    try {
      // At once, so that a swarm without a free reader refuses before anything is sent.
      if (this.#find(start) === null) this.#follow(seat, this.#makerAt(start) ?? this.#begin(start, open));
    } catch (error) {
      leave();
      throw error;
    }
    const take = (signal: AbortSignal) => this.#take(seat, end, open, signal);
    return {
      async *read(signal) {
        for (let bytes = await take(signal); bytes !== null; bytes = await take(signal)) yield bytes;
      },
      isWaiting: () => seat.maker?.run.isWaiting() ?? false,
      stallReason: () => seat.maker?.run.stallReason() ?? null,
      get positionBytes() {
        return seat.maker?.run.positionBytes ?? null;
      },
      close: leave,
    };
  }

  /** Drops everything that nobody is reading. */
  clear(): void {
    if (this.#seats.size > 0) return;
    for (const chunk of [...this.#buckets.values()].flat()) this.drop(chunk);
  }

  /** Drops a kept chunk. */
  drop(chunk: Chunk): void {
    const bucket = Math.floor(chunk.offset / BUCKET_BYTES);
    const rest = this.#buckets.get(bucket)?.filter((other) => other !== chunk) ?? [];
    if (rest.length > 0) this.#buckets.set(bucket, rest);
    else this.#buckets.delete(bucket);
    this.#all.forget(chunk);
    this.#lookEmpty();
  }

  /** The bytes at the seat's place, which moves on; held once for the consumer. Null at the end. */
  async #take(seat: Seat, end: number | null, open: RunOpener, signal: AbortSignal): Promise<Uint8Array | null> {
    if (signal.aborted) throw abortError(signal);
    const { at } = seat;
    if (at === end || at === this.#sizeBytes) return null;
    let chunk = this.#find(at);
    if (chunk === null) {
      const maker = this.#makerAt(at) ?? this.#begin(at, open);
      this.#follow(seat, maker);
      chunk = await withSignal(this.#advance(maker, seat), signal);
      if (chunk === null) return null;
      if (chunk.state === "dropped") return await this.#take(seat, end, open, signal);
    } else {
      this.#all.touch(chunk, this);
      this.#follow(seat, this.#makers.has(chunk.maker) ? chunk.maker : null);
    }
    const { offset, bytes } = chunk;
    const until = Math.min(offset + bytes.length, end ?? Infinity);
    seat.at = until;
    if (chunk.state === "kept") {
      this.#all.buffers.hold(bytes);
      if (!this.#isPart() && !this.#isWanted(chunk, seat)) this.drop(chunk);
    }
    return bytes.subarray(at - offset, until - offset);
  }

  /** The kept chunk that holds the byte at `at`. */
  #find(at: number): Chunk | null {
    const bucket = Math.floor(at / BUCKET_BYTES);
    for (const candidates of [this.#buckets.get(bucket), this.#buckets.get(bucket - 1)]) {
      for (const chunk of candidates ?? []) {
        if (chunk.offset <= at && at < chunk.offset + chunk.bytes.length) return chunk;
      }
    }
    return null;
  }

  #makerAt(at: number): Maker | null {
    for (const maker of this.#makers) if (maker.next === at) return maker;
    return null;
  }

  #begin(at: number, open: RunOpener): Maker {
    const ending = new AbortController();
    const run = open(at, ending.signal);
    const iterator = run.chunks[Symbol.asyncIterator]();
    const maker: Maker = { run, ending, iterator, next: at, readers: 0, making: null };
    this.#makers.add(maker);
    return maker;
  }

  /** The next chunk of `maker`, made once for all readers that wait for it; null at the end. */
  #advance(maker: Maker, seat: Seat): Promise<Chunk | null> {
    return maker.making ??= (async () => {
      try {
        const { done, value } = await maker.iterator.next();
        if (done === true) {
          this.#sizeBytes = maker.next;
          return null;
        }
        const chunk: Chunk = { offset: maker.next, bytes: value, maker, state: "own" };
        maker.next += value.length;
        const isWanted = this.#isPart() || this.#isWanted(chunk, seat);
        if (isWanted && value.length > 0) this.#keep(chunk);
        return chunk;
      } catch (error) {
        this.#end(maker);
        throw error;
      } finally {
        maker.making = null;
      }
    })();
  }

  #keep(chunk: Chunk): void {
    chunk.state = "kept";
    const bucket = Math.floor(chunk.offset / BUCKET_BYTES);
    const others = this.#buckets.get(bucket);
    if (others === undefined) this.#buckets.set(bucket, [chunk]);
    else others.push(chunk);
    this.#all.keep(chunk, this);
  }

  /** Whether a seat other than `except` will soon reach `chunk`, or is in the middle of it. */
  #isWanted({ offset, bytes }: Chunk, except: Seat | null): boolean {
    const from = offset - this.#all.limitBytes;
    for (const seat of this.#seats) {
      if (seat !== except && seat.at < offset + bytes.length && seat.at >= from) return true;
    }
    return false;
  }

  /** Drops chunks that no reader will reach soon. */
  #sweep(): void {
    for (const chunk of [...this.#buckets.values()].flat()) if (!this.#isWanted(chunk, null)) this.drop(chunk);
  }

  #follow(seat: Seat, maker: Maker | null): void {
    const before = seat.maker;
    if (before === maker) return;
    seat.maker = maker;
    if (maker !== null) maker.readers++;
    if (before !== null && --before.readers === 0) this.#end(before);
  }

  #end(maker: Maker): void {
    if (!this.#makers.delete(maker)) return;
    maker.ending.abort(new MillraceError("aborted", "nobody reads any more"));
    // Everybody who waited for a chunk has left, so its error matters to nobody.
    maker.making?.catch(() => {});
    maker.iterator.return?.().catch(() => {});
    maker.run.close();
  }

  #lookEmpty(): void {
    if (this.#seats.size === 0 && this.#buckets.size === 0) this.#emptied();
  }
}

/** `chunks` without their first `count` bytes: segments are made from their beginning. */
export async function* skipBytes(chunks: AsyncIterable<Uint8Array>, count: number): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const chunk of chunks) {
    if (left < chunk.length) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}
