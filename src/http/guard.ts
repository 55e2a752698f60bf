/** What every request passes before a route sees it: the Host check, the address rule, and the rule for pages. */
import type { Hono } from "hono";
import { type Caller, hostField } from "./address.ts";
import { API_CODES, ApiError } from "./api/codes.ts";
import { failure } from "./api/dispatch.ts";
import { isApiPath } from "./api-routes.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { allowReading } from "./page-fields.ts";
import type { Page } from "./page.ts";
import { requestCaller } from "./request-caller.ts";
import { sessionNamedBy } from "./sent-sessions.ts";

/** Fields that such pages may send with a playback request. */
const ALLOWED_FIELDS = "range, if-range, if-none-match, content-type, cache-control";
/** How long a browser may keep the response to a preflight, s. */
const PREFLIGHT_AGE_S = 600;

/** Caller of a request that the embedding program has checked. */
const LOCAL: Caller = { host: "127.0.0.1", addressClass: "loopback", mayBeLocal: true, isForwarded: false };

/** Adds the checks that every request has to pass. */
export function addGuard(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.use(async (c, next) => {
    const refused = await refusal(c, parts);
    if (refused !== null) return refused;
    await next();
    // Browsers must not take anything for a page or a script because of the content of a stranger's file.
    if (!c.res.headers.has("x-content-type-options")) c.res.headers.set("x-content-type-options", "nosniff");
  });
}

/** Adds the rule for pages to the paths of playback. */
export function addPageGuard(app: Hono<HttpEnv>, parts: HttpParts): void {
  addPageRule(app, parts, [...parts.prefixes.map((prefix) => `/${prefix}/*`), "/hls/*"]);
}

/** How pages may use some paths, where that differs from playback. */
export interface PageRules {
  /** Pages of every origin may use them. Default false. */
  readonly anyPage?: boolean;
  /** Fields that pages may send besides those of playback, separated by commas. */
  readonly fields?: string;
  /** Methods besides those of playback. */
  readonly methods?: string;
}

/**
 * Adds the rule for pages to `paths`: pages of other origins play nothing, unless the user allows them.
 */
export function addPageRule(
  app: Hono<HttpEnv>,
  parts: Pick<HttpParts, "policy" | "sentSessions">,
  paths: readonly string[],
  rules: PageRules = {},
): void {
  for (const path of paths) {
    app.use(path, async (c, next) => {
      const { page } = c.get("caller");
      if (page.relation !== "foreign") {
        await next();
      } else if (parts.sentSessions.has(sessionNamedBy(new URL(c.req.url)))) {
        // The address itself is the permission. The page must read no addresses other than those that it leads to.
        c.set("page", { relation: "none", origin: null });
        if (c.req.method === "OPTIONS") c.res = preflight(c, rules);
        else await next();
        allowReading(c.res.headers, page.origin ?? "*");
      } else if (!rules.anyPage && !parts.policy.allowsOrigin(page.origin)) {
        c.res = refusedPage(page);
      } else {
        if (c.req.method === "OPTIONS") c.res = preflight(c, rules);
        else await next();
        allowReading(c.res.headers, rules.anyPage ? "*" : page.origin!);
      }
      c.res.headers.append("vary", "origin, referer, sec-fetch-site");
    });
  }
}

/** What to do about callers behind a proxy of whom nothing is known. */
const REMEDIES = {
  untrusted: ": a proxy passed the request on; see --trust-proxy",
  silent: ": the trusted proxy passed the request on without saying for whom; have it send X-Forwarded-For",
  bare:
    ": it comes from a trusted proxy, but has none of X-Forwarded-For, Forwarded and X-Real-IP; have the proxy send one",
  unmarked:
    ": --public-url says that a reverse proxy passes requests on; have it send X-Forwarded-For, and see --trust-proxy",
} as const;

async function refusal(c: HttpContext, parts: HttpParts): Promise<Response | null> {
  if (!parts.policy.allowsHostHeader(hostField(c.req.raw))) {
    return text("misdirected request: this Host is not served here; see --allowed-host", 421);
  }
  if (await parts.isOwnRequest(c.req.raw.headers)) {
    return text("loop detected: this engine sent the request itself", 508);
  }
  const caller = c.env.isChecked ? LOCAL : parts.policy.callerOf(c.req.raw, c.env.info);
  if (!parts.policy.allows(caller.addressClass)) {
    const why = "access from this address is not allowed" +
      (caller.unknownBehind === undefined ? "" : REMEDIES[caller.unknownBehind]);
    return isApiPath(c.req.path) ? failure(new ApiError(API_CODES.accessDenied, why, 403)) : text(why, 403);
  }
  const received = { request: c.req.raw, info: c.env.info, requestId: c.get("requestId"), caller };
  const found = requestCaller(received, parts.policy, parts.publicUrl);
  c.set("caller", found);
  c.set("page", found.page);
  return null;
}

function refusedPage(page: Page): Response {
  const who = page.origin === null ? "a page that does not say where it comes from" : `a page of ${page.origin}`;
  const remedy = page.origin === null
    ? "open the address in a player, or type it into the browser"
    : `if you trust that site, start the engine with --allow-origin ${page.origin}`;
  return text(`${who} may not play here: ${remedy}`, 403, {
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
  });
}

function preflight(c: HttpContext, { fields, methods }: PageRules): Response {
  const headers = new Headers({
    "access-control-allow-methods": ["GET, HEAD, POST", ...methods ? [methods] : []].join(", "),
    "access-control-allow-headers": [ALLOWED_FIELDS, ...fields ? [fields] : []].join(", "),
    "access-control-max-age": String(PREFLIGHT_AGE_S),
  });
  // Private Network Access: the page belongs to the public network, the engine does not.
  if (c.req.header("access-control-request-private-network") === "true") {
    headers.set("access-control-allow-private-network", "true");
  }
  return new Response(null, { status: 204, headers });
}

/** A response of one line. */
export function text(message: string, status: number, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(`${message}\n`, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", ...headers },
  });
}
