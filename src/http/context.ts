/** What every route gets: the engine's parts and facts about the request that the access check found. */
import type { Context } from "hono";
import type { Sessions } from "../playback/sessions.ts";
import type { CacheFigures } from "../playback/stat.ts";
import type { Clock, Logger, RequestInfo, RuntimeFacts } from "../ports.ts";
import type { AccessPolicy, AddressClass } from "./address.ts";
import type { ApiParts } from "./api/parts.ts";
import { baseUrl } from "./base-url.ts";

/** Parts of the engine that routes use. */
export interface HttpParts {
  readonly sessions: Sessions;
  /** How full the piece cache is now. */
  readonly cacheFigures: () => CacheFigures;
  readonly policy: AccessPolicy;
  readonly publicUrl: string | null;
  /** Prefixes that serve playback, `engine` first. */
  readonly prefixes: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: RuntimeFacts;
  /** What the JSON method API needs besides. */
  readonly api: Omit<ApiParts, "policy" | "clock" | "log" | "runtime" | "pictures">;
}

/** Hono's variables. */
export interface HttpEnv {
  Bindings: { info: RequestInfo };
  Variables: { clientHost: string; addressClass: AddressClass };
}

/** A route's context. */
export type HttpContext = Context<HttpEnv>;

/** Base of absolute URLs in the answer to `c`. */
export function baseOf(c: HttpContext, parts: HttpParts): string {
  return baseUrl(c.req.raw, c.env.info, parts.policy, parts.publicUrl);
}
