/** Every request gets an id, and is counted and logged by its route. */
import type { Hono } from "hono";
import { matchedRoutes } from "hono/route";
import type { Logger } from "../ports.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";

/** Methods counted separately; a client may send any word. */
const METHODS: readonly string[] = ["GET", "HEAD", "POST", "OPTIONS"];

/** Characters of a session's id that are logged: enough to follow one session. Controlling it needs the whole id. */
const SHOWN_ID_CHARS = 8;

/** Adds the middleware; before all others, so that requests they refuse are counted, too. */
export function addRequestLog(app: Hono<HttpEnv>, parts: HttpParts): void {
  // Ids of one run count up; those of another run have another beginning.
  const run = crypto.randomUUID().slice(0, 6);
  let count = 0;
  app.use(async (c, next) => {
    const beganMs = parts.clock.monotonic();
    const requestId = `${run}-${(count++).toString(36)}`;
    c.set("requestId", requestId);
    await next();
    const { status } = c.res;
    const route = routeOf(c, parts.prefixes);
    const method = METHODS.includes(c.req.raw.method) ? c.req.raw.method : "other";
    const ms = parts.clock.monotonic() - beganMs;
    parts.metrics.requests.add({ route, method, status: String(status) });
    parts.metrics.requestSeconds.observe({ route }, ms / 1000);
    c.res.headers.set("x-request-id", requestId);
    // The route, not the address: addresses hold tokens and ids of sessions.
    parts.log.log("debug", "request", { request: requestId, method, route, status, ms: Math.round(ms) });
  });
}

/** A log whose lines name the request of `c`. */
export function logOf(c: HttpContext, parts: Pick<HttpParts, "log">): Logger {
  return parts.log.child({ request: c.get("requestId") });
}

/** What the log calls a session. */
export function shownId(sessionId: string): string {
  return sessionId.slice(0, SHOWN_ID_CHARS);
}

/** Pattern of the route that answered, with `engine` for each alias of it; `none` where there is no route. */
function routeOf(c: HttpContext, prefixes: readonly string[]): string {
  const route = matchedRoutes(c).findLast(({ path }) => !path.endsWith("*"))?.path;
  if (route === undefined) return "none";
  const prefix = prefixes.find((name) => route.startsWith(`/${name}/`));
  return prefix === undefined ? route : `/engine${route.slice(prefix.length + 1)}`;
}
