/** `/engine/stat`, `/engine/cmd`, `/engine/event`: section 4.2 of the HTTP API, B11–B15. */
import type { Hono } from "hono";
import { MillraceError } from "../errors.ts";
import type { AnySession } from "../playback/sessions.ts";
import { statOf } from "../playback/stat.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { UNKNOWN_SESSION } from "./stream-routes.ts";

/** Longest activity timeout a client may set. */
const MAX_ACTIVITY_TIMEOUT_S = 86_400;

/** Adds the routes under every prefix. */
export function addControlRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  for (const prefix of parts.prefixes) {
    const withSession =
      (handle: (c: HttpContext, session: AnySession) => Response | Promise<Response>) => (c: HttpContext) => {
        const session = parts.sessions.find(c.req.param("infohash") ?? "", c.req.param("id") ?? "");
        return session === null ? c.json({ response: null, error: UNKNOWN_SESSION }) : handle(c, session);
      };
    app.get(
      `/${prefix}/stat/:infohash/:id`,
      withSession((c, session) => {
        if (c.req.query("skip_player_activity") !== "1") session.touch();
        const word = prefix === "engine" ? "prefuf" : "prebuf";
        return c.json({ response: statOf(session, parts.cacheFigures(), word), error: null });
      }),
    );
    app.get(`/${prefix}/cmd/:infohash/:id`, withSession(command));
    app.get(
      `/${prefix}/event/:infohash/:id`,
      withSession(async (c, session) => {
        if (c.req.raw.method === "HEAD") return c.body(null, 200);
        return c.json({ response: await session.events.next(parts.clock, c.req.raw.signal), error: null });
      }),
    );
  }
}

function command(c: HttpContext, session: AnySession): Response {
  const ok = () => c.json({ response: "ok", error: null });
  const failed = (error: string) => c.json({ response: null, error });
  if (c.req.raw.method === "HEAD") return c.body(null, 200);
  switch (c.req.query("method")) {
    case "stop":
      session.stop("stop command");
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
      // Clients hand back what `livepos` said, or a time with a fraction.
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
      return failed("unknown method");
  }
}
