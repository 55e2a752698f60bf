/** Media playlists of broadcasts: a window that slides (RFC 8216, section 6.2.2). */

/** One segment of the window. */
export interface LivePlaylistSegment {
  readonly n: number;
  readonly durationMs: number;
  /** Unix ms. */
  readonly startMs: number;
  /** Media does not continue from the segment before. */
  readonly discontinuity: boolean;
  /** Address of the init segment that it needs, as of `segmentUrl`. Absent: none. */
  readonly initUrl?: string;
}

/** The content of a playlist of a broadcast. */
export interface LivePlaylist {
  /** Never less than a segment rounded to seconds, and always the same (6.2.1). */
  readonly targetDurationS: number;
  /** Oldest first, numbered without a hole. */
  readonly segments: readonly LivePlaylistSegment[];
  /** Discontinuities before the window. */
  readonly droppedDiscontinuities: number;
  /** No segment will follow. */
  readonly ended: boolean;
  /** Where players that load the playlist are to begin, seconds from its beginning; null: they choose. */
  readonly startS: number | null;
}

/** The playlist as text. `segmentUrl` gives the URL of segment `n`; it must hold no line break. */
export function renderLivePlaylist(playlist: LivePlaylist, segmentUrl: (n: number) => string): string {
  const { segments } = playlist;
  const lines = [
    "#EXTM3U",
    // Maps in playlists of whole pictures, as in films.
    `#EXT-X-VERSION:${segments[0]?.initUrl === undefined ? 3 : 7}`,
    `#EXT-X-TARGETDURATION:${playlist.targetDurationS}`,
    `#EXT-X-MEDIA-SEQUENCE:${segments[0]?.n ?? 0}`,
  ];
  if (playlist.droppedDiscontinuities > 0) {
    lines.push(`#EXT-X-DISCONTINUITY-SEQUENCE:${playlist.droppedDiscontinuities}`);
  }
  if (playlist.startS !== null) lines.push(`#EXT-X-START:TIME-OFFSET=${playlist.startS.toFixed(3)}`);
  for (const [i, segment] of segments.entries()) {
    if (segment.discontinuity) lines.push("#EXT-X-DISCONTINUITY");
    const { initUrl } = segment;
    if (initUrl !== undefined && initUrl !== segments[i - 1]?.initUrl) lines.push(`#EXT-X-MAP:URI="${initUrl}"`);
    lines.push(`#EXT-X-PROGRAM-DATE-TIME:${new Date(segment.startMs).toISOString()}`);
    lines.push(`#EXTINF:${(segment.durationMs / 1000).toFixed(6)},`, segmentUrl(segment.n));
  }
  if (playlist.ended) lines.push("#EXT-X-ENDLIST");
  lines.push("");
  return lines.join("\n");
}
