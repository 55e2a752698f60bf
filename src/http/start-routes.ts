/** `/engine/getstream` and `/engine/manifest.m3u8`: section 4.1 of the HTTP API. */
import type { Hono } from "hono";
import { MAX_TRANSPORT_FILE_BYTES } from "../content/resolve.ts";
import { selectStream, type StreamSelector } from "../content/selector.ts";
import { MillraceError } from "../errors.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { OutputKind } from "../playback/session-base.ts";
import type { BodyHold, Leave } from "./admission.ts";
import { callerOf, holderOf, sessionHolderOf } from "./caller.ts";
import { baseOf, type HttpContext, type HttpEnv, type HttpParts } from "./context.ts";
import { playbackFailure, publicError } from "./errors.ts";
import { sessionOwner } from "./page.ts";
import { parsePlaybackParams, type PlaybackParams, transcodingOf, wantsSingleReader } from "./playback-params.ts";
import { isSigned } from "./playlist-key.ts";
import { readBody } from "./request-body.ts";
import { OUTPUT_TYPES } from "./stream-routes.ts";

/** `getfile` is our addition: the file as it is, for players that read its container themselves. */
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
}

async function start(c: HttpContext, parts: HttpParts, prefix: string, output: OutputKind): Promise<Response> {
  let wantsJson = c.req.query("format") === "json";
  const holder = holderOf(c, parts);
  const hold = parts.admission.body(holder);
  let leave: Leave | null = null;
  try {
    const params = parsePlaybackParams(new URL(c.req.url).searchParams);
    wantsJson = params.format === "json";
    if (c.req.raw.method === "HEAD") {
      selectorOf(params);
      return c.body(null, 200, {
        "content-type": output === "file" ? "application/octet-stream" : OUTPUT_TYPES[output],
      });
    }
    leave = parts.admission.enter(holder);
    const selector = c.req.method === "POST" ? await postedSelector(c, parts, params, hold) : selectorOf(params);
    const session = await parts.sessions.start({
      selector,
      output,
      fileIndex: params._idx,
      pid: params.pid ?? params.sid,
      clientHost: c.get("clientHost"),
      caller: callerOf(c),
      owner: sessionOwner(c.req.raw, c.get("page")),
      holder: sessionHolderOf(c, parts),
      // No page of another origin looks around in the user's network; what is signed, the user chose.
      callerIsLocal: await isSigned(parts.api.token, params.key, selector) ||
        c.get("addressClass") === "loopback" && c.get("page").relation !== "foreign",
      preferredAudioLanguage: params.preferred_audio_language ?? null,
      transcode: output === "file" ? null : transcodingOf(params),
      clientSessionId: params.client_session_id ?? -1,
      useApiStop: params.use_api_stop ?? false,
      stopNotifications: params.use_stop_notifications ?? false,
      forceRestart: params.force_session_restart ?? false,
      singleReader: wantsSingleReader(params),
      selectedIndexes: params.playlist_selected_indexes ?? null,
      nextIndexes: params.next_file_indexes ?? null,
      // Middleware shows the progress; a player that is redirected is told by status what can't be played.
      atOnce: wantsJson,
      signal: c.req.raw.signal,
    });
    const base = `${baseOf(c, parts)}/${prefix}`;
    const playback = playbackUrl(base, session);
    if (!wantsJson) return c.body(null, 302, { location: playback });
    return c.json({ response: startResponse(base, session, playback, params), error: null });
  } catch (error) {
    const told = publicError(error);
    // Starts that fail because the engine ends are no news to the person who ended it.
    const level = told.status >= 500 && !parts.sessions.isClosing ? "warn" : "debug";
    parts.log.log(level, "a stream did not start", {
      message: told.message,
      status: told.status,
      error,
    });
    if (wantsJson) return c.json({ response: null, error: told.message });
    return playbackFailure(error);
  } finally {
    hold.release();
    leave?.();
  }
}

function selectorOf(params: PlaybackParams): StreamSelector {
  return selectStream({ ...params, content_id: params.content_id ?? params.id });
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

function playbackUrl(base: string, session: AnySession): string {
  const where = `${session.identity.infohashHex}/${session.id}`;
  if (session.identity.output === "hls") return `${base}/m/${where}.m3u8`;
  return session.kind === "file" && session.identity.output === "file"
    ? `${base}/f/${where}/${encodeURIComponent(session.file.name)}`
    : `${base}/r/${where}`;
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
