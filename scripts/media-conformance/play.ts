/** Plays a file through the engine's media layer: as MPEG TS, as HLS and by byte ranges. */
import { readFileSync } from "node:fs";
import { concatBytes } from "../../src/bytes/hex.ts";
import type { ByteSource, ReadOptions } from "../../src/bytes/source.ts";
import { openMedia } from "../../src/media/open.ts";
import type { HlsPlan, Presentation } from "../../src/media/types.ts";

/** Ranges asked for. */
const RANGES = 12;
/** Longest range, bytes. */
const MAX_RANGE_BYTES = 200_000;
/** Playing one file takes no longer, ms. */
const PLAY_TIMEOUT_MS = 60_000;

/** What a file became. */
export interface Played {
  readonly presentation: Presentation;
  readonly hls: HlsPlan;
  readonly ts: Uint8Array;
  /** In the order of the playlist, fetched in another one. */
  readonly segments: readonly Uint8Array[];
  /** Ranges of the TS that differ from the whole. */
  readonly wrongRanges: readonly string[];
}

/** A file that is there. */
class FileSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #bytes: Uint8Array;

  constructor(path: string) {
    this.#bytes = readFileSync(path);
    this.sizeBytes = this.#bytes.length;
  }

  read(offset: number, length: number, _options: ReadOptions): Promise<Uint8Array> {
    return Promise.resolve(this.#bytes.slice(offset, offset + length));
  }
}

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return concatBytes(parts);
}

/** Numbers in [0, 1), the same in every run (Park and Miller's generator). */
function numbers(): () => number {
  let state = 7;
  return () => (state = state * 48271 % 0x7fffffff) / 0x7fffffff;
}

/** Plays `file`. Rejects as `openMedia` does. */
export async function play(file: string): Promise<Played> {
  const signal = AbortSignal.timeout(PLAY_TIMEOUT_MS);
  const source = new FileSource(file);
  const presentation = await openMedia(source, { fileName: file, signal });
  const ts = await gather(presentation.ts.read(0, null, source, signal));
  const random = numbers();
  const wrongRanges: string[] = [];
  for (let i = 0; i < RANGES && presentation.ts.sizeBytes !== null; i++) {
    const start = Math.floor(random() * ts.length);
    const end = Math.min(ts.length, start + 1 + Math.floor(random() * MAX_RANGE_BYTES));
    const range = await gather(presentation.ts.read(start, end, source, signal));
    const isSame = range.length === end - start && range.every((byte, n) => byte === ts[start + n]);
    if (!isSame) wrongRanges.push(`${start}–${end}`);
  }
  const segments: Uint8Array[] = [];
  const hls = await presentation.planHls(source, signal);
  const order = hls.segments.map(({ index }) => ({ index, place: random() }));
  for (const { index } of order.sort((a, b) => a.place - b.place)) {
    segments[index] = await gather(hls.readSegment(index, source, signal));
  }
  return { presentation, hls, ts, segments, wrongRanges };
}
