/** What is in a file, and the file as HLS. */
import { MillraceError } from "../../../errors.ts";
import type { Track } from "../../../media/model/types.ts";
import type { PlaybackSession } from "../../../playback/session.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import type { PlaybackParams } from "../../playback-schema.ts";
import { playbackUrl } from "../../playback-url.ts";
import { startRequest } from "../../start-request.ts";
import { fileAt, indexOf, type NamedFile } from "./named.ts";

/** Containers by the names that the app compares with its own. */
const FORMATS = {
  mp4: "mov,mp4,m4a,3gp,3g2,mj2",
  matroska: "matroska,webm",
  mpegts: "mpegts",
  other: "other",
} as const;

/** The file that a query parameter names by its address here. Throws `unsupported_media`. */
export function ownFile(c: HttpContext, prefix: string, address: string): NamedFile {
  const named = fileAt(c, prefix, address);
  if (named === null) throw new MillraceError("unsupported_media", "only files of torrents at this server are read");
  return named;
}

/** A session of the file as HLS that is ready. Rejects as playback, with `unsupported_media` for a broadcast. */
async function hlsSession(
  c: HttpContext,
  parts: HttpParts,
  named: NamedFile,
  params: PlaybackParams,
): Promise<PlaybackSession> {
  const { signal } = c.req.raw;
  const fileIndex = await indexOf(c, parts, named);
  const facts = { selector: named.selector, output: "hls", mayNamePrivate: false, signal } as const;
  // A client that only asks for the head reads the list afterwards.
  const request = { ...startRequest(c, parts, params, facts), fileIndex, isTrial: false };
  const session = await parts.sessions.start(request);
  if (session.kind === "live") throw new MillraceError("unsupported_media", "a broadcast is no file");
  await session.ready(signal);
  return session;
}

const tracksOf = (session: PlaybackSession): readonly Track[] => session.presentation?.tracks ?? [];

/** `/hlsv2/probe`: by this the app decides whether it plays the file itself. */
export async function probe(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const session = await hlsSession(c, parts, ownFile(c, prefix, c.req.query("mediaURL") ?? ""), {});
  const { container = "other", durationMs = null } = session.presentation ?? {};
  return c.json({
    format: { name: FORMATS[container] },
    ...durationMs === null ? {} : { duration: durationMs / 1000 },
    streams: tracksOf(session).map((track, index) => ({
      index,
      track: track.kind,
      codec: track.codec,
      default: track.isDefault,
      ...track.language === null ? {} : { lang: track.language },
      ...track.name ? { title: track.name } : {},
      ...track.kind === "audio" ? { channels: track.channels ?? 2, sampleRate: track.sampleRate } : {},
      ...track.kind === "video" ? { width: track.width, height: track.height } : {},
    })),
  });
}

/** `/tracks/ADDRESS`: names and languages, which televisions do not read themselves. Files of other servers have none. */
export async function tracks(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const named = fileAt(c, prefix, addressIn(new URL(c.req.url).pathname.slice(`${prefix}/tracks/`.length)));
  if (named === null) return c.json([]);
  const kinds: Readonly<Record<string, string>> = { audio: "audio", subtitle: "text" };
  const found = tracksOf(await hlsSession(c, parts, named, {})).filter(({ kind }) => Object.hasOwn(kinds, kind));
  return c.json(found.map(({ id, kind, language, name }) => {
    return { id, type: kinds[kind], lang: language ?? "und", label: name ?? null };
  }));
}

function addressIn(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return "";
  }
}

/**
 * `/hlsv2/ID/master.m3u8`: leads to the engine's HLS with all sounds and texts. Pictures are copied; sound that the app says
 * it lacks is converted.
 */
export async function master(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const query = new URL(c.req.url).searchParams;
  const named = ownFile(c, prefix, query.get("mediaURL") ?? "");
  const plays = query.getAll("audioCodecs").flatMap((value) => value.split(","));
  const params: PlaybackParams = plays.length === 0 ? {} : {
    transcode_audio: true,
    transcode_ac3: !plays.includes("ac3"),
    transcode_mp3: !plays.includes("mp3"),
  };
  let session = await hlsSession(c, parts, named, params);
  if (session.hls?.fragmented === undefined && tracksOf(session).some(({ codec }) => codec === "hevc")) {
    // The app's player finds HEVC in fragmented MP4 alone.
    session = await hlsSession(c, parts, named, { ...params, playlist_output_format_vod: "fmp4" });
  }
  const location = playbackUrl(`${c.get("caller").ownUrl}/engine`, session, 0, { renditions: true });
  return c.body(null, 302, { location });
}
