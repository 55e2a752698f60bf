/** What players read: `/engine/r` (MPEG TS), `/engine/m` and `/engine/c` (HLS), `/engine/f` (the file). B17, B18. */
import { eTag, ifNoneMatch } from "@std/http";
import type { Hono } from "hono";
import { mimeTypeOf } from "../content/file-choice.ts";
import { fileBody, manifestText, type OutputBody, segmentBody, tsBody } from "../playback/output.ts";
import type { LiveSession } from "../playback/live/live-session.ts";
import type { PlaybackSession } from "../playback/session.ts";
import type { AnySession } from "../playback/sessions.ts";
import { baseOf, type HttpContext, type HttpEnv, type HttpParts } from "./context.ts";
import { transcodingOf } from "./playback-params.ts";
import { parseRange } from "./range.ts";

/** MIME types of the outputs; a file's own type comes from its name. */
export const OUTPUT_TYPES: Readonly<Record<"ts" | "hls", string>> = {
  ts: "video/mp2t",
  hls: "application/vnd.apple.mpegurl",
};

/** The text of B11. */
export const UNKNOWN_SESSION = "unknown playback session id";

const CORS = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "content-length, content-range, accept-ranges, etag",
} as const;

/** Adds the routes under every prefix. */
export function addStreamRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const sessionOf = (c: HttpContext, id: string | undefined) =>
    parts.sessions.find(c.req.param("infohash") ?? "", id ?? "");
  for (const prefix of parts.prefixes) {
    app.get(`/${prefix}/r/:infohash/:id`, (c) => {
      const session = sessionOf(c, c.req.param("id"));
      if (session?.kind === "live") return endless(c, session);
      return ranged(c, session, session && tsBody(session), OUTPUT_TYPES.ts);
    });
    app.get(`/${prefix}/f/:infohash/:id/:name`, (c) => {
      const session = sessionOf(c, c.req.param("id"));
      const type = session?.kind === "file" ? mimeTypeOf(session.file.name) : OUTPUT_TYPES.ts;
      return ranged(c, session, session && fileBody(session), type);
    });
    app.get(`/${prefix}/m/:infohash/:name`, (c) => manifest(c, parts, prefix));
    app.get(`/${prefix}/c/:infohash/:name`, (c) => segment(c, parts));
  }
}

function notFound(text: string = UNKNOWN_SESSION): Response {
  return new Response(`${text}\n`, { status: 404, headers: { "content-type": "text/plain; charset=utf-8", ...CORS } });
}

/** A broadcast (B17): no length, no ranges, and no validator, for it is never the same twice. */
function endless(c: HttpContext, session: LiveSession): Response {
  if (session.identity.output !== "ts") return notFound();
  session.touch();
  const headers = { "content-type": OUTPUT_TYPES.ts, "cache-control": "no-store", "accept-ranges": "none", ...CORS };
  return new Response(c.req.raw.method === "HEAD" ? null : session.openStream(), { headers });
}

async function ranged(
  c: HttpContext,
  session: AnySession | null,
  body: OutputBody | null,
  contentType: string,
): Promise<Response> {
  if (session === null || body === null) return notFound();
  session.touch();
  const tag = await eTag(body.fingerprint);
  const headers = new Headers({ "content-type": contentType, "cache-control": "no-cache", ...CORS });
  if (tag !== undefined) headers.set("etag", tag);
  if (!ifNoneMatch(c.req.header("if-none-match") ?? null, tag)) return new Response(null, { status: 304, headers });
  const isHead = c.req.raw.method === "HEAD";
  if (body.sizeBytes === null) {
    headers.set("accept-ranges", "none");
    return new Response(isHead ? null : body.open(0, null), { status: 200, headers });
  }
  headers.set("accept-ranges", "bytes");
  const ifRange = c.req.header("if-range");
  const range = parseRange(
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
  return new Response(isHead ? null : body.open(start, end), { status: range === null ? 200 : 206, headers });
}

async function manifest(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const [id = "", extension] = (c.req.param("name") ?? "").split(".");
  const session = extension === "m3u8" ? parts.sessions.find(c.req.param("infohash") ?? "", id) : null;
  if (session === null) return notFound();
  const query = new URLSearchParams();
  if (session.preferredAudioLanguage !== null) query.set("preferred_audio_language", session.preferredAudioLanguage);
  if (session.kind === "file") addFileQuery(query, session);
  const suffix = query.size > 0 ? `?${query}` : "";
  const base = `${baseOf(c, parts)}/${prefix}/c/${session.identity.infohashHex}`;
  session.touch();
  const text = await manifestText(session, (n) => `${base}/${n}.ts${suffix}`, c.req.raw.signal);
  if (text === null) return notFound();
  return new Response(text, { headers: { "content-type": OUTPUT_TYPES.hls, "cache-control": "no-cache", ...CORS } });
}

function addFileQuery(query: URLSearchParams, { isDefaultFile, file, transcode }: PlaybackSession): void {
  if (!isDefaultFile) query.set("_idx", String(file.index));
  if (transcode === null) return;
  query.set("transcode_audio", "1");
  if (transcode.mp3) query.set("transcode_mp3", "1");
  if (transcode.ac3) query.set("transcode_ac3", "1");
}

function segment(c: HttpContext, parts: HttpParts): Response {
  const match = /^(\d{1,9})\.ts$/.exec(c.req.param("name") ?? "");
  const index = c.req.query("_idx");
  if (match === null || (index !== undefined && !/^\d{1,9}$/.test(index))) return notFound("no such segment");
  const session = parts.sessions.findForSegment(
    c.req.param("infohash") ?? "",
    index === undefined ? undefined : Number(index),
    c.req.query("preferred_audio_language") ?? null,
    transcodingOf({
      transcode_audio: c.req.query("transcode_audio") === "1",
      transcode_mp3: c.req.query("transcode_mp3") === "1",
      transcode_ac3: c.req.query("transcode_ac3") === "1",
    }),
    c.get("clientHost"),
  );
  if (session === null) return notFound();
  session.touch();
  const body = segmentBody(session, Number(match[1]));
  if (body === null) return notFound("no such segment");
  const headers = new Headers({ "content-type": OUTPUT_TYPES.ts, "cache-control": "no-cache", ...CORS });
  if (body.sizeBytes !== null) headers.set("content-length", String(body.sizeBytes));
  return new Response(c.req.raw.method === "HEAD" ? null : body.open(), { headers });
}
