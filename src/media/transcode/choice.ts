/** Which tracks become AAC, and what such a track looks like. */
import { elementaryFormat } from "../mux/ts/elementary/carry.ts";
import type { Track } from "../types.ts";
import { matroskaAudio } from "./matroska-audio.ts";
import { AAC_RATE, type AudioTranscoding } from "./types.ts";

/** Whether `track` of a file of `container` is to become AAC, and can be read by an encoder. */
export function wantsAac(track: Track, container: string, wish: AudioTranscoding): boolean {
  return asksForAac(track, wish) && matroskaAudio(track, container) !== null;
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

/** Channels of the AAC of `track`: what has more than one becomes stereo. */
export function aacChannels(track: Track): 1 | 2 {
  return track.channels === 1 ? 1 : 2;
}

/** The AAC track that `track` becomes. */
export function aacTrack(track: Track): Track {
  const channels = aacChannels(track);
  // AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1): object type 2, rate index 3 (48 kHz), the channels.
  const codecPrivate = new Uint8Array([0x11, 0x80 | (channels << 3)]);
  const made = { codec: "aac", codecId: `AAC of ${track.codecId}`, codecPrivate, isFramed: false } as const;
  return { ...track, ...made, sampleRate: AAC_RATE, channels };
}
