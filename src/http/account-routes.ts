/** `/.well-known/jwks.json`: the keys that verify `engine_auth_token` (RFC 7517, RFC 8615). */
import type { Hono } from "hono";
import type { HttpEnv, HttpParts } from "./context.ts";

/** How long others may cache the response, s: after `sign_out` tokens stop verifying at the latest then. */
const MAX_AGE_S = 60;

/** Adds the route. No page of another origin may read it: the key would distinguish one user from all others. */
export function addAccountRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.get("/.well-known/jwks.json", async (c) =>
    c.json({ keys: await parts.api.signIn.publicKeys() }, 200, {
      "cache-control": `private, max-age=${MAX_AGE_S}`,
      "content-type": "application/jwk-set+json",
      "cross-origin-resource-policy": "same-origin",
      "x-content-type-options": "nosniff",
    }));
}
