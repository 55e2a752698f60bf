/** Reads one file with mediabunny: it gets bytes from our sources, within bounds, and its errors become ours. */
import { withSignal } from "../../../bytes/deadline.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { abortError, MillraceError } from "../../../errors.ts";
import type { EncodedPacket, EncodedPacketSink, Input, InputAudioTrack } from "./mediabunny.ts";

/** Containers that mediabunny reads for us. */
export type LibraryContainer = "ogg" | "wav";

/** Bytes read at a time when one read follows another. */
const READ_AHEAD_BYTES = 128 * 1024;
/** Most that one query may cost, bytes and reads: comments with pictures take megabytes, a packet at most a page or two. */
const MAX_QUESTION_BYTES = 16 * 1024 * 1024;
const MAX_QUESTION_READS = 4000;
/** Bytes that mediabunny caches. */
const CACHE_BYTES = 512 * 1024;
/** Length of the beginning of the file that is kept because every demuxer reads it again, bytes. */
export const HEAD_BYTES = 64 * 1024;

/** Loads the library when it is first needed. */
export function loadLibrary(): Promise<typeof import("./mediabunny.ts")> {
  return import("./mediabunny.ts");
}

/** A demuxer with its position. It allows only one call at a time. */
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

  /** `head` is the beginning of the file, passed so that it is not fetched again. */
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
        // The call that caused such an error rejects with it, too.
        handleUnhandledError: () => {},
      }),
    });
  }

  /** The first audio track; null when the file has none that mediabunny knows. */
  track(source: ByteSource, signal: AbortSignal): Promise<InputAudioTrack | null> {
    return this.#ask(source, signal, async () => {
      const track = await this.#input.getPrimaryAudioTrack();
      if (track !== null) this.#sink = new this.#library.EncodedPacketSink(track);
      return track;
    });
  }

  /** Runs `question`, which may query `track`, and returns its result. Rejects with `bad_media`, or as the source does. */
  ask<T>(source: ByteSource, signal: AbortSignal, question: () => Promise<T>): Promise<T> {
    return this.#ask(source, signal, question);
  }

  /** The packet that plays at `timeS`; null when there is none. */
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

  /** Releases the demuxer's memory. */
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
      this.#source = this.#signal = null;
    }
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const length = end - start;
    this.#bytes += length;
    if (++this.#reads > MAX_QUESTION_READS || this.#bytes > MAX_QUESTION_BYTES) {
      this.#failure = new MillraceError("bad_media", "the file is damaged: finding a packet takes too many reads");
      throw this.#failure;
    }
    if (end <= this.#head.length) return this.#head.slice(start, end);
    const at = start - this.#blockAt;
    if (at >= 0 && at + length <= this.#block.length) return this.#block.slice(at, at + length);
    const [source, signal] = [this.#source, this.#signal];
    if (source === null || signal === null) throw new MillraceError("closed", "the packet is no longer wanted");
    try {
      // Read ahead only when a read continues where the last one ended; it is then likely to continue further.
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
