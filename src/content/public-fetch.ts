/** Asking servers that torrents name, on behalf of callers who may not look around in the private network. */
import { type FetchPorts, guardedOpen } from "./fetch-guard.ts";

/** Until the head of the answer is here, ms; who asks has shorter limits of its own. */
const TIMEOUT_MS = 30_000;

/**
 * A `fetch` for GET that reaches the public network alone, redirects included. Of the options it knows `headers` (a plain
 * record) and `signal`. Rejects as `guardedOpen`: `denied` for private targets.
 */
export function createPublicFetch(ports: FetchPorts): typeof fetch {
  return async (input, init = {}) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const url = input instanceof Request ? input.url : String(input);
    const signal = init.signal ?? new AbortController().signal;
    const opened = await guardedOpen(ports, url, { headers, timeoutMs: TIMEOUT_MS, allowPrivate: false }, signal);
    const { status } = opened;
    if (status >= 200 && status !== 204 && status !== 205 && status !== 304) {
      return new Response(opened.body, { status, headers: opened.headers });
    }
    await opened.body.cancel();
    return new Response(null, { status: status < 200 ? 502 : status, headers: opened.headers });
  };
}
