/** For the operator of the engine: `/metrics`, `/healthz`, `/readyz`. The rule for addresses is the usual one. */
import type { Hono } from "hono";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import { EXPOSITION_TYPE } from "../metrics/exposition.ts";
import type { HttpEnv, HttpParts } from "./context.ts";
import { text } from "./guard.ts";

/** A database that takes longer for one row is not ready, ms: probes usually wait for less than 5 s. */
const DATABASE_TIMEOUT_MS = 2000;

/** No cache may keep a momentary state. */
const FRESH = { "cache-control": "no-store", "cross-origin-resource-policy": "same-origin" } as const;

/** Adds the routes. */
export function addOperatingRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  for (const path of ["/metrics", "/healthz", "/readyz"]) {
    app.use(path, async (c, next) => {
      // The figures reveal what is being watched, how much and when.
      if (c.get("caller").page.relation === "foreign") return text("not for pages", 403, FRESH);
      await next();
    });
  }
  app.get("/metrics", () => new Response(parts.scrape(), { headers: { "content-type": EXPOSITION_TYPE, ...FRESH } }));
  app.get("/healthz", () => text("ok", 200, FRESH));
  app.get("/readyz", async () => {
    const trouble = parts.api.closing.aborted ? "the engine is closing" : await databaseTrouble(parts);
    return trouble === null ? text("ready", 200, FRESH) : text(`not ready: ${trouble}`, 503, FRESH);
  });
}

/** Why playlists and settings are unavailable, null when they are available. */
async function databaseTrouble({ api, clock }: HttpParts): Promise<string | null> {
  const late = deadline(clock, DATABASE_TIMEOUT_MS, api.closing, () => new MillraceError("timeout", "no answer"));
  try {
    return await withSignal(api.playlist.isLoaded(), late.signal) ? null : "the database cannot be read";
  } catch {
    return "the database does not respond";
  } finally {
    late.cancel();
  }
}
