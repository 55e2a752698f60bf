/** The clips in test/fixtures, by what can play them. */
import { readdirSync, readFileSync } from "node:fs";

const DIRECTORY = new URL("../fixtures/", import.meta.url);

/** Names of all clips (no transport files), sorted. */
export const CLIPS: readonly string[] = readdirSync(DIRECTORY).filter((name) => !/\.(torrent|json|md)$/.test(name))
  .sort();

/** Clips that MPEG TS cannot carry: refused with 415. */
export const UNCARRIABLE: ReadonlySet<string> = new Set([
  "webm-vp9-opus.webm",
  "audio.flac",
  "audio.opus",
  "audio-vorbis.ogg",
  "audio.wav",
]);

/** Clips that play. */
export const PLAYABLE: readonly string[] = CLIPS.filter((name) => !UNCARRIABLE.has(name));

/** A clip's bytes. */
export function clip(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(name, DIRECTORY)));
}

/** A clip's path. */
export function clipPath(name: string): string {
  return new URL(name, DIRECTORY).pathname;
}
