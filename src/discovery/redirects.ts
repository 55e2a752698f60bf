/** Follows redirects of servers that a torrent names. */
import { withSignal } from "../bytes/deadline.ts";
import { type ErrorCode, MillraceError } from "../errors.ts";
import { isLocalName } from "./addresses.ts";

/** Redirects followed at most. */
const MAX_REDIRECTS = 5;

/** A `fetch` that refuses every address, for engines that were given no `fetch` for the public network. */
export function refuseAll(): Promise<Response> {
  return Promise.reject(new MillraceError("denied", "requests to servers named by remote callers are disabled"));
}

/** Headers and signal of each request. */
export interface RedirectedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * GETs `start` and follows redirects itself: a server on the public network may not redirect us to an address inside
 * ours, because a hostile torrent could then make us call services that trust this machine. Rejects with `denied` in
 * that case, with `code` for redirects that lead nowhere, or as `fetch` and the signal say.
 */
export async function fetchRedirected(
  fetch: typeof globalThis.fetch,
  start: string,
  { headers, signal }: RedirectedRequest,
  code: ErrorCode,
): Promise<Response> {
  let url = start;
  for (let redirects = 0;; redirects++) {
    const response = await withSignal(fetch(url, { signal, redirect: "manual", headers }), signal);
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || location === null) return response;
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw new MillraceError(code, "too many redirects");
    const next = URL.canParse(location, url) ? new URL(location, url) : null;
    if (next === null || (next.protocol !== "http:" && next.protocol !== "https:")) {
      throw new MillraceError(code, "redirected to something that is not an HTTP address");
    }
    if (isLocalName(next.hostname) && !isLocalName(new URL(url).hostname)) {
      throw new MillraceError("denied", "redirected from the public network to a local address");
    }
    url = next.href;
  }
}
