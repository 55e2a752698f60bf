/** Recordings as players read them: a transport stream with ranges, and HLS; both while they grow. Our addition. */
import type { Hono } from "hono";
import { MillraceError } from "../errors.ts";
import { renderLivePlaylist } from "../media/hls/live-playlist.ts";
import type { RecordingFile } from "../recordings/recording-file.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { addDlnaFields, addTimes, type TimesSent, type TimesWanted, timesWanted } from "./dlna-fields.ts";
import { playbackFailure } from "./errors.ts";
import { isSignedAs } from "./playlist-key.ts";
import { parseRange } from "./range.ts";
import { OUTPUT_TYPES } from "./stream-routes.ts";
import { isUser } from "./user.ts";

/** No segment of a broadcast is longer, s. */
const TARGET_S = 10;

type Found = { readonly file: RecordingFile; readonly isGrowing: () => boolean };

/** Adds the routes under every prefix. */
export function addRecordingRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const add = (path: string, handle: (c: HttpContext, found: Found) => Response) =>
    app.get(path, async (c) => {
      try {
        const id = /^([0-9a-f]{16})(?:\.ts|\.m3u8)?$/.exec(c.req.param("id") ?? "")?.[1] ?? "";
        const isSigned = await isSignedAs(parts.api.token, c.req.query("key"), "recording", id);
        if (!isSigned && !await isUser(c.get("caller"), parts.api, c.req.query("token"))) {
          throw new MillraceError("denied", "recordings need the access token or a key: see the method recording_list");
        }
        const found = parts.api.recordings?.find(id) ?? null;
        if (found === null) throw new MillraceError("not_found", "there is no recording with this id");
        return handle(c, found);
      } catch (error) {
        return playbackFailure(error);
      }
    });
  for (const prefix of parts.prefixes) {
    add(`/${prefix}/recording/:id{[0-9a-f]+\\.ts}`, (c, found) => recordingMedia(c, found, OUTPUT_TYPES.ts));
    add(`/${prefix}/recording/:id{[0-9a-f]+\\.m3u8}`, playlist);
    add(`/${prefix}/recording/:id/:name`, segment);
  }
}

/**
 * The whole of it, and what is still added; or a range of what is there, in bytes or, of one that is over, in DLNA's times.
 * `type`: its media type.
 */
export function recordingMedia(c: HttpContext, { file, isGrowing }: Found, type: string): Response {
  const { sizeBytes } = file;
  const grows = isGrowing();
  const headers = new Headers({ "content-type": type, "cache-control": "no-store", "accept-ranges": "bytes" });
  addDlnaFields(c.req.raw.headers, headers, !grows, !grows);
  const times = grows ? null : timesWanted(c.req.raw.headers);
  const sent = times === null ? null : timesSent(file, times);
  if (sent !== null) addTimes(headers, sent);
  const range = sent ?? parseRange(c.req.header("range") ?? null, sizeBytes);
  if (range === "unsatisfiable") {
    headers.set("content-range", `bytes */${grows ? "*" : sizeBytes}`);
    return new Response(null, { status: 416, headers });
  }
  const isHead = c.req.raw.method === "HEAD";
  // A player that asks for the rest of what grows gets what is added, too.
  const isOpen = grows && (range === null || range.end === sizeBytes);
  const [start, end] = range === null ? [0, sizeBytes] : [range.start, range.end];
  const body = isHead ? null : bodyOf(c, file, start, isOpen ? Infinity : end, isGrowing);
  if (isOpen) return new Response(body, { headers });
  headers.set("content-length", String(end - start));
  if (range !== null) headers.set("content-range", `bytes ${start}-${end - 1}/${grows ? "*" : sizeBytes}`);
  return new Response(body, { status: range === null ? 200 : 206, headers });
}

/** The segments in which the wanted times lie; null where they are all of it, or beyond its end. */
function timesSent(file: RecordingFile, { fromMs, untilMs }: TimesWanted): TimesSent | null {
  const { durationMs, sizeBytes } = file;
  let [atMs, startMs, start] = [0, 0, 0];
  let [endMs, end] = [durationMs, sizeBytes];
  for (const segment of file.segments) {
    if (atMs <= fromMs) [startMs, start] = [atMs, segment.offset];
    atMs += segment.durationMs;
    if (untilMs !== null && atMs >= untilMs) {
      [endMs, end] = [atMs, segment.offset + segment.sizeBytes];
      break;
    }
  }
  return fromMs >= durationMs || end <= start ? null : { startMs, endMs, durationMs, start, end, sizeBytes };
}

function playlist(c: HttpContext, { file, isGrowing }: Found): Response {
  const { ownUrl } = c.get("caller");
  const base = new URL(c.req.url).pathname.replace(/\.m3u8$/, "");
  const query = new URLSearchParams();
  for (const name of ["key", "token"]) {
    const value = c.req.query(name);
    if (value !== undefined) query.set(name, value);
  }
  const more = query.size === 0 ? "" : `?${query}`;
  const text = renderLivePlaylist({
    targetDurationS: TARGET_S,
    segments: file.segments,
    droppedDiscontinuities: 0,
    ended: !isGrowing(),
    startS: 0,
  }, (n) => `${ownUrl}${base}/${n}.ts${more}`);
  return new Response(text, { headers: { "content-type": OUTPUT_TYPES.hls, "cache-control": "no-store" } });
}

function segment(c: HttpContext, { file }: Found): Response {
  const n = /^(\d{1,9})\.ts$/.exec(c.req.param("name") ?? "")?.[1];
  const found = file.segments[Number(n ?? -1)];
  if (found === undefined) throw new MillraceError("not_found", "the recording has no such segment");
  const { offset, sizeBytes } = found;
  const headers = { "content-type": OUTPUT_TYPES.ts, "content-length": String(sizeBytes) };
  const isHead = c.req.raw.method === "HEAD";
  return new Response(isHead ? null : bodyOf(c, file, offset, offset + sizeBytes, () => false), { headers });
}

/** The client's leaving ends the body, also while nothing comes. */
function bodyOf(
  c: HttpContext,
  file: RecordingFile,
  from: number,
  to: number,
  grows: () => boolean,
): ReadableStream<Uint8Array> {
  const leaving = new AbortController();
  const signal = AbortSignal.any([c.req.raw.signal, leaving.signal]);
  const chunks = file.read(from, to, grows, signal);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      leaving.abort(new MillraceError("aborted", "the client left"));
      await chunks.return(undefined).catch(() => {});
    },
  }, { highWaterMark: 0 });
}
