/** The segments of one playlist as they come: the part that is theirs, decrypted, as transport packets. */
import { readBounded } from "../bytes/read-bounded.ts";
import type { MediaList, ResourceRange } from "../content/hls-playlist.ts";
import { MillraceError } from "../errors.ts";
import { SegmentKeys } from "./hls-key.ts";
import { checkedHead, isTransportStream } from "./sniff.ts";
import type { SourceWeb } from "./web.ts";

/** Largest segment, bytes: ten seconds at 50 Mb/s. It is sent as it comes; one that goes on is left at this point. */
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Largest initialization section, bytes; real ones have one or two kilobytes. */
const MAX_MAP_BYTES = 1024 * 1024;

/** A segment of a playlist. */
export type Segment = MediaList["segments"][number];

/** Makes transport packets of segments that have none. */
export interface SegmentConverter {
  /**
   * Whether it takes the segment that begins with `head`, which is next; `map` is what the playlist says it needs before its
   * own bytes, null for nothing. Throws `unsupported_media` with the reason why it cannot.
   */
  begin(head: Uint8Array, map: Uint8Array | null): boolean;
  /** The packets that the next bytes of that segment complete. Throws as `begin`, or `bad_media`. */
  push(bytes: Uint8Array): Uint8Array;
  /** The segment is complete: the packets of the rest. */
  end(): Uint8Array;
  /** Gives up what it holds: nothing follows. */
  close(): void;
}

/** Reads the segments of one playlist. */
export class SegmentReader {
  readonly #web: SourceWeb;
  readonly #keys: SegmentKeys;
  readonly #converter: SegmentConverter | null;
  /** Throws when nothing was sent before; else the segment alone is left out. */
  readonly #refuse: (reason: string) => void;
  readonly #signal: AbortSignal;
  /** The pictures of which it reads the sound are converted. */
  readonly #isBesideConverted: boolean;
  /** The present segment has to be converted. */
  #isConverted = false;
  /** The initialization section that was used last. */
  #map: { readonly name: string; readonly bytes: Uint8Array } | null = null;

  constructor(
    web: SourceWeb,
    converter: SegmentConverter | null,
    refuse: (reason: string) => void,
    signal: AbortSignal,
    isBesideConverted = false,
  ) {
    this.#isBesideConverted = isBesideConverted;
    this.#web = web;
    this.#keys = new SegmentKeys((at) => web.open(at, {}, signal));
    this.#converter = converter;
    this.#refuse = refuse;
    this.#signal = signal;
  }

  /** Segments are made into transport packets, and were none. */
  get isConverted(): boolean {
    return this.#isConverted;
  }

  /** Transport packets of bytes of the present segment. */
  packets(bytes: Uint8Array): Uint8Array {
    return this.#isConverted ? this.#converter!.push(bytes) : bytes;
  }

  /** The rest of the packets of the present segment, which is complete. */
  end(): Uint8Array {
    return this.#isConverted ? this.#converter!.end() : new Uint8Array();
  }

  /** Nothing more is read. */
  close(): void {
    this.#converter?.close();
  }

  /** The bytes of a segment from `from` on: those before were read when an earlier try broke off. */
  async *bytes(segment: Segment, from: number): AsyncGenerator<Uint8Array, void> {
    const { url, range, key } = segment;
    // Of a segment that broke off, the same bytes come again, and those that were used are left out.
    const map = from > 0 ? null : await this.#mapOf(segment);
    const body = await this.#part(url, range, MAX_SEGMENT_BYTES);
    const plain = key === null ? body : this.#keys.decrypted(body, key);
    const checked = from > 0 ? plain : checkedHead(plain, (head) => this.#begin(head, map));
    yield* slice(checked, from, Infinity);
  }

  #begin(head: Uint8Array, map: Uint8Array | null): void {
    this.#isConverted = false;
    if (map === null && isTransportStream(head)) return this.#requireOneClock();
    let reason = "its segments are no MPEG TS";
    try {
      this.#isConverted = this.#converter?.begin(head, map) === true;
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      reason = error.message;
    }
    if (this.#isConverted) return;
    this.#refuse(reason);
    throw new MillraceError("bad_media", reason);
  }

  /** Throws where a transport stream is beside pictures whose times were moved, as those of fragmented MP4 are, by 1.4 s. */
  #requireOneClock(): void {
    if (!this.#isBesideConverted) return;
    const reason = "its pictures are fragmented MP4 and their sound is MPEG TS";
    this.#refuse(reason);
    throw new MillraceError("unsupported_media", reason);
  }

  async #mapOf({ map, key }: Segment): Promise<Uint8Array | null> {
    if (map === null) return null;
    if (this.#converter === null) {
      const reason = "it is fragmented MP4, not MPEG TS";
      this.#refuse(reason);
      throw new MillraceError("bad_media", reason);
    }
    const name = `${map.url} ${map.range?.offset} ${map.range?.length}`;
    if (this.#map?.name === name) return this.#map.bytes;
    const tooLarge = () => new MillraceError("too_large", "the initialization section of the segments is too large");
    let bytes = await readBounded(await this.#part(map.url, map.range, MAX_MAP_BYTES), MAX_MAP_BYTES, tooLarge);
    // The playlist's text does not say here which key held where the section was named.
    if (key !== null && !isMovie(bytes)) {
      bytes = await readBounded(this.#keys.decrypted(slice([bytes], 0, Infinity), key), MAX_MAP_BYTES, tooLarge);
    }
    this.#map = { name, bytes };
    return bytes;
  }

  /** The bytes of `range` at `url`, or all of them. */
  async #part(url: string, range: ResourceRange | null, maxBytes: number): Promise<AsyncIterable<Uint8Array>> {
    const headers: Record<string, string> = range === null
      ? {}
      : { range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
    const opened = await this.#web.open(url, { headers, maxBytes }, this.#signal);
    // A server without ranges sends all of it.
    const isWhole = range !== null && opened.status === 200;
    return isWhole ? slice(opened.body, range.offset, range.offset + range.length) : opened.body;
  }
}

/** True for boxes with which an initialization section begins. */
function isMovie(bytes: Uint8Array): boolean {
  return ["ftyp", "styp", "moov"].includes(new TextDecoder().decode(bytes.subarray(4, 8)));
}

/** The bytes `[from, to)` of what `chunks` are together. */
async function* slice(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array, void> {
  let at = 0;
  for await (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, from - at), Math.max(0, to - at));
    at += chunk.length;
    if (part.length > 0) yield part;
    if (at >= to) return;
  }
}
