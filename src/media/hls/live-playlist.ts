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

/** A part as a playlist lists it. */
export interface LivePlaylistPart {
  readonly durationMs: number;
  readonly isIndependent: boolean;
}

/** What low-latency HLS adds (RFC 8216bis). */
export interface LivePlaylistParts {
  /** Longest part, s. */
  readonly targetS: number;
  /** Segments that begin longer ago than this, s, may be left out of an update. */
  readonly skipS: number;
  /** Parts of the newest segments, by number. */
  readonly of: ReadonlyMap<number, readonly LivePlaylistPart[]>;
  /** The segment that grows; null: none will. */
  readonly growing: {
    readonly n: number;
    readonly parts: readonly LivePlaylistPart[];
    /** Of its beginning; null: it has no part yet. */
    readonly facts: Omit<LivePlaylistSegment, "n" | "durationMs"> | null;
    /** The part that comes next. */
    readonly hint: { readonly n: number; readonly p: number };
  } | null;
}

/** How a low-latency playlist is written. */
export interface PartsForm {
  /** Address of part `p` of segment `n`; it must hold no line break. */
  readonly partUrl: (n: number, p: number) => string;
  /** Leaves out what players know from before. */
  readonly isUpdate: boolean;
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
  /** Absent: ordinary HLS. */
  readonly parts?: LivePlaylistParts;
}

/**
 * The playlist as text. `segmentUrl` gives the URL of segment `n`; it must hold no line break. `form`: of a playlist with
 * parts.
 */
export function renderLivePlaylist(
  playlist: LivePlaylist,
  segmentUrl: (n: number) => string,
  form?: PartsForm,
): string {
  const { segments, parts } = playlist;
  const skipped = parts === undefined || form?.isUpdate !== true ? 0 : skippable(segments, parts);
  const lines = [
    "#EXTM3U",
    // Maps in playlists of whole pictures, as in films; an update has its own.
    `#EXT-X-VERSION:${skipped > 0 ? 9 : segments[0]?.initUrl === undefined && parts === undefined ? 3 : 7}`,
    `#EXT-X-TARGETDURATION:${playlist.targetDurationS}`,
    `#EXT-X-MEDIA-SEQUENCE:${segments[0]?.n ?? parts?.growing?.n ?? 0}`,
  ];
  if (parts !== undefined) lines.push(...partFacts(parts));
  if (playlist.droppedDiscontinuities > 0) {
    lines.push(`#EXT-X-DISCONTINUITY-SEQUENCE:${playlist.droppedDiscontinuities}`);
  }
  if (playlist.startS !== null) lines.push(`#EXT-X-START:TIME-OFFSET=${playlist.startS.toFixed(3)}`);
  if (skipped > 0) lines.push(`#EXT-X-SKIP:SKIPPED-SEGMENTS=${skipped}`);
  const begin = (segment: Omit<LivePlaylistSegment, "n" | "durationMs">, before: string | undefined) => {
    if (segment.discontinuity) lines.push("#EXT-X-DISCONTINUITY");
    const { initUrl } = segment;
    if (initUrl !== undefined && initUrl !== before) lines.push(`#EXT-X-MAP:URI="${initUrl}"`);
    lines.push(`#EXT-X-PROGRAM-DATE-TIME:${new Date(segment.startMs).toISOString()}`);
  };
  const list = (n: number, all: readonly LivePlaylistPart[]) => {
    for (const [p, part] of all.entries()) lines.push(partLine(part, form!.partUrl(n, p)));
  };
  for (const [i, segment] of segments.entries()) {
    if (i < skipped) continue;
    begin(segment, segments[i - 1]?.initUrl);
    list(segment.n, parts?.of.get(segment.n) ?? []);
    lines.push(`#EXTINF:${(segment.durationMs / 1000).toFixed(6)},`, segmentUrl(segment.n));
  }
  const growing = parts?.growing ?? null;
  if (growing !== null) {
    const { n, parts: all, facts, hint } = growing;
    if (facts !== null) begin(facts, segments.at(-1)?.initUrl);
    list(n, all);
    lines.push(`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${form!.partUrl(hint.n, hint.p)}"`);
  }
  if (playlist.ended) lines.push("#EXT-X-ENDLIST");
  lines.push("");
  return lines.join("\n");
}

/** How many of the first segments an update may leave out: those that begin before the boundary (4.4.5.2). */
function skippable(segments: readonly LivePlaylistSegment[], { skipS }: LivePlaylistParts): number {
  const last = segments.at(-1);
  if (last === undefined) return 0;
  const untilMs = last.startMs + last.durationMs - skipS * 1000;
  return segments.filter(({ startMs, durationMs }) => startMs + durationMs <= untilMs).length;
}

function partFacts({ targetS, skipS }: LivePlaylistParts): string[] {
  // Three parts is the least (4.4.3.8).
  const control = `CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${(3 * targetS).toFixed(3)},CAN-SKIP-UNTIL=${skipS.toFixed(1)}`;
  return [`#EXT-X-SERVER-CONTROL:${control}`, `#EXT-X-PART-INF:PART-TARGET=${targetS.toFixed(3)}`];
}

function partLine({ durationMs, isIndependent }: LivePlaylistPart, url: string): string {
  return `#EXT-X-PART:DURATION=${(durationMs / 1000).toFixed(6)},URI="${url}"${
    isIndependent ? ",INDEPENDENT=YES" : ""
  }`;
}
