/** `/engine/getstream` and `/engine/manifest.m3u8`: section 4.1 of the HTTP API. */
import type { Hono } from "hono";
import { MAX_TRANSPORT_FILE_BYTES } from "../content/resolve.ts";
import { withLocalFile } from "../content/local-file.ts";
import { selectStream, type StreamSelector } from "../content/selector.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { OutputKind } from "../playback/session-base.ts";
import type { BodyHold, Leave } from "./admission.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { playbackFailure, publicError } from "./errors.ts";
import { addressHead, channelResponse, channelSources } from "./channel.ts";
import { startOne } from "../playback/failover.ts";
import { startRequest } from "./start-request.ts";
import { OUTPUT_TYPES } from "./stream-routes.ts";
import { parsePlaybackParams } from "./playback-params.ts";
import type { PlaybackParams } from "./playback-schema.ts";
import { isSigned } from "./playlist-key.ts";
import { playbackUrl } from "./playback-url.ts";
import { logOf, shownId } from "./request-log.ts";
import { readBody } from "./request-body.ts";

/** `getfile` is our addition: the original file, for players that read its container themselves. */
const STARTS: readonly (readonly [string, OutputKind])[] = [["getstream", "ts"], ["manifest.m3u8", "hls"], [
  "getfile",
  "file",
]];

/** Adds the routes under every prefix. */
export function addStartRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  for (const prefix of parts.prefixes) {
    for (const [name, output] of STARTS) {
      app.on(["GET", "POST"], `/${prefix}/${name}`, (c) => start(c, parts, prefix, output));
    }
  }
  // A client library asks here for streams that it names by `manifest_url`.
  app.get("/hls/manifest.m3u8", (c) => start(c, parts, parts.prefixes[0]!, "hls"));
}

async function start(c: HttpContext, parts: HttpParts, prefix: string, output: OutputKind): Promise<Response> {
  let wantsJson = c.req.query("format") === "json";
  const holder = c.get("caller").holder;
  const hold = parts.admission.body(holder);
  let leave: Leave | null = null;
  const beganMs = parts.clock.monotonic();
  try {
    const params = parsePlaybackParams(new URL(c.req.url).searchParams);
    wantsJson = params.format === "json";
    leave = parts.admission.enter(holder);
    const channel = await channelSources(c, parts, params, output);
    const { signal } = c.req.raw;
    if (channel !== null) {
      const type = wantsJson ? "application/json" : OUTPUT_TYPES[output === "hls" ? "hls" : "ts"];
      const head = addressHead(c, channel, type);
      if (head !== null) return head;
      const started = await startOne(channel.parts, channel.sources, signal);
      observeStart(c, parts, started.session, beganMs);
      if (started.session.kind === "live" && output === "ts" && !wantsJson) {
        if (params.start_from !== undefined && c.req.raw.method !== "HEAD") {
          started.session.startFrom(params.start_from * 1000);
        }
        const response = channelResponse(channel, { ...started, session: started.session });
        return c.req.raw.method === "HEAD" ? new Response(null, response) : response;
      }
      return startedResponse(c, prefix, params, started.session);
    }
    const named = c.req.method === "POST" ? await postedSelector(c, parts, params, hold) : selectorOf(params);
    // A signed address was chosen by the user.
    const mayNamePrivate = await isSigned(parts.api.token, params.key, named);
    const selector = await withLocalFile(parts.api.files, named, c.get("caller").mayReadFiles);
    const session = await parts.sessions.start(
      startRequest(c, parts, params, { selector, output, mayNamePrivate, signal }),
    );
    observeStart(c, parts, session, beganMs);
    return startedResponse(c, prefix, params, session);
  } catch (failure) {
    const error = withAddresses(failure, c, prefix);
    const told = publicError(error);
    // Starts that fail because the engine ends are no news to the person who ended it.
    const level = told.status >= 500 && !parts.sessions.isClosing ? "warn" : "debug";
    if (leave !== null) countFailure(parts, output, error);
    logOf(c, parts).log(level, "a stream did not start", {
      message: told.message,
      status: told.status,
      error,
    });
    // Beside the documented fields, for the page: it says this in the user's language.
    if (wantsJson) return c.json({ response: null, error: told.message }, 200, { "millrace-error": told.code });
    return playbackFailure(error);
  } finally {
    hold.release();
    leave?.();
  }
}

/** Parameters that name a stream and its file. */
const SELECTORS = ["content_id", "id", "infohash", "url", "magnet", "manifest_url", "_idx"];

/** `error`, with the addresses of the film if only HLS carries it and the request names it. */
function withAddresses(error: unknown, c: HttpContext, prefix: string): unknown {
  if (!hasCode(error, "unsupported_media") || error.detail?.["hls"] !== true) return error;
  const query = new URLSearchParams();
  for (const [name, value] of new URL(c.req.url).searchParams) if (SELECTORS.includes(name)) query.append(name, value);
  if (query.size === 0) return error;
  const base = `${c.get("caller").ownUrl}/${prefix}`;
  const message = `${error.message}: ${base}/manifest.m3u8?${query} or ${base}/getfile?${query}`;
  return new MillraceError(error.code, message, { cause: error });
}

/** Where the session is played, as a redirect or with its control addresses. */
function startedResponse(
  c: HttpContext,
  prefix: string,
  params: PlaybackParams,
  session: AnySession,
): Response {
  const { start_from: startFromS } = params;
  const isTrial = c.req.raw.method === "HEAD";
  if (session.kind === "live" && startFromS !== undefined && !isTrial) session.startFrom(startFromS * 1000);
  const base = `${c.get("caller").ownUrl}/${prefix}`;
  const playback = playbackUrl(base, session, startFromS, params);
  if (params.format !== "json") return c.body(null, 302, { location: playback });
  return c.json({ response: startResponse(base, session, playback, params), error: null });
}

/** Measures a start that made a session, until its output can be read. A start that joined a session shows nothing. */
function observeStart(c: HttpContext, parts: HttpParts, session: AnySession, beganMs: number): void {
  if (session.startedMs < beganMs) return;
  const { output, infohashHex } = session.identity;
  const log = logOf(c, parts).child({ session: shownId(session.id) });
  log.log("debug", "a session started", { output, infohash: infohashHex });
  session.playable.then(() => {
    const ms = parts.clock.monotonic() - beganMs;
    parts.metrics.startSeconds.observe({ output }, ms / 1000);
    log.log("debug", "a session can be played", { ms: Math.round(ms) });
  }, (error) => {
    countFailure(parts, output, error);
    log.log("debug", "a session can't be played", { error });
  });
}

function countFailure({ metrics }: HttpParts, output: OutputKind, error: unknown): void {
  metrics.startFailures.add({ output, code: error instanceof MillraceError ? error.code : "internal" });
}

function selectorOf(params: PlaybackParams): StreamSelector {
  return selectStream({
    ...params,
    content_id: params.content_id ?? params.id,
    url: params.url ?? params.manifest_url,
  });
}

/** The body is a transport file; without one the query is read as in a GET. */
async function postedSelector(
  c: HttpContext,
  { clock }: HttpParts,
  params: PlaybackParams,
  hold: BodyHold,
): Promise<StreamSelector> {
  const bytes = await readBody(
    c.req.raw,
    clock,
    MAX_TRANSPORT_FILE_BYTES,
    hold,
    () => new MillraceError("too_large", `a transport file is at most ${MAX_TRANSPORT_FILE_BYTES} bytes`),
  );
  return bytes.length > 0 ? { kind: "transport_file", bytes } : selectorOf(params);
}

/** Section 2.2. */
function startResponse(
  base: string,
  session: AnySession,
  playback: string,
  params: PlaybackParams,
): Record<string, unknown> {
  const where = `${session.identity.infohashHex}/${session.id}`;
  const wantsEvents = params.use_api_events === true || params.use_stop_notifications === true;
  return {
    playback_url: playback,
    stat_url: `${base}/stat/${where}`,
    command_url: `${base}/cmd/${where}`,
    ...(wantsEvents ? { event_url: `${base}/event/${where}` } : {}),
    infohash: session.identity.infohashHex,
    playback_session_id: session.id,
    is_live: session.kind === "live" ? 1 : 0,
    is_encrypted: 0,
    client_session_id: session.clientSessionId,
  };
}
