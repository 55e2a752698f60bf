/**
 * Where open web pages of the engine wait for streams that others send them, and send reports. By POST, because then a
 * browser says which page asks.
 */
import type { Hono } from "hono";
import * as z from "zod";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { playbackFailure } from "./errors.ts";
import { text } from "./guard.ts";

const NUMBER = z.coerce.number().min(0).max(1e9).nullable().catch(null);
/** A page's report, in the query: the body stays empty. */
const REPORT = z.object({
  seat: z.string().max(64),
  turn: z.coerce.number().int().min(0),
  state: z.enum(["playing", "paused", "ended", "failed"]),
  position: NUMBER,
  duration: NUMBER,
  reason: z.string().max(2000).catch(""),
});

/** Adds the routes. Pages of other origins neither listen nor report. */
export function addPagePlayerRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const forOwnPages = (path: string, handle: (c: HttpContext) => Response) =>
    app.post(path, (c) => {
      if (c.get("caller").page.relation !== "same") {
        return text("this is for the engine's own page", 403);
      }
      try {
        return handle(c);
      } catch (error) {
        return playbackFailure(error);
      }
    });
  forOwnPages("/webui/player", (c) => {
    const { lines } = parts.pages.join(c.get("caller").clientHost, c.get("caller").addressClass === "loopback");
    return new Response(lines, {
      headers: { "content-type": "application/x-ndjson", "cache-control": "no-store", "x-accel-buffering": "no" },
    });
  });
  forOwnPages("/webui/player/report", (c) => {
    const read = REPORT.safeParse(Object.fromEntries(new URL(c.req.url).searchParams));
    if (!read.success) return text("invalid report", 400);
    const { seat, turn, state, position: positionSeconds, duration: durationSeconds, reason } = read.data;
    parts.pages.report(seat, { turn, state, positionSeconds, durationSeconds, reason });
    return c.body(null, 204);
  });
}
