/** One file in mediabunny's hands: bytes through our sources, bounded; its errors as ours. */
import { withSignal } from "../../../bytes/deadline.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { abortError, MillraceError } from "../../../errors.ts";
import type { EncodedPacket, EncodedPacketSink, Input, InputAudioTrack } from "./mediabunny.ts";

/** Containers that it reads for us. */
export type LibraryContainer = "ogg" | "wav";

/** Bytes read at a time when one read follows another. */
const READ_AHEAD_BYTES = 128 * 1024;
/** Most that one query may cost, bytes and reads: comments with pictures are megabytes, a packet at most a page or two. */
const MAX_QUESTION_BYTES = 16 * 1024 * 1024;
const MAX_QUESTION_READS = 4000;
/** Bytes that mediabunny keeps. */
const CACHE_BYTES = 512 * 1024;
/** The beginning of the file, which every opening asks for again. */
export const HEAD_BYTES = 64 * 1024;

/** The library, loaded once it is needed. */
export function loadLibrary(): Promise<typeof import("./mediabunny.ts")> {
  return import("./mediabunny.ts");
}

/** A demuxer with its place. Not for two questions at a time. */
export class LibraryDemuxer {
  readonly #sizeBytes: number;
  readonly #input: Input;
  #sink: EncodedPacketSink | null = null;
  #source: ByteSource | null = null;
  #signal: AbortSignal | null = null;
  readonly #head: Uint8Array;
  #block = new Uint8Array(0);
  #blockAt = 0;
  #bytes = 0;
  #reads = 0;
  #failure: unknown = null;
  readonly #library: typeof import("./mediabunny.ts");

  /** `head` is the beginning of the file, so that it is not fetched again. */
  constructor(
    library: typeof import("./mediabunny.ts"),
    container: LibraryContainer,
    sizeBytes: number,
    head: Uint8Array,
  ) {
    this.#library = library;
    this.#sizeBytes = sizeBytes;
    this.#head = head;
    this.#input = new library.Input({
      formats: [container === "ogg" ? library.OGG : library.WAVE],
      source: new library.CustomSource({
        getSize: () => this.#sizeBytes,
        read: (start, end) => this.#read(start, end),
        maxCacheSize: CACHE_BYTES,
        // They come out of the question that caused them, too.
        handleUnhandledError: () => {},
      }),
    });
  }

  /** Its first audio track; null when it has none that mediabunny knows. */
  track(source: ByteSource, signal: AbortSignal): Promise<InputAudioTrack | null> {
    return this.#ask(source, signal, async () => {
      const track = await this.#input.getPrimaryAudioTrack();
      if (track !== null) this.#sink = new this.#library.EncodedPacketSink(track);
      return track;
    });
  }

  /** The answer of `question`, which may ask `track` anything. Rejects with `bad_media`, or as the source does. */
  ask<T>(source: ByteSource, signal: AbortSignal, question: () => Promise<T>): Promise<T> {
    return this.#ask(source, signal, question);
  }

  /** The packet that is heard at `timeS`; null when there is none. */
  packetAt(timeS: number, source: ByteSource, signal: AbortSignal): Promise<EncodedPacket | null> {
    return this.#ask(source, signal, () => this.#sink!.getPacket(timeS));
  }

  /** The first packet. */
  firstPacket(source: ByteSource, signal: AbortSignal): Promise<EncodedPacket | null> {
    return this.#ask(source, signal, () => this.#sink!.getFirstPacket());
  }

  /** The packet after `packet`. */
  nextPacket(packet: EncodedPacket, source: ByteSource, signal: AbortSignal): Promise<EncodedPacket | null> {
    return this.#ask(source, signal, () => this.#sink!.getNextPacket(packet));
  }

  /** Lets go of what it holds. */
  close(): void {
    this.#input.dispose();
  }

  async #ask<T>(source: ByteSource, signal: AbortSignal, question: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw abortError(signal);
    this.#source = source;
    this.#signal = signal;
    this.#bytes = this.#reads = 0;
    this.#failure = null;
    try {
      return await withSignal(question(), signal);
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      if (this.#failure !== null) throw this.#failure;
      throw new MillraceError("bad_media", "the file is damaged: its packets cannot be found", { cause: error });
    } finally {
      this.#source = null;
    }
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const length = end - start;
    this.#bytes += length;
    if (++this.#reads > MAX_QUESTION_READS || this.#bytes > MAX_QUESTION_BYTES) {
      this.#failure = new MillraceError("bad_media", "the file is damaged: it asks for too much to find a packet");
      throw this.#failure;
    }
    if (end <= this.#head.length) return this.#head.slice(start, end);
    const at = start - this.#blockAt;
    if (at >= 0 && at + length <= this.#block.length) return this.#block.slice(at, at + length);
    const [source, signal] = [this.#source, this.#signal];
    if (source === null || signal === null) throw new MillraceError("closed", "nobody waits for the packet any more");
    try {
      // Only what goes on where the last read ended is likely to go on further.
      const isNext = at >= 0 && at <= this.#block.length;
      const wanted = isNext ? Math.max(length, Math.min(READ_AHEAD_BYTES, this.#sizeBytes - start)) : length;
      const block = await source.read(start, wanted, { signal });
      this.#block = block.slice();
      this.#blockAt = start;
      return this.#block.slice(0, length);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }
}
