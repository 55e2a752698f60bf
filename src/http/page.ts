/** What a browser says about the page behind a request. */
import { originOf } from "../bytes/origin.ts";

/**
 * The page's relation to the engine. `none`: a program, or an action of the user in the browser. `same`: a page of the
 * engine's own. `foreign`: a page of another origin, which may look around and start things in the user's name.
 */
export type Page =
  | { readonly relation: "none" | "same"; readonly origin: null }
  /** `origin` is null when the browser hides it: sandboxed frames, files, pages that send no `Referer`. */
  | { readonly relation: "foreign"; readonly origin: string | null };

const NONE: Page = { relation: "none", origin: null };
const SAME: Page = { relation: "same", origin: null };

/**
 * The page that sent `request`; `own` is the engine's base URL for this request. A page can forge none of the fields
 * read here. `Sec-Fetch-Site` (Fetch Metadata) shows that there is a page, and comes only with encrypted and loopback
 * addresses. `Origin` names the page, and is missing from images, media elements, frames and links. There `Referer`
 * names it, unless the page sends none.
 */
export function pageOf(request: Request, own: string): Page {
  const { headers } = request;
  const ownOrigin = new URL(own).origin;
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  if (origin !== null) {
    const named = originOf(origin);
    const isForeign = named !== ownOrigin || (site !== null && site !== "same-origin" && site !== "none");
    return isForeign ? { relation: "foreign", origin: named } : SAME;
  }
  if (site === "none") return NONE;
  if (site === "same-origin") return SAME;
  const referrer = headers.get("referer");
  const named = referrer === null ? null : originOf(referrer);
  if (site !== null) return { relation: "foreign", origin: named === ownOrigin ? null : named };
  if (referrer === null) return NONE;
  return named === ownOrigin ? SAME : { relation: "foreign", origin: named };
}

/**
 * The owner whose sessions a request joins, besides its address. It is the origin of a foreign page; "browser" for a
 * browser that does not say whether there is a page, as to addresses in the local network; null for programs and for
 * the user's own actions. So no page restarts the stream that the user's player plays.
 */
export function sessionOwner(request: Request, page: Page): string | null {
  if (page.relation === "foreign") return page.origin ?? "null";
  return isUntoldBrowser(request, page) ? "browser" : null;
}

/**
 * Whether a browser sent `request` without naming the page behind it: any page, or the user. This happens with a GET to an
 * address of the local network, unencrypted, from a page that sends no `Referer`.
 */
export function isUntoldBrowser(request: Request, page: Page): boolean {
  const isUntold = page.relation === "none" && request.headers.get("sec-fetch-site") === null;
  return isUntold && /^Mozilla\//.test(request.headers.get("user-agent") ?? "");
}
