/**
 * The end of MP4 and Matroska files, where recorders and plain encoders put the index, and of Ogg, whose last page
 * gives its length. It is fetched together with the beginning: it is needed next and would otherwise cost a second
 * round trip and piece.
 */
import type { Swarm, SwarmReader } from "../swarm/types.ts";
import type { MetainfoFile } from "../metainfo/types.ts";

/** How much of a container's end is guessed to be its index. */
interface TailGuess {
  readonly names: RegExp;
  /** Bytes of film for one of the index. */
  readonly filmPerIndex: number;
  readonly minBytes: number;
}

/** Most of an end that is fetched early, bytes: two hours of MP4 have an index of that size. */
const MAX_TAIL_BYTES = 4 * 1024 * 1024;

/** The tail is due this long after the beginning, ms; due at once it would take half of what a slow swarm brings. */
const BEHIND_MS = 0.5;

/**
 * Containers that may have their index at the end. MP4 names every access unit, which takes a thousandth of a film. Matroska
 * names a picture every second or two in 25 bytes: a 20,000th where there are 500 KB of film to each. What is fetched in vain
 * takes the links from the beginning.
 */
const GUESSES: readonly TailGuess[] = [
  { names: /\.(mp4|m4a|m4b|m4v|mov|3gp|f4v|ogg|oga|opus)$/i, filmPerIndex: 1000, minBytes: 64 * 1024 },
  { names: /\.(mkv|mka|mk3d|webm)$/i, filmPerIndex: 10_000, minBytes: 16 * 1024 },
];

/** Bytes at the end of the file that are worth having early; 0 for files without an index there. */
export function indexTailBytes(file: Pick<MetainfoFile, "name" | "sizeBytes">): number {
  const guess = GUESSES.find(({ names }) => names.test(file.name));
  if (guess === undefined) return 0;
  const bytes = Math.ceil(file.sizeBytes / guess.filmPerIndex);
  return Math.min(file.sizeBytes, Math.max(guess.minBytes, Math.min(MAX_TAIL_BYTES, bytes)));
}

/**
 * Begins to fetch that end. Call it once the beginning has been requested, so that the beginning goes first. It gives
 * up when the signal fires or the returned function is called: the beginning has shown that the index is there, or
 * nobody plays any more. Never throws.
 */
export function fetchIndexTail(swarm: Swarm, file: MetainfoFile, signal: AbortSignal): () => void {
  const length = indexTailBytes(file);
  if (length === 0) return () => {};
  let reader: SwarmReader;
  try {
    reader = swarm.openReader(file.index, { readAheadBytes: 0, yieldMs: BEHIND_MS });
  } catch {
    return () => {};
  }
  const over = () => reader.close();
  // Only to have the bytes here: a reader that needs them reads them and gets the errors.
  reader.read(file.sizeBytes - length, length, { signal }).then(over, over);
  return over;
}

/** Whether the movie box comes first in these first bytes of an MP4 file (ISO 14496-12, 4.2). */
export function indexComesFirst(head: Uint8Array): boolean {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  for (let at = 0; at + 8 <= head.length;) {
    const size = view.getUint32(at);
    const type = String.fromCharCode(...head.subarray(at + 4, at + 8));
    if (type === "moov") return true;
    if (type === "mdat" || size < 8) return false;
    at += size;
  }
  return false;
}
