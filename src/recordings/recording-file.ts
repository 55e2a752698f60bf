/**
 * One recording on disk: its segments one after the other in a transport stream, and an index that says where each of them
 * is. A segment is written before its line of the index, so what the index names is there, however the engine ended.
 */
import * as z from "zod";
import { hasCode, MillraceError } from "../errors.ts";
import type { FileHandle, FilePort } from "../ports.ts";

/** Longest index, bytes: a day of segments of a second has 5 MiB. */
const MAX_INDEX_BYTES = 8 * 1024 * 1024;
/** Read from the disk at once for a player, bytes. */
const READ_BYTES = 256 * 1024;

/** A segment in the file. */
export interface RecordedSegment {
  readonly n: number;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** When it was sent, Unix ms. */
  readonly startMs: number;
  /** Media does not continue from the segment before. */
  readonly discontinuity: boolean;
}

const LINE = z.tuple([
  z.int().min(1),
  z.number().min(0).max(3_600_000),
  z.int(),
  z.union([z.literal(0), z.literal(1)]),
]);

/** A transport stream that grows, or that has grown to its end. */
export class RecordingFile {
  readonly #files: FilePort;
  readonly #path: string;
  readonly segments: RecordedSegment[] = [];
  #sizeBytes = 0;
  #indexBytes = 0;
  #writing: { readonly media: FileHandle; readonly index: FileHandle } | null = null;
  #waiting = new Set<() => void>();

  private constructor(files: FilePort, path: string) {
    this.#files = files;
    this.#path = path;
  }

  /** That of `path` (without an extension), with what an earlier run recorded; nothing is made yet. */
  static async load(files: FilePort, path: string): Promise<RecordingFile> {
    const file = new RecordingFile(files, path);
    try {
      const { sizeBytes } = await files.info(file.mediaPath);
      const text = new TextDecoder().decode(await files.readFile(file.#indexPath, { maxBytes: MAX_INDEX_BYTES }));
      file.#read(text, sizeBytes);
    } catch (error) {
      if (!hasCode(error, "not_found")) throw error;
    }
    return file;
  }

  /** Where its media is. */
  get mediaPath(): string {
    return `${this.#path}.ts`;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get durationMs(): number {
    return this.segments.reduce((sum, { durationMs }) => sum + durationMs, 0);
  }

  get #indexPath(): string {
    return `${this.#path}.index`;
  }

  /** Adds a segment. Rejects with `disk_full` or `io`; what was there before stays. */
  async append(
    bytes: Uint8Array,
    facts: Pick<RecordedSegment, "durationMs" | "startMs" | "discontinuity">,
  ): Promise<void> {
    this.#writing ??= {
      media: await this.#files.open(this.mediaPath, "write"),
      index: await this.#files.open(this.#indexPath, "write"),
    };
    const { media, index } = this.#writing;
    const { discontinuity } = facts;
    // As the index keeps them: a segment has the same times after a restart.
    const [durationMs, startMs] = [Math.round(facts.durationMs), Math.round(facts.startMs)];
    await media.write(bytes, this.#sizeBytes);
    const line = [bytes.length, durationMs, startMs, Number(discontinuity)];
    const text = new TextEncoder().encode(`${JSON.stringify(line)}\n`);
    if (this.#indexBytes + text.length > MAX_INDEX_BYTES) {
      throw new MillraceError("too_large", "the recording is too long");
    }
    await index.write(text, this.#indexBytes);
    this.#indexBytes += text.length;
    this.#add(bytes.length, { durationMs, startMs, discontinuity });
    this.wake();
  }

  /** Closes both files, cut to the segments that the index names. A later `append` opens them again and continues there. */
  async close(): Promise<void> {
    const writing = this.#writing;
    this.#writing = null;
    // What came after the last line of the index belongs to no segment.
    await writing?.media.truncate(this.#sizeBytes).catch(() => {});
    await Promise.allSettled([writing?.media.close(), writing?.index.close()]);
    this.wake();
  }

  async remove(): Promise<void> {
    await this.close();
    for (const path of [this.#indexPath, this.mediaPath]) await this.#files.remove(path);
  }

  /** Lets readers at the end look again. */
  wake(): void {
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of all) wake();
  }

  /** The bytes `[from, to)`; where `to` is not here yet, those that come, as long as `grows` says that some may. */
  async *read(from: number, to: number, grows: () => boolean, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const handle = await this.#files.open(this.mediaPath, "read");
    const wake = () => this.wake();
    signal.addEventListener("abort", wake);
    try {
      for (let at = from; at < to && !signal.aborted;) {
        const length = Math.min(READ_BYTES, to - at, this.#sizeBytes - at);
        if (length <= 0) {
          if (!grows()) return;
          await new Promise<void>((resolve) => this.#waiting.add(resolve));
          continue;
        }
        const bytes = new Uint8Array(length);
        const count = await handle.read(bytes, at);
        if (count === 0) return;
        at += count;
        yield bytes.subarray(0, count);
      }
    } finally {
      signal.removeEventListener("abort", wake);
      await handle.close();
    }
  }

  #read(text: string, fileBytes: number): void {
    const lines = text.split("\n");
    // The last one is empty, or was cut short.
    for (const line of lines.slice(0, -1)) {
      const parsed = parseLine(line);
      if (parsed === null || this.#sizeBytes + parsed[0] > fileBytes) return;
      const [sizeBytes, durationMs, startMs, isCut] = parsed;
      this.#add(sizeBytes, { durationMs, startMs, discontinuity: isCut === 1 });
      this.#indexBytes += new TextEncoder().encode(line).length + 1;
    }
  }

  #add(sizeBytes: number, facts: Pick<RecordedSegment, "durationMs" | "startMs" | "discontinuity">): void {
    this.segments.push({ n: this.segments.length, offset: this.#sizeBytes, sizeBytes, ...facts });
    this.#sizeBytes += sizeBytes;
  }
}

function parseLine(line: string): z.output<typeof LINE> | null {
  try {
    return LINE.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
