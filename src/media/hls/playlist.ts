/** Media playlists (RFC 8216). */
import type { HlsPlan } from "../model/types.ts";

/**
 * The whole playlist of a VOD presentation. `segmentUrl` gives the URL of segment `n` or of the init segment; it
 * must hold no line break and no quote. Version 3 is what fractional EXTINF needs (RFC 8216, section 7), 7 what players
 * expect of fragmented MP4. Players begin `fromMs` after the beginning (4.3.5.2), with
 * the last segment for later times; if `isCut`, the playlist has no segment before that one.
 */
export function renderVodPlaylist(
  plan: HlsPlan,
  segmentUrl: (index: number | "init") => string,
  fromMs = 0,
  isCut = false,
): string {
  const startMs = Math.min(fromMs, plan.segments.at(-1)?.startMs ?? 0);
  const first = isCut ? Math.max(0, plan.segments.findLastIndex((segment) => segment.startMs <= startMs)) : 0;
  const isFragmented = plan.fragmented !== undefined;
  const lines = [
    "#EXTM3U",
    `#EXT-X-VERSION:${isFragmented ? 7 : 3}`,
    `#EXT-X-TARGETDURATION:${plan.targetDurationS}`,
    `#EXT-X-MEDIA-SEQUENCE:${first}`,
    "#EXT-X-PLAYLIST-TYPE:VOD",
  ];
  if (isFragmented) lines.push("#EXT-X-INDEPENDENT-SEGMENTS", `#EXT-X-MAP:URI="${segmentUrl("init")}"`);
  if (startMs > 0 && !isCut) lines.push(`#EXT-X-START:TIME-OFFSET=${(startMs / 1000).toFixed(3)}`);
  for (const segment of plan.segments.slice(first)) {
    if (segment.discontinuity && segment.index > first) lines.push("#EXT-X-DISCONTINUITY");
    lines.push(`#EXTINF:${(segment.durationMs / 1000).toFixed(6)},`, segmentUrl(segment.index));
  }
  lines.push("#EXT-X-ENDLIST", "");
  return lines.join("\n");
}
