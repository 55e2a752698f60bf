/** Asks servers that torrents name, for callers that may not reach into the private network. */
import type { FetchOptions } from "../ports.ts";
import { type FetchPorts, guardedOpen } from "./fetch-guard.ts";

/** Time until the head of the response has arrived, ms; callers have shorter limits of their own. */
const TIMEOUT_MS = 30_000;

/**
 * A `fetch` for GET that reaches the public network alone, redirects included. It supports the options `headers` (a
 * plain record), `signal` and `isLenient`.
 *
 * @throws `invalid_argument`, `denied`, `not_found`, `too_large`, `timeout`, `protocol_violation`, `connection_failed`,
 * or the signal's reason: as `guardedOpen`; `denied` for private targets
 */
export function createPublicFetch(ports: FetchPorts): typeof fetch {
  return async (input, init: FetchOptions = {}) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const url = input instanceof Request ? input.url : String(input);
    const signal = init.signal ?? new AbortController().signal;
    const { isLenient = false } = init;
    const options = { headers, timeoutMs: TIMEOUT_MS, allowPrivate: false, isLenient };
    const opened = await guardedOpen(ports, url, options, signal);
    const { status } = opened;
    if (status >= 200 && status !== 204 && status !== 205 && status !== 304) {
      return new Response(opened.body, { status, headers: opened.headers });
    }
    await opened.body.cancel();
    return new Response(null, { status: status < 200 ? 502 : status, headers: opened.headers });
  };
}
