/** HLS with a choice of sounds and subtitles, our addition: the multivariant playlist, and those of pictures and sounds. */
import { renderMultivariant, variantFacts } from "../media/hls/multivariant.ts";
import { listRenditions, renditionPlaylist, soundInside } from "../playback/renditions.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { HttpContext } from "./context.ts";
import { liveMultivariant, liveRenditionList } from "./live-rendition-routes.ts";
import { subtitleList } from "./subtitle-routes.ts";

/** Players that ignore EXT-X-START, by the beginning of their names: those of libavformat, and GStreamer's. */
const IGNORE_START = /^(?:Lavf|libmpv|mpv|Kodi|GStreamer)\b/i;

/** Whether the caller begins with the first segment of a playlist, whatever it says of where to begin. */
export function ignoresStart(c: HttpContext): boolean {
  return IGNORE_START.test(c.req.header("user-agent") ?? "");
}

const PLAYLIST_FIELDS = { "content-type": "application/vnd.apple.mpegurl", "cache-control": "no-cache" };

/** The multivariant playlist of a film or broadcast, if the start asked for one (`subtitles=1` is the older name); else null. */
export async function multivariantOf(c: HttpContext, prefix: string, session: AnySession): Promise<Response | null> {
  const isWanted = ["renditions", "subtitles"].some((name) => c.req.query(name) === "1");
  if (!isWanted) return null;
  const url = playlistUrl(c, prefix, session);
  if (session.kind === "live") {
    const text = await liveMultivariant(c, session, url);
    session.touch();
    return text === null ? null : new Response(text, { headers: PLAYLIST_FIELDS });
  }
  if (session.hls === null) return null;
  const subtitles = subtitleList(session, url);
  const { signal } = c.req.raw;
  const renditions = await session.renditions(signal);
  const { findCaptions } = session.presentation ?? {};
  const captions = findCaptions === undefined ? [] : await session.look(findCaptions, signal);
  session.touch();
  const query = new URLSearchParams();
  const startFrom = c.req.query("start_from");
  if (startFrom !== undefined) query.set("start_from", startFrom);
  const tracks = session.presentation?.outputTracks ?? [];
  const bytesPerSecond = session.presentation?.bytesPerSecond ?? null;
  const urlOf = (name: string) => `${url}?${new URLSearchParams([["rendition", name], ...query])}`;
  // Some players take segments whose sound is listed without an address for MPEG TS, and play nothing of fragmented MP4.
  const inside = session.hls.fragmented === undefined ? soundInside(tracks) : [];
  const text = renderMultivariant(
    renditions === null
      ? {
        videoUrl: query.size === 0 ? url : `${url}?${query}`,
        sounds: inside,
        subtitles,
        captions,
        variants: [{
          ...variantFacts(session.hls, tracks, bytesPerSecond),
          ...inside.length === 0 ? {} : { sound: inside[0]!.group },
        }],
      }
      : { ...listRenditions(renditions, bytesPerSecond, urlOf), subtitles, captions },
  );
  return new Response(text, { headers: PLAYLIST_FIELDS });
}

/** The playlist of the rendition of that name; null when there is none. */
export async function renditionList(
  c: HttpContext,
  prefix: string,
  session: AnySession,
  name: string,
  fromMs: number,
): Promise<Response | null> {
  const base = `${c.get("caller").ownUrl}/${prefix}/s/${session.identity.infohashHex}/${session.id}`;
  const text = session.kind === "live"
    ? await liveRenditionList(c, session, name, base)
    : await renditionPlaylist(session, name, (file) => `${base}/${file}`, c.req.raw.signal, fromMs, ignoresStart(c));
  if (text === null) return null;
  session.touch();
  return new Response(text, { headers: PLAYLIST_FIELDS });
}

function playlistUrl(c: HttpContext, prefix: string, session: AnySession): string {
  return `${c.get("caller").ownUrl}/${prefix}/m/${session.identity.infohashHex}/${session.id}.m3u8`;
}
