/** Chooses which tracks are converted to AAC or AC-3, and describes the new tracks. */
import { type Carrier, isRefused, TS } from "../mux/carrier.ts";
import type { Track } from "../model/types.ts";
import { matroskaAudio } from "./matroska-audio.ts";
import { type AudioTarget, type AudioTranscoding, MADE_RATE, type MadeChannels } from "../model/audio-target.ts";

/** Whether `wish` covers `track` of a file of `container` and the encoder can read it. */
export function wantsAac(track: Track, container: string, wish: AudioTranscoding): boolean {
  return asksForAac(track, wish, TS) && matroskaAudio(track, container) !== null;
}

/**
 * Indexes of the tracks to convert: those that `wish` covers, `isReadable` allows and that have data. With `onlyIfSilent`
 * none if the file has other sound that can be carried, or a picture that cannot be.
 */
export function chooseMade(
  tracks: readonly Track[],
  wish: AudioTranscoding,
  hasData: (index: number) => boolean,
  isReadable: (track: Track) => boolean,
  carrier: Carrier = TS,
): number[] {
  const isCarried = (kind: Track["kind"]) => (track: Track, i: number) =>
    track.kind === kind && carrier.carries(track) && hasData(i);
  // Sound alone does not help a viewer who wants the film: refuse such a file with an error that names its codecs.
  const isBlind = tracks.some(({ kind }) => kind === "video") && !tracks.some(isCarried("video"));
  const isCarriedSound = isCarried("audio");
  const isSilent = !tracks.some((track, i) => isCarriedSound(track, i) && !isRefused(carrier, track));
  if (wish.onlyIfSilent && (isBlind || !isSilent)) return [];
  return tracks.flatMap((track, i) => hasData(i) && asksForAac(track, wish, carrier) && isReadable(track) ? [i] : []);
}

/** Whether `wish` covers `track`: all sound except AAC that is carried; MP3 and AC-3 that are carried only when asked for. */
export function asksForAac(track: Track, wish: AudioTranscoding, carrier: Carrier = TS): boolean {
  if (track.kind !== "audio") return false;
  switch (track.codec) {
    case "aac":
      return !carrier.carries(track);
    case "mp3":
    case "mp2":
      return wish.mp3 || !carrier.carries(track);
    case "ac3":
    case "eac3":
      return wish.ac3 || !carrier.carries(track) || isRefused(carrier, track);
    default:
      return true;
  }
}

/** Track of AAC in LATM in a transport stream: `codecId` is its stream type. */
const LATM = "0x11";

/** Whether `wish` covers `track` of a transport stream, and it is not AAC as players know it (in ADTS, not in LATM). */
export function becomesAac(track: Track, wish: AudioTranscoding): boolean {
  return track.codec === "aac" ? track.codecId === LATM : asksForAac(track, wish);
}

/** Channels of the converted `track`: 5.1 if it has at least six, mono if it is mono, else stereo. */
export function madeChannels({ channels }: Track): MadeChannels {
  return channels === 1 ? 1 : channels !== null && channels >= 6 ? 6 : 2;
}

/** Describes `track` converted to `target`. */
export function madeTrack(track: Track, target: AudioTarget): Track {
  const channels = madeChannels(track);
  const { codecId } = track;
  const common = { ...track, isFramed: false, sampleRate: MADE_RATE, channels };
  if (target === "ac3") return { ...common, codec: "ac3", codecId: `AC-3 of ${codecId}`, codecPrivate: null };
  // AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1): object type 2, rate index 3 (48 kHz), the channels.
  const codecPrivate = new Uint8Array([0x11, 0x80 | (channels << 3)]);
  return { ...common, codec: "aac", codecId: `AAC of ${codecId}`, codecPrivate };
}

/** Describes `track` of a transport stream converted to AAC: at most stereo, which fits into its packets. */
export function aacTrack(track: Track): Track {
  return madeTrack({ ...track, channels: track.channels === 1 ? 1 : 2 }, "aac");
}
