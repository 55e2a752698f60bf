/** HLS with subtitles, our addition: a multivariant playlist, a playlist for each of the subtitles, and their WebVTT. */
import { renderMultivariant, renderSubtitlePlaylist, variantFacts } from "../media/hls/multivariant.ts";
import type { PlaybackSession } from "../playback/session.ts";
import type { AnySession } from "../playback/sessions.ts";
import { innerTextOf, innerTextsOf } from "../playback/inner-texts.ts";
import type { Clock } from "../ports.ts";
import { subtitlesOf, type SubtitleTexts } from "../playback/subtitles.ts";
import type { HttpContext } from "./context.ts";

const PLAYLIST_FIELDS = { "content-type": "application/vnd.apple.mpegurl", "cache-control": "no-cache" };
const TEXT_FIELDS = { "content-type": "text/vtt; charset=utf-8", "cache-control": "no-cache" };

/** The multivariant playlist, if the start asked for subtitles and there are some; else null. */
export function multivariantOf(
  c: HttpContext,
  prefix: string,
  session: AnySession,
): Response | null {
  if (c.req.query("subtitles") !== "1" || session.kind !== "file" || session.hls === null) return null;
  const url = playlistUrl(c, prefix, session);
  const inner = innerTextsOf(session).map((one) => ({ ...one, url: `${url}?subtitle=t${one.number}` }));
  const beside = subtitlesOf(session).map((one, n) => ({ ...one, url: `${url}?subtitle=${n}` }));
  const subtitles = distinct([...inner, ...beside]);
  if (subtitles.length === 0) return null;
  session.touch();
  const startFrom = c.req.query("start_from");
  const text = renderMultivariant(
    startFrom === undefined ? url : `${url}?start_from=${encodeURIComponent(startFrom)}`,
    subtitles,
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
  const name = c.req.query("subtitle") ?? "";
  if (session.kind !== "file" || session.hls === null) return null;
  const { segments, texts } = session.hls;
  const base = `${c.get("caller").ownUrl}/${prefix}/s/${session.identity.infohashHex}/${session.id}`;
  const inner = /^t(\d{1,3})$/.exec(name)?.[1];
  if (inner !== undefined) {
    if (texts?.tracks[Number(inner)] === undefined) return null;
    session.touch();
    const durationsMs = segments.map(({ durationMs }) => durationMs);
    const list = renderSubtitlePlaylist(durationsMs, (n) => `${base}/t${Number(inner)}-${n}.vtt`);
    return new Response(list, { headers: PLAYLIST_FIELDS });
  }
  const n = Number(name);
  if (subtitlesOf(session)[n] === undefined) return null;
  session.touch();
  // A single segment: the file is sent as a whole.
  const wholeMs = segments.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return new Response(renderSubtitlePlaylist([wholeMs], () => `${base}/${n}.vtt`), { headers: PLAYLIST_FIELDS });
}

/** The WebVTT of subtitles; null when there are none of that number. Rejects as `SubtitleTexts.textOf`. */
export async function subtitleSegment(
  c: HttpContext,
  texts: SubtitleTexts,
  session: AnySession,
  clock: Clock,
): Promise<Response | null> {
  const [, track, segment] = /^t(\d{1,3})-(\d{1,9})\.vtt$/.exec(c.req.param("name") ?? "") ?? [];
  if (track !== undefined && session.kind === "file") {
    const text = await innerTextOf(session, Number(track), Number(segment), clock, c.req.raw.signal);
    return text === null ? null : new Response(text, { headers: TEXT_FIELDS });
  }
  const n = /^(\d{1,4})\.vtt$/.exec(c.req.param("name") ?? "")?.[1];
  if (n === undefined || session.kind !== "file") return null;
  const subtitle = subtitlesOf(session)[Number(n)];
  if (subtitle === undefined) return null;
  const text = await texts.textOf(session, subtitle, c.req.raw.signal);
  return new Response(text, { headers: TEXT_FIELDS });
}

/** `renditions` with names that differ: those inside the film may be called as those beside it. */
function distinct<T extends { readonly name: string }>(renditions: readonly T[]): T[] {
  const names = new Set<string>();
  return renditions.map((one) => {
    let { name } = one;
    for (let n = 2; names.has(name); n++) name = `${one.name} ${n}`;
    names.add(name);
    return { ...one, name };
  });
}

function playlistUrl(c: HttpContext, prefix: string, session: PlaybackSession): string {
  return `${c.get("caller").ownUrl}/${prefix}/m/${session.identity.infohashHex}/${session.id}.m3u8`;
}
