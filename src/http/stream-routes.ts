/** Streams that players read: `/engine/r` (MPEG TS), `/engine/m` and `/engine/c` (HLS), `/engine/f` (the file). */
import { eTag, ifNoneMatch } from "@std/http";
import type { Hono } from "hono";
import { mimeTypeOf } from "../content/file-choice.ts";
import {
  fileBody,
  initBody,
  liveInitBody,
  manifestText,
  type OutputBody,
  segmentBody,
  tsBody,
  tsBodyFrom,
} from "../playback/output.ts";
import type { HlsFormat } from "../media/model/types.ts";
import { renditionFile } from "../playback/renditions.ts";
import { SubtitleTexts } from "../playback/subtitles.ts";
import { type TimeRange, timeRange } from "../playback/time-range.ts";
import type { LiveSession } from "../playback/live/live-session.ts";
import type { AnySession } from "../playback/sessions.ts";
import { withSignal } from "../bytes/deadline.ts";
import { callerOf } from "./caller.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { addDlnaFields, addTimes, timesWanted } from "./dlna-fields.ts";
import { drawnFile, drawnFont } from "./drawn-routes.ts";
import { playbackFailure } from "./errors.ts";
import { addTranscoding, parseTime, transcodingOf } from "./playback-params.ts";
import { sessionOwner } from "./page.ts";
import { parseRange } from "./range.ts";
import { logOf, shownId } from "./request-log.ts";
import { sessionNamedBy } from "./sent-sessions.ts";
import { isLiveFragmented, type LiveRenditionFile, liveRenditionFile } from "./live-rendition-routes.ts";
import { lowLatencyAsk, partName, partNamed, partResponse } from "./low-latency-routes.ts";
import { ignoresStart, multivariantOf, renditionList } from "./rendition-routes.ts";
import { subtitlePlaylistOf, subtitleSegment } from "./subtitle-routes.ts";

/** MIME types of the outputs; a file's own type comes from its name. */
export const OUTPUT_TYPES: Readonly<Record<"ts" | "hls", string>> = {
  ts: "video/mp2t",
  hls: "application/vnd.apple.mpegurl",
};

/** MIME type of fragmented MP4, whatever is in it. */
const FRAGMENT_TYPE = "video/mp4";

/** MIME type of the fonts of a film, whatever their format (RFC 8081). */
const FONT_TYPE = "font/sfnt";

/** The text for a session that is not known. */
export const UNKNOWN_SESSION = "unknown playback session id";

/** Adds the routes under every prefix. */
export function addStreamRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const subtitles = new SubtitleTexts(parts.clock);
  const add = (path: string, handle: (c: HttpContext) => Promise<Response>) =>
    app.get(path, async (c) => {
      try {
        return await handle(c);
      } catch (error) {
        const session = shownId(c.req.param("id") ?? "");
        logOf(c, parts).log("debug", "a stream cannot be read", { ...(session !== "" && { session }), error });
        return playbackFailure(error);
      }
    });
  for (const prefix of parts.prefixes) {
    add(`/${prefix}/r/:infohash/:id`, async (c) => {
      const session = await sessionOf(c, parts, c.req.param("id"));
      return session === null ? notFound() : await tsResponse(c, session, OUTPUT_TYPES.ts, startOf(c));
    });
    add(`/${prefix}/f/:infohash/:id/:name`, async (c) => {
      const session = await sessionOf(c, parts, c.req.param("id"));
      const type = session?.kind === "file" ? mimeTypeOf(session.file.name) : OUTPUT_TYPES.ts;
      return ranged(c, session, session && fileBody(session), type);
    });
    add(`/${prefix}/m/:infohash/:name`, (c) => manifest(c, parts, prefix));
    add(`/${prefix}/c/:infohash/:name`, (c) => segment(c, parts));
    add(`/${prefix}/s/:infohash/:id/:name`, async (c) => {
      const session = await sessionOf(c, parts, c.req.param("id"));
      if (session === null) return notFound();
      session.touch();
      const { signal } = c.req.raw;
      const name = c.req.param("name") ?? "";
      if (session.kind === "live") return await liveFile(c, session, liveRenditionFile(session, name));
      const file = await renditionFile(session, name, signal);
      if (file !== null) return await ranged(c, session, file, file.isFragmented ? FRAGMENT_TYPE : OUTPUT_TYPES.ts);
      const font = await drawnFont(c, session, parts.clock);
      if (font !== null) return await ranged(c, session, font, FONT_TYPE);
      return await subtitleSegment(c, subtitles, session, parts.clock) ??
        await drawnFile(c, session, parts.clock) ?? notFound("no such subtitles");
    });
  }
}

/**
 * The MPEG TS of a session of output `ts` under this MIME type, in the `Range` of the request. Rejects when the file
 * can't be played.
 */
export async function tsResponse(c: HttpContext, session: AnySession, type: string, fromMs = 0): Promise<Response> {
  if (session.kind === "live") return endless(c, session, type);
  const { headers, signal } = c.req.raw;
  await session.ready(signal);
  const wanted = timesWanted(headers);
  if (wanted === null || fromMs !== 0 || session.identity.output !== "ts") {
    return await ranged(c, session, await tsBodyFrom(session, fromMs, signal), type);
  }
  return await ranged(
    c,
    session,
    tsBody(session),
    type,
    await timeRange(session, wanted.fromMs, wanted.untilMs, signal),
  );
}

/**
 * The file of a session of output `file` as it is, in the `Range` of the request; for a broadcast its MPEG TS. Rejects when
 * it can't be played.
 */
export async function fileResponse(c: HttpContext, session: AnySession): Promise<Response> {
  if (session.kind === "live") return endless(c, session, OUTPUT_TYPES.ts);
  return await ranged(c, session, fileBody(session), mimeTypeOf(session.file.name));
}

/** The session of a URL with an id in it, brought back if it ended by itself, once it can be read. */
async function sessionOf(c: HttpContext, parts: HttpParts, id: string | undefined): Promise<AnySession | null> {
  const { signal } = c.req.raw;
  const session = await parts.sessions.open(c.req.param("infohash") ?? "", id ?? "", callerOf(c), signal);
  if (session?.kind === "file") await session.ready(signal);
  return session;
}

/** Where playing begins, ms: a start puts `start_from` into the address that it returns. */
function startOf(c: HttpContext): number {
  return 1000 * parseTime("start_from", c.req.query("start_from") || "0");
}

/**
 * `body` of `session`. If a program makes it, its first bytes are awaited: when there is no place for the program, the
 * caller gets a status with the reason, and no response that breaks off.
 */
async function begun(
  c: HttpContext,
  session: AnySession,
  body: ReadableStream<Uint8Array>,
): Promise<ReadableStream<Uint8Array>> {
  if (session.kind !== "file" || session.presentation?.container !== "other") return body;
  try {
    await withSignal(session.begun(body), c.req.raw.signal);
  } catch (error) {
    await body.cancel().catch(() => {});
    throw error;
  }
  return body;
}

function notFound(text: string = UNKNOWN_SESSION): Response {
  return new Response(`${text}\n`, { status: 404, headers: { "content-type": "text/plain; charset=utf-8" } });
}

/** A broadcast: no length, no ranges, and no validator, since it is never the same twice. */
function endless(c: HttpContext, session: LiveSession, type: string): Response {
  if (session.identity.output !== "ts") return notFound();
  session.touch();
  const headers = new Headers({ "content-type": type, "cache-control": "no-store", "accept-ranges": "none" });
  addDlnaFields(c.req.raw.headers, headers, false);
  return new Response(c.req.raw.method === "HEAD" ? null : session.openStream(), { headers });
}

async function ranged(
  c: HttpContext,
  session: AnySession | null,
  body: OutputBody | null,
  contentType: string,
  times: TimeRange | null = null,
): Promise<Response> {
  if (session === null || body === null) return notFound();
  session.touch();
  const tag = await eTag(body.fingerprint);
  const headers = new Headers({ "content-type": contentType, "cache-control": "no-cache" });
  if (tag !== undefined) headers.set("etag", tag);
  if (!ifNoneMatch(c.req.header("if-none-match") ?? null, tag)) return new Response(null, { status: 304, headers });
  const isHead = c.req.raw.method === "HEAD";
  const isTs = session.identity.output === "ts";
  addDlnaFields(c.req.raw.headers, headers, body.sizeBytes !== null, body.sizeBytes !== null && isTs);
  if (times === null && timesWanted(c.req.raw.headers) !== null) {
    return new Response("this stream has no such range of times\n", { status: 406 });
  }
  if (body.sizeBytes === null) {
    headers.set("accept-ranges", "none");
    return new Response(isHead ? null : await begun(c, session, body.open(0, null)), { status: 200, headers });
  }
  headers.set("accept-ranges", "bytes");
  const ifRange = c.req.header("if-range");
  if (times !== null) addTimes(headers, times);
  const range = times ?? parseRange(
    ifRange === undefined || ifRange === tag ? c.req.header("range") ?? null : null,
    body.sizeBytes,
  );
  if (range === "unsatisfiable") {
    headers.set("content-range", `bytes */${body.sizeBytes}`);
    headers.set("content-type", "text/plain; charset=utf-8");
    headers.delete("etag");
    return new Response("range not satisfiable\n", { status: 416, headers });
  }
  const { start, end } = range ?? { start: 0, end: body.sizeBytes };
  headers.set("content-length", String(end - start));
  if (range !== null) headers.set("content-range", `bytes ${start}-${end - 1}/${body.sizeBytes}`);
  const bytes = isHead ? null : await begun(c, session, body.open(start, end));
  return new Response(bytes, { status: range === null ? 200 : 206, headers });
}

async function manifest(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const [id = "", extension] = (c.req.param("name") ?? "").split(".");
  const session = extension === "m3u8" ? await sessionOf(c, parts, id) : null;
  if (session === null) return notFound();
  const query = new URLSearchParams();
  if (session.preferredAudioLanguage !== null) query.set("preferred_audio_language", session.preferredAudioLanguage);
  if (session.kind === "file") {
    if (!session.isDefaultFile) query.set("_idx", String(session.file.index));
    addTranscoding(query, session.transcode, parts.transcodeAudio);
    const { hlsFormat } = session.identity;
    if (hlsFormat !== "auto") query.set("playlist_output_format_vod", hlsFormat);
  }
  // A page of another origin also reads the segments by the secret that it was given.
  if (parts.sentSessions.has(session.id)) query.set("session", session.id);
  const [subtitle, rendition] = [c.req.query("subtitle"), c.req.query("rendition")];
  const beside = subtitle !== undefined
    ? subtitlePlaylistOf(c, prefix, session) ?? notFound("no such subtitles")
    : rendition !== undefined
    ? await renditionList(c, prefix, session, rendition, startOf(c)) ?? notFound("no such rendition")
    : await multivariantOf(c, prefix, session);
  if (beside !== null) return beside;
  const suffix = query.size > 0 ? `?${query}` : "";
  const base = `${c.get("caller").ownUrl}/${prefix}/c/${session.identity.infohashHex}`;
  session.touch();
  const isLiveFmp4 = session.kind === "live" && isLiveFragmented(c);
  const isFragmented = isLiveFmp4 || (session.kind === "file" && session.hls?.fragmented !== undefined);
  const nameOf = (n: number | "init") => n === "init" ? "init.mp4" : `${n}.${isFragmented ? "m4s" : "ts"}`;
  const text = await manifestText(
    session,
    (n) => `${base}/${nameOf(n)}${suffix}`,
    c.req.raw.signal,
    startOf(c),
    isLiveFmp4 ? (first) => `${base}/${first}.mp4${suffix}` : undefined,
    ignoresStart(c),
    isLiveFmp4 && parts.lowLatency ? lowLatencyAsk(c, (n, p) => `${base}/${partName(n, p)}${suffix}`) : undefined,
  );
  if (text === null) return notFound();
  return new Response(text, { headers: { "content-type": OUTPUT_TYPES.hls, "cache-control": "no-cache" } });
}

async function segment(c: HttpContext, parts: HttpParts): Promise<Response> {
  const name = c.req.param("name") ?? "";
  const part = parts.lowLatency ? partNamed(name) : null;
  const match = /^(\d{1,9}|init)\.(ts|m4s|mp4)$/.exec(part === null ? name : `${part.n}.m4s`);
  const index = c.req.query("_idx");
  if (match === null || (index !== undefined && !/^\d{1,9}$/.test(index))) return notFound("no such segment");
  const isSet = (name: string) => {
    const value = c.req.query(name);
    return value === undefined ? undefined : value === "1";
  };
  const [, n, extension] = match;
  const format = c.req.query("playlist_output_format_vod");
  const hlsFormat: HlsFormat = format === "ts" || format === "fmp4" ? format : "auto";
  const query = {
    infohashHex: c.req.param("infohash") ?? "",
    n: n === "init" ? 0 : Number(n),
    hlsFormat,
    fileIndex: index === undefined ? undefined : Number(index),
    preferredAudioLanguage: c.req.query("preferred_audio_language") ?? null,
    transcode: transcodingOf({
      transcode_audio: isSet("transcode_audio"),
      transcode_mp3: isSet("transcode_mp3"),
      transcode_ac3: isSet("transcode_ac3"),
    }, parts.transcodeAudio),
  };
  const sentId = sessionNamedBy(new URL(c.req.url));
  const client = {
    host: c.get("caller").clientHost,
    owner: sessionOwner(c.req.raw, c.get("page")),
    caller: callerOf(c),
  };
  const session = sentId !== undefined && parts.sentSessions.has(sentId)
    ? await sessionOf(c, parts, sentId)
    : await parts.sessions.openForSegment(query, client, c.req.raw.signal);
  if (session === null) return notFound();
  if (session.kind === "file") await session.ready(c.req.raw.signal);
  session.touch();
  if (part !== null) return await partResponse(c, session, part) ?? notFound("no such part");
  if (n === "init") {
    return extension === "mp4" ? await fragment(c, session, initBody(session)) : notFound("no such segment");
  }
  if (extension === "mp4") return await fragment(c, session, liveInitBody(session, query.n));
  const isFragmented = session.kind === "live" ? extension === "m4s" : session.hls?.fragmented !== undefined;
  const body = extension === (isFragmented ? "m4s" : "ts") ? segmentBody(session, query.n, isFragmented) : null;
  if (body === null) return notFound("no such segment");
  if (isFragmented && session.kind === "file") {
    return await fragment(c, session, { ...body, fingerprint: body.fingerprint ?? "" });
  }
  const headers = new Headers({
    "content-type": isFragmented ? FRAGMENT_TYPE : OUTPUT_TYPES.ts,
    "cache-control": "no-cache",
  });
  if (body.sizeBytes !== null) headers.set("content-length", String(body.sizeBytes));
  const bytes = c.req.raw.method === "HEAD" ? null : await begun(c, session, body.open());
  return new Response(bytes, { headers });
}

/** A file of a rendition of a broadcast. */
async function liveFile(c: HttpContext, session: LiveSession, file: LiveRenditionFile | null): Promise<Response> {
  if (file === null) return notFound("no such segment");
  if ("init" in file) return await fragment(c, session, file.init);
  const type = file.isFragmented ? FRAGMENT_TYPE : OUTPUT_TYPES.ts;
  const bytes = c.req.raw.method === "HEAD" ? null : file.open();
  return new Response(bytes, { headers: { "content-type": type, "cache-control": "no-cache" } });
}

/** The init segment, or a segment of fragmented MP4. */
async function fragment(c: HttpContext, session: AnySession, body: OutputBody | null): Promise<Response> {
  return body === null ? notFound("no such segment") : await ranged(c, session, body, FRAGMENT_TYPE);
}
