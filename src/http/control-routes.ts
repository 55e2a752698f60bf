/** `/engine/stat`, `/engine/cmd`, `/engine/event`: section 4.2 of the HTTP API. */
import type { Hono } from "hono";
import { MillraceError } from "../errors.ts";
import type { AnySession } from "../playback/sessions.ts";
import { detailOf, statOf } from "../playback/stat.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { shortened } from "./errors.ts";
import { UNKNOWN_SESSION } from "./stream-routes.ts";

/** Longest activity timeout a client may set. */
const MAX_ACTIVITY_TIMEOUT_S = 86_400;

/** Adds the routes under every prefix. */
export function addControlRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  for (const prefix of parts.prefixes) {
    const withSession =
      (handle: (c: HttpContext, session: AnySession) => Response | Promise<Response>) => (c: HttpContext) => {
        const [infohash, id] = [c.req.param("infohash") ?? "", c.req.param("id") ?? ""];
        const session = mayControl(c, parts, infohash, id) ? parts.sessions.find(infohash, id) : null;
        return session === null ? c.json({ response: null, error: UNKNOWN_SESSION }) : handle(c, session);
      };
    app.get(
      `/${prefix}/stat/:infohash/:id`,
      withSession((c, session) => {
        if (c.req.query("skip_player_activity") !== "1") session.touch();
        const word = prefix === "engine" ? "prefuf" : "prebuf";
        // Addresses of peers are for the engine's own page and for programs.
        const isDetailed = c.req.query("detail") === "1" && c.get("page").relation !== "foreign";
        const stat = statOf(session, parts.cacheFigures(), word, parts.egressFacts?.());
        return c.json({ response: isDetailed ? { ...stat, ...detailOf(session) } : stat, error: null });
      }),
    );
    app.get(`/${prefix}/cmd/:infohash/:id`, (c) => {
      // Also ends a session that ended by itself: it must not come back.
      const isStop = c.req.query("method") === "stop" && c.req.raw.method !== "HEAD";
      const [infohash, id] = [c.req.param("infohash") ?? "", c.req.param("id") ?? ""];
      const isAllowed = mayControl(c, parts, infohash, id);
      const session = isAllowed ? parts.sessions.find(infohash, id) : null;
      if (isStop && isAllowed) parts.sessions.stop(infohash, id, "stop command");
      return session === null ? c.json({ response: null, error: UNKNOWN_SESSION }) : command(c, session);
    });
    app.get(
      `/${prefix}/event/:infohash/:id`,
      (c) => event(c, parts),
    );
  }
}

/**
 * The next event. With `after`, our addition, events carry an `id`: the listener sends the newest one it has, 0 at
 * first, and continues from there. So listeners take no events from each other. Remaining events of a session that
 * ended can be fetched for half a minute.
 */
async function event(c: HttpContext, parts: HttpParts): Promise<Response> {
  const [infohash, id] = [c.req.param("infohash") ?? "", c.req.param("id") ?? ""];
  const events = mayControl(c, parts, infohash, id) ? parts.sessions.eventsOf(infohash, id) : null;
  if (events === null) return c.json({ response: null, error: UNKNOWN_SESSION });
  if (c.req.raw.method === "HEAD") return c.json(null);
  const after = c.req.query("after") ?? "";
  if (!/^\d{0,15}$/.test(after)) {
    return c.json({ response: null, error: "invalid after: the id of an event is expected" });
  }
  const { signal } = c.req.raw;
  const response =
    await (after === ""
      ? events.log.next(parts.clock, signal)
      : events.log.nextAfter(Number(after), parts.clock, signal));
  // No event follows any more: a listener that continued would poll without a pause.
  return c.json({ response, error: response === null && events.hasEnded ? UNKNOWN_SESSION : null });
}

/** A page controls only sessions that it started itself, whatever other addresses it was given. */
function mayControl(c: HttpContext, parts: HttpParts, infohash: string, id: string): boolean {
  const { origin } = c.get("page");
  return origin === null || parts.sessions.ownerOf(infohash, id) === origin;
}

function command(c: HttpContext, session: AnySession): Response {
  const ok = () => c.json({ response: "ok", error: null });
  const failed = (error: string) => c.json({ response: null, error });
  if (c.req.raw.method === "HEAD") return c.json(null);
  const method = c.req.query("method") ?? "";
  switch (method) {
    case "":
      return failed("missing parameter: method");
    case "stop":
      return ok();
    case "play_now":
      if (session.kind === "file") session.cushion.skip();
      session.touch();
      return ok();
    case "set_player_activity_timeout": {
      const seconds = Number(c.req.query("timeout"));
      if (!(seconds > 0 && seconds <= MAX_ACTIVITY_TIMEOUT_S)) {
        return failed(`invalid timeout: 1 to ${MAX_ACTIVITY_TIMEOUT_S} seconds`);
      }
      session.activityTimeoutMs = seconds * 1000;
      return ok();
    }
    case "liveseek": {
      if (session.kind !== "live") return failed("liveseek: the stream is not live");
      const pos = c.req.query("pos") ?? "";
      // Clients send back a value of `livepos`, or a time with a fraction.
      const seconds = Number(pos);
      if (!/^(-1|\d{1,12}(\.\d{1,6})?)$/.test(pos)) return failed("invalid pos: Unix seconds or -1 are expected");
      try {
        session.seek(seconds < 0 ? null : seconds * 1000);
      } catch (error) {
        if (error instanceof MillraceError) return failed(error.message);
        throw error;
      }
      session.touch();
      return ok();
    }
    case "set_stream":
      return c.req.query("stream_index") === "0" ? ok() : failed("invalid stream_index: the stream has one variant, 0");
    default:
      return failed(`unknown method: ${shortened(method)}`);
  }
}
