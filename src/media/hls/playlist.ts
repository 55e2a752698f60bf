/** Media playlists (RFC 8216). */
import type { HlsPlan } from "../types.ts";

/**
 * The whole playlist of a VOD presentation. `segmentUrl` gives the URL of segment `n`; it must hold no line break.
 * Version 3 is what fractional EXTINF needs (RFC 8216, section 7).
 */
export function renderVodPlaylist(plan: HlsPlan, segmentUrl: (index: number) => string): string {
  const lines = [
    "#EXTM3U",
    "#EXT-X-VERSION:3",
    `#EXT-X-TARGETDURATION:${plan.targetDurationS}`,
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-PLAYLIST-TYPE:VOD",
  ];
  for (const segment of plan.segments) {
    if (segment.discontinuity) lines.push("#EXT-X-DISCONTINUITY");
    lines.push(`#EXTINF:${(segment.durationMs / 1000).toFixed(6)},`, segmentUrl(segment.index));
  }
  lines.push("#EXT-X-ENDLIST", "");
  return lines.join("\n");
}
