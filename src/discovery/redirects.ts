/** Follows redirects of servers that a torrent names. */
import { withSignal } from "../bytes/deadline.ts";
import { authorizationOf, withoutCredentials } from "../bytes/url-credentials.ts";
import { type ErrorCode, MillraceError } from "../errors.ts";
import type { FetchOptions } from "../ports.ts";
import { isLocalName } from "./addresses.ts";

/** Redirects followed at most. */
const MAX_REDIRECTS = 5;

/** A `fetch` that refuses every address, for engines that were given no `fetch` for the public network. */
export function refuseAll(): Promise<never> {
  return Promise.reject(new MillraceError("denied", "requests to servers named by remote callers are disabled"));
}

/** How servers that a torrent names are reached. */
export interface TorrentFetches {
  /** For the address that the torrent names; may refuse it. */
  readonly fetch: typeof globalThis.fetch;
  /** Reaches the public network alone. */
  readonly publicFetch: typeof globalThis.fetch;
}

/** Headers and signal of each request. */
export interface RedirectedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** As `HttpClientRequest.isLenient`. */
  readonly isLenient?: boolean;
  /** Called with the address of each redirect before it is followed. */
  readonly onRedirect?: (url: URL) => void;
}

/**
 * GETs `start` and follows redirects itself: a server on the public network may not redirect us to an address inside
 * ours, because a hostile torrent could then make us call services that trust this machine. From a server that is not
 * plainly a local one, other hosts are reached by `publicFetch`, which looks their names up and refuses private ones.
 * Credentials in a URL become an `Authorization` field for its origin, as `fetch` refuses such URLs.
 * Rejects with `denied` in these cases, with `code` for redirects that lead nowhere, or as the fetches and the signal say.
 */
export async function fetchRedirected(
  { fetch, publicFetch }: TorrentFetches,
  start: string,
  { headers, signal, isLenient = false, onRedirect }: RedirectedRequest,
  code: ErrorCode,
): Promise<Response> {
  let url = withoutCredentials(start);
  let authorization = URL.canParse(start) ? authorizationOf(new URL(start)) : null;
  let get = fetch;
  for (let redirects = 0;; redirects++) {
    const fields = authorization === null ? headers : { ...headers, authorization };
    const options: FetchOptions = { signal, redirect: "manual", headers: fields, isLenient };
    const response = await withSignal(get(url, options), signal);
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || location === null) return response;
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw new MillraceError(code, "too many redirects");
    const next = URL.canParse(location, url) ? new URL(location, url) : null;
    if (next === null || (next.protocol !== "http:" && next.protocol !== "https:")) {
      throw new MillraceError(code, "redirected to something that is not an HTTP address");
    }
    const { hostname, origin } = new URL(url);
    if (!isLocalName(hostname)) {
      if (isLocalName(next.hostname)) {
        throw new MillraceError("denied", "redirected from the public network to a local address");
      }
      if (next.hostname !== hostname) get = publicFetch;
    }
    authorization = authorizationOf(next) ?? (next.origin === origin ? authorization : null);
    url = withoutCredentials(next.href);
    onRedirect?.(next);
  }
}
