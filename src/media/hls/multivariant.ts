/** Multivariant playlists and those of subtitles (RFC 8216, sections 4.3.4 and 3.5). */

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

/** A playlist of one variant, `videoUrl`, with subtitles that are off until the viewer wants them. */
export function renderMultivariant(
  videoUrl: string,
  subtitles: readonly SubtitleRendition[],
  bytesPerSecond: number | null,
): string {
  const bandwidth = bytesPerSecond === null ? UNKNOWN_BANDWIDTH : Math.max(1, Math.ceil(bytesPerSecond * 8 * OVERHEAD));
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
    `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth}${subtitles.length > 0 ? ',SUBTITLES="subtitles"' : ""}`,
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
