/** Multivariant playlists and those of subtitles (RFC 8216, sections 4.3.4 and 3.5). */

import type { HlsPlan, Track } from "../types.ts";

/** Subtitles that players offer. */
export interface SubtitleRendition {
  /** Different from the names of all others. */
  readonly name: string;
  /** BCP 47; null: unknown. */
  readonly language: string | null;
  /** Translates only foreign text and speech of the film ("forced"). */
  readonly isForced: boolean;
  /** Of its playlist; holds no line break. */
  readonly url: string;
}

/** Bit rate that players assume for a film of unknown bit rate, bits per second. */
const UNKNOWN_BANDWIDTH = 5_000_000;
/** MPEG TS on top of the media, at most. */
const OVERHEAD = 1.3;
/** Shorter segments say nothing of the bit rate: a film may end with a picture. */
const LEAST_MEASURED_MS = 500;

/** What a multivariant playlist says of its variant. */
export interface VariantFacts {
  /** Bits per second of the segment with the most, and of all of them. */
  readonly bandwidth: number;
  readonly averageBandwidth: number | null;
  /** Of each track; empty: not told. */
  readonly codecs: readonly string[];
  readonly width: number | null;
  readonly height: number | null;
}

/** The facts of a film with this plan; `bytesPerSecond` is that of the source, null: not known. */
export function variantFacts(
  plan: HlsPlan,
  tracks: readonly Pick<Track, "kind" | "width" | "height">[],
  bytesPerSecond: number | null,
): VariantFacts {
  const bandwidth = bytesPerSecond === null ? UNKNOWN_BANDWIDTH : Math.max(1, Math.ceil(bytesPerSecond * 8 * OVERHEAD));
  if (plan.fragmented === undefined) {
    return { bandwidth, averageBandwidth: null, codecs: [], width: null, height: null };
  }
  const { width = null, height = null } = tracks.find(({ kind }) => kind === "video") ?? {};
  const facts = { codecs: plan.fragmented.codecs, width, height };
  const sizes = plan.segments.map(({ index }) => plan.segmentBytes(index));
  const durationMs = plan.segments.reduce((sum, segment) => sum + segment.durationMs, 0);
  if (sizes.includes(null) || durationMs <= 0) return { ...facts, bandwidth, averageBandwidth: null };
  const averageBandwidth = Math.ceil(sizes.reduce<number>((sum, size) => sum + size!, 0) * 8000 / durationMs);
  const rates = plan.segments.map((segment, n) =>
    segment.durationMs < LEAST_MEASURED_MS ? 0 : Math.ceil(sizes[n]! * 8000 / segment.durationMs)
  );
  return {
    ...facts,
    bandwidth: rates.reduce((most, rate) => Math.max(most, rate), averageBandwidth),
    averageBandwidth,
  };
}

/** A playlist of one variant, `videoUrl`, with subtitles that are off until the viewer wants them. */
export function renderMultivariant(
  videoUrl: string,
  subtitles: readonly SubtitleRendition[],
  { bandwidth, averageBandwidth, codecs, width, height }: VariantFacts,
): string {
  const renditions = subtitles.map(({ name, language, isForced, url }) =>
    [
      "#EXT-X-MEDIA:TYPE=SUBTITLES",
      'GROUP-ID="subtitles"',
      `NAME="${quotable(name)}"`,
      ...language === null ? [] : [`LANGUAGE="${quotable(language)}"`],
      "DEFAULT=NO,AUTOSELECT=NO",
      `FORCED=${isForced ? "YES" : "NO"}`,
      `URI="${url}"`,
    ].join(",")
  );
  return [
    "#EXTM3U",
    "#EXT-X-VERSION:4",
    ...renditions,
    [
      `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth}`,
      ...averageBandwidth === null ? [] : [`AVERAGE-BANDWIDTH=${averageBandwidth}`],
      ...codecs.length === 0 ? [] : [`CODECS="${codecs.join(",")}"`],
      ...width && height ? [`RESOLUTION=${width}x${height}`] : [],
      ...subtitles.length > 0 ? ['SUBTITLES="subtitles"'] : [],
    ].join(","),
    videoUrl,
    "",
  ].join("\n");
}

/** The playlist of subtitles of which segment n lasts `durationsMs[n]` and is at `segmentUrl(n)`. */
export function renderSubtitlePlaylist(durationsMs: readonly number[], segmentUrl: (n: number) => string): string {
  return [
    "#EXTM3U",
    "#EXT-X-VERSION:3",
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.ceil(Math.max(...durationsMs) / 1000))}`,
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-PLAYLIST-TYPE:VOD",
    ...durationsMs.flatMap((ms, n) => [`#EXTINF:${(ms / 1000).toFixed(6)},`, segmentUrl(n)]),
    "#EXT-X-ENDLIST",
    "",
  ].join("\n");
}

/** A quoted string holds neither quotes nor line breaks (section 4.2). */
function quotable(text: string): string {
  // deno-lint-ignore no-control-regex -- those are what it must not hold
  return text.replace(/["\u0000-\u001f\u2028\u2029]/g, " ");
}
