/** Walks the top-level boxes of an MP4 file, fetching their headers only, and reads the ones that make the index. */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import { type Box, type BoxHeader, readBoxHeader, viewOf } from "../../../bytes/boxes.ts";

/** Size of a header read, bytes: neighbouring headers are often included, and a swarm fetches a whole piece anyway. */
const PROBE_BYTES = 4096;
/** Largest `moov`: that of a two-hour film has 4 MiB. */
const MAX_MOVIE_BYTES = 64 * 1024 * 1024;
/** Largest of the other boxes: an `mfra` of a day with one fragment per second and 20 tracks. */
const MAX_BOX_BYTES = 16 * 1024 * 1024;
/** Top-level boxes looked at before giving up. */
const MAX_TOP_LEVEL_BOXES = 4096;

/** A top-level box in the file. */
export interface TopLevelBox {
  readonly type: string;
  /** Bytes of the header. */
  readonly offset: number;
  readonly headerBytes: number;
  /** Position after the last byte. */
  readonly end: number;
}

/** Reads headers through one small window. */
export class HeaderReader {
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  #window = new Uint8Array(0);
  #windowStart = 0;

  constructor(source: ByteSource, signal: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
  }

  /** The box at `offset`; null at the end of the file or where no box starts. */
  async boxAt(offset: number): Promise<TopLevelBox | null> {
    const { sizeBytes } = this.#source;
    if (offset + 8 > sizeBytes) return null;
    const needed = Math.min(16, sizeBytes - offset);
    if (offset < this.#windowStart || offset + needed > this.#windowStart + this.#window.length) {
      const length = Math.min(PROBE_BYTES, sizeBytes - offset);
      this.#window = await this.#source.read(offset, length, { signal: this.#signal }) as Uint8Array<ArrayBuffer>;
      this.#windowStart = offset;
    }
    const at = offset - this.#windowStart;
    const header: BoxHeader | null = readBoxHeader(viewOf(this.#window), at, this.#window.length);
    if (header === null) return null;
    const end = header.sizeBytes === null ? sizeBytes : Math.min(sizeBytes, offset + header.sizeBytes);
    return { type: header.type, offset, headerBytes: header.headerBytes, end };
  }

  /** The whole box, from the window if it is there. Rejects with `bad_media` when it is too large. */
  async load(box: TopLevelBox): Promise<Box> {
    const length = box.end - box.offset;
    const limitBytes = box.type === "moov" ? MAX_MOVIE_BYTES : MAX_BOX_BYTES;
    if (length > limitBytes) {
      throw new MillraceError("bad_media", `the ${box.type} box is larger than ${limitBytes / 1024 / 1024} MiB`);
    }
    const at = box.offset - this.#windowStart;
    const bytes = at >= 0 && at + length <= this.#window.length
      ? this.#window.subarray(at, at + length)
      : await this.#source.read(box.offset, length, { signal: this.#signal });
    return { type: box.type, view: viewOf(bytes), start: box.headerBytes, end: length };
  }
}

/** Finds the movie box, wherever it is. Throws `bad_media` when there is none. */
export async function findMovie(reader: HeaderReader): Promise<TopLevelBox> {
  let offset = 0;
  for (let i = 0; i < MAX_TOP_LEVEL_BOXES; i++) {
    const box = await reader.boxAt(offset);
    if (box === null) break;
    if (box.type === "moov") return box;
    offset = box.end;
  }
  throw new MillraceError("bad_media", "no movie box: the file is damaged or incomplete");
}
