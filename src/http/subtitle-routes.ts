/** Subtitles in HLS, our addition: those of a session, a playlist for each, and their WebVTT. */
import { renderSubtitlePlaylist, type SubtitleRendition } from "../media/hls/multivariant.ts";
import type { PlaybackSession } from "../playback/session.ts";
import type { AnySession } from "../playback/sessions.ts";
import { innerTextOf, innerTextsOf } from "../playback/inner-texts.ts";
import { distinct, FOR_HEARING_IMPAIRED } from "../playback/rendition-names.ts";
import type { Clock } from "../ports.ts";
import { subtitlesOf, type SubtitleTexts } from "../playback/subtitles.ts";
import type { HttpContext } from "./context.ts";

const PLAYLIST_FIELDS = { "content-type": "application/vnd.apple.mpegurl", "cache-control": "no-cache" };
const TEXT_FIELDS = { "content-type": "text/vtt; charset=utf-8", "cache-control": "no-cache" };

/** The subtitles of a session whose playlist is at `url`, forced ones first: some players take the last one of a language. */
export function subtitleList(session: PlaybackSession, url: string): readonly SubtitleRendition[] {
  const inner = innerTextsOf(session).map((one) => ({ ...one, url: `${url}?subtitle=t${one.number}` }));
  const beside = subtitlesOf(session).map((one, n) => ({
    ...one,
    characteristics: one.isForHearingImpaired ? FOR_HEARING_IMPAIRED : [],
    url: `${url}?subtitle=${n}`,
  }));
  const all = distinct([...inner, ...beside]);
  return [...all.filter(({ isForced }) => isForced), ...all.filter(({ isForced }) => !isForced)];
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
