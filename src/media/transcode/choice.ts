/** Which tracks become AAC, and what such a track looks like. */
import { elementaryFormat } from "../mux/ts/elementary/carry.ts";
import type { Track } from "../types.ts";
import { matroskaAudio } from "./matroska-audio.ts";
import { type AudioTarget, type AudioTranscoding, MADE_RATE, type MadeChannels } from "./types.ts";

/** Whether `track` of a file of `container` is to become AAC, and can be read by an encoder. */
export function wantsAac(track: Track, container: string, wish: AudioTranscoding): boolean {
  return asksForAac(track, wish) && matroskaAudio(track, container) !== null;
}

/**
 * Indexes of the tracks that are to be made of others: what `wish` takes in and `isReadable` allows. None where only silent
 * files are to be helped and this one is not silent, or its picture can't be carried. `hasData`: the track is not empty.
 */
export function chooseMade(
  tracks: readonly Track[],
  wish: AudioTranscoding,
  hasData: (index: number) => boolean,
  isReadable: (track: Track) => boolean,
): number[] {
  const isCarried = (kind: Track["kind"]) => (track: Track, i: number) =>
    track.kind === kind && elementaryFormat(track) !== null && hasData(i);
  // Sound alone does not help a viewer who wants the film: refuse such a file with an error that names its codecs.
  const isBlind = tracks.some(({ kind }) => kind === "video") && !tracks.some(isCarried("video"));
  if (wish.onlyIfSilent && (isBlind || tracks.some(isCarried("audio")))) return [];
  return tracks.flatMap((track, i) => hasData(i) && asksForAac(track, wish) && isReadable(track) ? [i] : []);
}

/** Whether `wish` takes in `track`: all sound that is not AAC, MP3 and AC-3 only when asked for. */
export function asksForAac(track: Track, wish: AudioTranscoding): boolean {
  if (track.kind !== "audio") return false;
  switch (track.codec) {
    case "aac":
      return elementaryFormat(track) === null;
    case "mp3":
    case "mp2":
      return wish.mp3;
    case "ac3":
    case "eac3":
      return wish.ac3;
    default:
      return true;
  }
}

/** Channels of what `track` becomes: 5.1 where it has that many, else stereo, or mono where it is. */
export function madeChannels({ channels }: Track): MadeChannels {
  return channels === 1 ? 1 : channels !== null && channels >= 6 ? 6 : 2;
}

/** The track of `target` that `track` becomes. */
export function madeTrack(track: Track, target: AudioTarget): Track {
  const channels = madeChannels(track);
  const { codecId } = track;
  const common = { ...track, isFramed: false, sampleRate: MADE_RATE, channels };
  if (target === "ac3") return { ...common, codec: "ac3", codecId: `AC-3 of ${codecId}`, codecPrivate: null };
  // AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1): object type 2, rate index 3 (48 kHz), the channels.
  const codecPrivate = new Uint8Array([0x11, 0x80 | (channels << 3)]);
  return { ...common, codec: "aac", codecId: `AAC of ${codecId}`, codecPrivate };
}

/** The AAC track that `track` of a transport stream becomes: no more than stereo fits where its packets were. */
export function aacTrack(track: Track): Track {
  return madeTrack({ ...track, channels: track.channels === 1 ? 1 : 2 }, "aac");
}
