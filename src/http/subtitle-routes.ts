/** HLS with subtitles, our addition: a multivariant playlist, a playlist for each of the subtitles, and their WebVTT. */
import { renderMultivariant, renderSubtitlePlaylist, variantFacts } from "../media/hls/multivariant.ts";
import type { PlaybackSession } from "../playback/session.ts";
import type { AnySession } from "../playback/sessions.ts";
import { subtitlesOf, type SubtitleTexts } from "../playback/subtitles.ts";
import type { HttpContext } from "./context.ts";

const PLAYLIST_FIELDS = { "content-type": "application/vnd.apple.mpegurl", "cache-control": "no-cache" };

/** The multivariant playlist, if the start asked for subtitles and there are some; else null. */
export function multivariantOf(
  c: HttpContext,
  prefix: string,
  session: AnySession,
): Response | null {
  if (c.req.query("subtitles") !== "1" || session.kind !== "file" || session.hls === null) return null;
  const subtitles = subtitlesOf(session);
  if (subtitles.length === 0) return null;
  session.touch();
  const url = playlistUrl(c, prefix, session);
  const startFrom = c.req.query("start_from");
  const text = renderMultivariant(
    startFrom === undefined ? url : `${url}?start_from=${encodeURIComponent(startFrom)}`,
    subtitles.map((one, n) => ({ ...one, url: `${url}?subtitle=${n}` })),
    variantFacts(session.hls, session.presentation?.outputTracks ?? [], session.presentation?.bytesPerSecond ?? null),
  );
  return new Response(text, { headers: PLAYLIST_FIELDS });
}

/** The playlist of the subtitles that `subtitle` numbers; null when there are none of that number. */
export function subtitlePlaylistOf(
  c: HttpContext,
  prefix: string,
  session: AnySession,
): Response | null {
  const n = Number(c.req.query("subtitle"));
  if (session.kind !== "file" || session.hls === null || subtitlesOf(session)[n] === undefined) return null;
  session.touch();
  // A single segment: the file is sent as a whole.
  const wholeMs = session.hls.segments.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const base = `${c.get("caller").ownUrl}/${prefix}/s/${session.identity.infohashHex}/${session.id}`;
  return new Response(renderSubtitlePlaylist([wholeMs], () => `${base}/${n}.vtt`), { headers: PLAYLIST_FIELDS });
}

/** The WebVTT of subtitles; null when there are none of that number. Rejects as `SubtitleTexts.textOf`. */
export async function subtitleSegment(
  c: HttpContext,
  texts: SubtitleTexts,
  session: AnySession,
): Promise<Response | null> {
  const n = /^(\d{1,4})\.vtt$/.exec(c.req.param("name") ?? "")?.[1];
  if (n === undefined || session.kind !== "file") return null;
  const subtitle = subtitlesOf(session)[Number(n)];
  if (subtitle === undefined) return null;
  const text = await texts.textOf(session, subtitle, c.req.raw.signal);
  return new Response(text, { headers: { "content-type": "text/vtt; charset=utf-8", "cache-control": "no-cache" } });
}

function playlistUrl(c: HttpContext, prefix: string, session: PlaybackSession): string {
  return `${c.get("caller").ownUrl}/${prefix}/m/${session.identity.infohashHex}/${session.id}.m3u8`;
}
