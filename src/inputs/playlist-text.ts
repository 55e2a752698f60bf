/** The text of HLS playlists, read within bounds: long ones few at a time, and none further than it can be used. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { gunzipped } from "../bytes/gunzip.ts";
import { turnWhenDue } from "../bytes/turn.ts";
import { MAX_PLAYLIST_LINES } from "../content/hls-lines.ts";
import { MAX_PLAYLIST_BYTES } from "../content/hls-playlist.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { isPacked } from "./sniff.ts";

/** Playlists from this length on are read a few at a time. Most have some kilobytes; a day of segments has 2 MiB. */
const LONG_BYTES = 64 * 1024;
/**
 * Long playlists that are read at once in the engine. Eight viewers who change between playlists without end had sixteen of them
 * in memory, 4 MiB each and twice that as text.
 */
const LONG_AT_ONCE = 3;
/** A long playlist has this long to come once its turn has begun, ms: a slow server must not keep others from theirs. */
const LONG_MS = 10_000;
/** Each segment has two lines. */
const MAX_SEGMENTS = MAX_PLAYLIST_LINES / 2;

/** The long playlists that are being read, and those that wait. There is one process, so there is one line. */
let reading = 0;
const waiting = new Set<() => void>();

/** The text of a playlist. A long one keeps its place until `release`, because it takes memory until it is parsed. */
export class PlaylistText {
  #text: string;
  #left: () => void;

  /** `left`: called once when the text is no longer needed. */
  constructor(text: string, left: () => void) {
    this.#text = text;
    this.#left = left;
  }

  /** The text; empty after `release`. */
  get text(): string {
    return this.#text;
  }

  /** The text is no longer needed, and nothing keeps it. It may be called again. */
  release(): void {
    this.#text = "";
    this.#left();
    this.#left = () => {};
  }
}

/**
 * The text of the playlist that `body` sends, unpacked where the server did not say that it is packed. Throws `too_large`,
 * `bad_media` where it is packed and damaged, `timeout` where a long one comes too slowly, and what `body` throws.
 */
export async function playlistText(
  clock: Clock,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<PlaylistText> {
  const chunks = body[Symbol.asyncIterator]();
  let late: ReturnType<typeof deadline> | null = null;
  let holds = false;
  const release = () => {
    if (holds) leave();
    holds = false;
  };
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let [bytes, segments] = [0, 0];
  const inTime = <T>(promise: Promise<T>) => withSignal(promise, late?.signal ?? signal);
  try {
    const first = await inTime(chunks.next());
    if (first.done) return new PlaylistText("", release);
    const plain = isPacked(first.value) ? unpacked(first.value, chunks) : chunks;
    for (let one = plain === chunks ? first : await inTime(plain.next()); !one.done; one = await inTime(plain.next())) {
      bytes += one.value.length;
      if (bytes > MAX_PLAYLIST_BYTES) throw new MillraceError("too_large", "the HLS playlist is too large");
      const part = decoder.decode(one.value, { stream: true });
      segments += segmentsIn(part);
      if (segments > MAX_SEGMENTS) throw new MillraceError("too_large", "the HLS playlist has too many segments");
      parts.push(part);
      if (bytes >= LONG_BYTES && late === null) {
        await enter(signal);
        holds = true;
        late = deadline(
          clock,
          LONG_MS,
          signal,
          () => new MillraceError("timeout", "the HLS playlist comes too slowly"),
        );
      }
      // A server may send in the smallest chunks, and all of them have arrived.
      await turnWhenDue(signal);
    }
    return new PlaylistText(parts.join("") + decoder.decode(), release);
  } catch (error) {
    release();
    throw error;
  } finally {
    late?.cancel();
    // Not awaited: it may wait for a server that hangs.
    void chunks.return?.().catch(() => {});
  }
}

/** Resolves when one of the places for long playlists is the caller's. */
async function enter(signal: AbortSignal): Promise<void> {
  if (reading < LONG_AT_ONCE) return void reading++;
  await new Promise<void>((resolve, reject) => {
    const forget = () => {
      waiting.delete(begin);
      reject(abortError(signal));
    };
    const begin = () => {
      signal.removeEventListener("abort", forget);
      resolve();
    };
    signal.addEventListener("abort", forget, { once: true });
    waiting.add(begin);
  });
}

/** Gives the place to the one that has waited longest. */
function leave(): void {
  const [next] = waiting;
  if (next === undefined) return void reading--;
  waiting.delete(next);
  next();
}

/** What gzip packed into `first` and the chunks that follow it. */
function unpacked(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncIterator<Uint8Array> {
  let isFirst = true;
  const packed = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (isFirst) controller.enqueue(first);
      else {
        const { done, value } = await rest.next();
        if (done) controller.close();
        else controller.enqueue(value);
      }
      isFirst = false;
    },
  }, { highWaterMark: 0 });
  const damaged = (cause: unknown) => new MillraceError("bad_media", "the packed HLS playlist is damaged", { cause });
  return gunzipped(packed, damaged)[Symbol.asyncIterator]();
}

function segmentsIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("#EXTINF"); at >= 0; at = text.indexOf("#EXTINF", at + 1)) count++;
  return count;
}
