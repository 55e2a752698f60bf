/** Which of the engine's outputs a browser plays of a film: the cheapest way that has pictures, sound and subtitles. */

import type { ApiTrack, Lacks } from "./codecs.ts";

/**
 * `hls`: HLS as it is. `aac`: HLS with its sound converted to AAC. `file`: the file itself, without its subtitles. `none`: this
 * browser plays none of it.
 */
export type Way = "hls" | "aac" | "file" | "none";

/** A film as HLS has it. */
export interface Film {
  /** Tracks of the output and of the file; empty where HLS is refused. */
  readonly tracks: readonly ApiTrack[];
  readonly sourceTracks: readonly ApiTrack[];
  /** The engine cannot make HLS of it. */
  readonly isRefused: boolean;
}

/** What a browser can do with a film. */
export interface Abilities {
  /** What it lacks for the output. */
  readonly lacks: Lacks;
  readonly playsHls: boolean;
  /** Pictures and sound of the file itself play. */
  readonly playsFile: boolean;
}

/** The cheapest way that has pictures and sound, and subtitles if there is one. `isConverted`: null: nobody has asked for AAC. */
export function wayOf(
  { tracks, sourceTracks, isRefused }: Film,
  { lacks, playsHls, playsFile }: Abilities,
  isConverted: boolean | null,
): Way {
  if (isRefused || !playsHls || lacks.picture !== "") return playsFile ? "file" : "none";
  const hasSound = (all: readonly ApiTrack[]) => all.some(({ kind }) => kind === "audio");
  const isMute = lacks.sound !== "" || (hasSound(sourceTracks) && !hasSound(tracks));
  if (!isMute || isConverted === false) return "hls";
  // The file has no subtitles in a browser, so the engine's work comes first.
  if (isConverted === null) return "aac";
  return playsFile ? "file" : "hls";
}

/** MIME types by which browsers are asked for containers, by extension. */
const CONTAINERS: Readonly<Record<string, string>> = {
  mkv: "video/x-matroska",
  webm: "video/webm",
  mp4: "video/mp4",
  m4v: "video/mp4",
  mov: "video/mp4",
  m4a: "audio/mp4",
  mka: "audio/webm",
  mp3: "audio/mpeg",
  flac: "audio/flac",
  ogg: "audio/ogg",
  oga: "audio/ogg",
  opus: "audio/ogg",
  wav: "audio/wav",
};

/** Codecs that only files have. Browsers that play a container play PCM in it, and know no name for it there. */
const NAMES: Readonly<Record<string, string>> = { vorbis: "vorbis", mp3: "mp3", pcm: "" };

/**
 * The MIME type of a file with these tracks: its first picture and its first sound, which browsers play. null: browsers are
 * not asked for it.
 */
export function fileType(filename: string, tracks: readonly ApiTrack[]): string | null {
  const container = CONTAINERS[/\.(\w+)$/.exec(filename)?.[1]?.toLowerCase() ?? ""];
  if (container === undefined) return null;
  const played = ["video", "audio"].flatMap((kind) => tracks.find((track) => track.kind === kind) ?? []);
  const names = played.map(({ codec, codecs }) => codecs ?? NAMES[codec]);
  if (names.includes(undefined)) return null;
  const told = names.filter((name) => name !== "");
  return told.length === 0 ? container : `${container}; codecs="${told.join(", ")}"`;
}
