/** Responses to requests that no route takes, and to those whose route failed. */
import type { Hono } from "hono";
import type { HttpEnv, HttpParts } from "./context.ts";
import { publicError } from "./errors.ts";
import { text } from "./guard.ts";
import { logOf } from "./request-log.ts";

/** Adds both. */
export function addFailures(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.notFound(() => text("not found", 404));
  app.onError((error, c) => {
    const told = publicError(error);
    // 502, 503 and 504 are the state of the world, or of a flood: at level "error" it would fill the log.
    const isOurs = told.status === 500 || told.status === 507;
    logOf(c, parts).log(isOurs ? "error" : "debug", "a request failed", {
      status: told.status,
      error,
    });
    return text(told.message, told.status === 499 ? 503 : told.status);
  });
}
