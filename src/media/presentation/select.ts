/** Which tracks the output carries, and in which order (`preferred_audio_language`). */
import { MillraceError } from "../../errors.ts";
import { languageRank, languagesOf } from "../model/language.ts";
import { type Carrier, FMP4, isRefused, TS } from "../mux/carrier.ts";
import type { Track } from "../model/types.ts";

/** More audio tracks than this are left out: a program map section has 1021 bytes. */
const MAX_AUDIO_TRACKS = 32;
/** Subtitles beyond are left out: those of 30 languages, and some for people who hear badly. */
const MAX_SUBTITLE_TRACKS = 48;
/** Bytes of a program map section for sound and subtitles, and what each of them takes at most. */
const MAP_BYTES = 960;
const MAP_SOUND_BYTES = 17;
const MAP_SUBTITLE_BYTES = 15;

/** Outcome of `selectTracks`. */
export interface TrackSelection {
  /** Indexes into the tracks, in PMT order: video, then audio, the preferred one first, then subtitles. */
  readonly indexes: readonly number[];
  /** Indexes of all sounds that the carrier carries, the preferred one first; at most 32. */
  readonly sounds: readonly number[];
  readonly warnings: readonly string[];
}

/**
 * How well a track suits the wish: the place of its language in the list; the default track comes next. Of those that
 * nobody asked for AC-3 in fragmented MP4 comes last: browsers refuse the whole film with it.
 */
function rank(track: Track, preferred: readonly string[], carrier: Carrier): number {
  const place = languageRank(track.language, preferred);
  if (place < preferred.length) return place;
  return place + (track.isDefault ? 0 : 1) + (isRefused(carrier, track) ? 2 : 0);
}

/**
 * Picks one video track (the default one that `carrier` carries) and all audio tracks that it carries; of fragmented MP4 the
 * first of them, because browsers play one in a segment. MPEG TS has the subtitles, too, that are pictures. `usable` says
 * whether a track has data at all. Throws `unsupported_media`, naming the codecs, when nothing playable remains; if all
 * of it is sound, the message ends with `advice`.
 */
export function selectTracks(
  tracks: readonly Track[],
  preferredAudioLanguage: string | null | undefined,
  usable: (index: number) => boolean,
  advice = "",
  carrier: Carrier = TS,
): TrackSelection {
  const preferred = languagesOf(preferredAudioLanguage);
  const warnings: string[] = [];
  const videos: number[] = [];
  const audios: number[] = [];
  const refused: string[] = [];
  for (const [index, track] of tracks.entries()) {
    if (track.kind !== "video" && track.kind !== "audio") continue;
    if (!carrier.carries(track)) {
      refused.push(track.codec === "other" ? track.codecId : track.codec);
      warnings.push(`${track.kind} track ${track.id} left out: ${carrier.name} cannot carry ${describe(track)}`);
    } else if (usable(index)) {
      (track.kind === "video" ? videos : audios).push(index);
    } else {
      warnings.push(`${track.kind} track ${track.id} left out: it is empty or damaged`);
    }
  }
  // Stable sorts: file order decides between equals.
  videos.sort((a, b) => Number(tracks[b]!.isDefault) - Number(tracks[a]!.isDefault));
  audios.sort((a, b) => rank(tracks[a]!, preferred, carrier) - rank(tracks[b]!, preferred, carrier));
  const sounds = audios.slice(0, MAX_AUDIO_TRACKS);
  for (const index of videos.splice(1)) warnings.push(`video track ${tracks[index]!.id} left out: one is carried`);
  for (const index of audios.splice(carrier === FMP4 ? 1 : MAX_AUDIO_TRACKS)) {
    warnings.push(`audio track ${tracks[index]!.id} left out: ${carrier === FMP4 ? "one is carried" : "too many"}`);
  }
  const subtitles = videos.length === 0 ? [] : subtitlesOf(tracks, carrier).filter(usable);
  const mostSubtitles = Math.floor((MAP_BYTES - MAP_SOUND_BYTES * audios.length) / MAP_SUBTITLE_BYTES);
  for (const index of subtitles.splice(Math.min(MAX_SUBTITLE_TRACKS, mostSubtitles))) {
    warnings.push(`subtitle track ${tracks[index]!.id} left out: too many`);
  }
  const indexes = [...videos, ...audios, ...subtitles];
  if (indexes.length === 0) {
    const hint = tracks.some(({ kind }) => kind === "video") ? "" : advice;
    const message = `${carrier.name} cannot carry ${refused.join(", ")}${hint}`;
    throw refused.length > 0
      ? new MillraceError("unsupported_media", message, { detail: { refused } })
      : new MillraceError("bad_media", "the file has no video or audio that can be read");
  }
  return { indexes, sounds, warnings };
}

function subtitlesOf(tracks: readonly Track[], carrier: Carrier): number[] {
  return [...tracks.keys()].filter((i) => tracks[i]!.kind === "subtitle" && carrier.carries(tracks[i]!));
}

function describe(track: Track): string {
  if (track.codec === "other") return track.codecId;
  return `${track.codec}${FAMILIAR.has(track.codec) ? " with its codec data" : ""}`;
}

/** Codecs that are refused only because of their codec data. */
const FAMILIAR: ReadonlySet<string> = new Set(["h264", "hevc", "aac"]);
