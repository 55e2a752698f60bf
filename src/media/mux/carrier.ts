/** What a file's tracks are carried in: MPEG TS, or fragmented MP4 (CMAF) in segments of HLS. */
import { MillraceError } from "../../errors.ts";
import { cmafFormat } from "./cmaf/formats.ts";
import { elementaryFormat } from "./ts/elementary/carry.ts";
import type { MediaIndex } from "../model/timeline.ts";
import type { PresentationOptions, Track } from "../model/types.ts";

/** A format of the output. */
export interface Carrier {
  /** As messages name it. */
  readonly name: string;
  readonly carries: (track: Track) => boolean;
}

/** MPEG TS. */
export const TS: Carrier = { name: "MPEG TS", carries: (track) => elementaryFormat(track) !== null };
/** Fragmented MP4. */
export const FMP4: Carrier = { name: "fragmented MP4", carries: (track) => cmafFormat(track) !== null };

/**
 * Whether browsers refuse a whole film because of `track` in `carrier`: AC-3 in fragmented MP4. In MPEG TS they play the film
 * without it.
 */
export function isRefused(carrier: Carrier, { codec }: Track): boolean {
  return carrier === FMP4 && (codec === "ac3" || codec === "eac3");
}

/** Whether a track can be carried at all. */
export function isCarriable(track: Track): boolean {
  return TS.carries(track) || FMP4.carries(track);
}

/** Whether `track` has access units, by the index. */
export function hasData({ timeline }: MediaIndex, track: number): boolean {
  return timeline.kind === "streamed" ? !timeline.empty?.has(track) : (timeline.tables[track]?.count ?? 0) > 0;
}

/** Whether fragmented MP4 carries tracks of `kind`, and MPEG TS none of them. */
function needsFmp4(index: MediaIndex, kind: Track["kind"]): boolean {
  const tracks = index.tracks.filter((track, i) => track.kind === kind && hasData(index, i));
  return tracks.some(FMP4.carries) && !tracks.some(TS.carries);
}

/** The carrier of a file's pictures: the one that is asked for, else fragmented MP4 where MPEG TS can carry none and it can. */
export function pictureCarrierOf(index: MediaIndex, { fragmented }: Pick<PresentationOptions, "fragmented">): Carrier {
  return fragmented ?? needsFmp4(index, "video") ? FMP4 : TS;
}

/**
 * The carrier of a file whose sound was converted as far as it will be: that of its pictures, or fragmented MP4 where MPEG
 * TS can carry no sound of a film and it can.
 */
export function carrierOf(index: MediaIndex, options: Pick<PresentationOptions, "fragmented">): Carrier {
  const carrier = pictureCarrierOf(index, options);
  if (carrier === FMP4 || options.fragmented !== undefined) return carrier;
  const isFilm = index.tracks.some((track, i) => track.kind === "video" && hasData(index, i) && FMP4.carries(track));
  return isFilm && needsFmp4(index, "audio") ? FMP4 : TS;
}

/**
 * Throws `unsupported_media`, with `hls` in its detail, for a film whose pictures MPEG TS cannot carry and fragmented MP4
 * can: its sound alone does not help the viewer.
 */
export function requirePictures(index: MediaIndex): void {
  if (!needsFmp4(index, "video")) return;
  const codecs = [...new Set(index.tracks.filter(({ kind }) => kind === "video").map(({ codec }) => codec))].join(", ");
  throw new MillraceError(
    "unsupported_media",
    `MPEG TS cannot carry ${codecs}: HLS can (manifest.m3u8), and so can the file itself (getfile)`,
    { detail: { hls: true } },
  );
}
