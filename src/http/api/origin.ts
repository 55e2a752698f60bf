/** How the JSON API judges the page behind a request. */
import { type Page, pageOf } from "../page.ts";

/** How a page stands to the engine: see `Page`. */
export type PageOrigin = Page["relation"];

/** How the page that sent `request` stands to the engine; `own` is the engine's base URL for this request. */
export function pageOrigin(request: Request, own: string): PageOrigin {
  return pageOf(request, own).relation;
}

/** Whether a request may have the access token: sent by a program or one of the engine's own pages, not by opening an address. */
export function isStrictlySameOrigin(request: Request, own: string): boolean {
  return pageOrigin(request, own) !== "foreign" && request.headers.get("sec-fetch-site") !== "none";
}
