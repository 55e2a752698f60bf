/** What a browser says about the page behind a request. */

/** How a page stands to the engine. `none`: no page, or the user's own doing. */
export type PageOrigin = "none" | "same" | "foreign";

/**
 * The page that sent `request`. `Origin` is compared with the engine's own; `Sec-Fetch-Site` (Fetch Metadata) is sent by
 * browsers also where `Origin` is not, and a page can forge neither. `own` is the engine's base URL for this request.
 */
export function pageOrigin(request: Request, own: string): PageOrigin {
  const origin = request.headers.get("origin");
  const site = request.headers.get("sec-fetch-site");
  if (origin !== null && origin.toLowerCase() !== new URL(own).origin) return "foreign";
  if (site !== null && site !== "same-origin" && site !== "none") return "foreign";
  return origin !== null || site === "same-origin" ? "same" : "none";
}

/** Whether B23's strict rule passes: an `Origin` or `Sec-Fetch-Site` may be absent, else only same-origin. */
export function isStrictlySameOrigin(request: Request, own: string): boolean {
  return pageOrigin(request, own) !== "foreign" && request.headers.get("sec-fetch-site") !== "none";
}
