/**
 * Fetching addresses that callers give. Limits on size, time and redirects hold for everyone. Targets on this machine
 * or in its networks are only for callers on this machine, so that the engine is no way around a firewall. A server of the
 * Internet redirects to the Internet alone, whoever called. For each hop the name is looked up once, every address
 * found is checked, and the connection goes to one of them.
 */
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { HttpClientAnswer, HttpClientRequest, Ports } from "../ports.ts";
import { deadline } from "../bytes/deadline.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { authorizationOf } from "../bytes/url-credentials.ts";
import { VERSION } from "../version.ts";
import { bounded, tooLarge, unpacked } from "./body-stream.ts";
import { RedirectCookies } from "./redirect-cookies.ts";
import { checkedTarget, type LookupPorts, parseHttpUrl } from "./guarded-target.ts";

/** What guarded fetching needs of the machine. */
export type FetchPorts = Pick<Ports, "httpClient" | "clock"> & LookupPorts;

/** Redirects followed at most; browsers allow 20, nothing honest needs more than a few. */
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Statuses whose responses have no body: RFC 9110, section 6.4.1. */
const BODILESS: ReadonlySet<number> = new Set([204, 304]);
/** Deadline for a response from one address while others of the same name are left to try. */
const ATTEMPT_MS = 5000;
/** Default of `GuardedOptions.idleMs`. */
const IDLE_MS = 20_000;
/** Fields that go to other origins, too: they describe the wanted content, not the client. */
const FORWARDED: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "icy-metadata",
  "range",
  "user-agent",
]);

/** How to open an address. */
export interface GuardedOptions {
  /** Default GET. */
  readonly method?: "GET" | "HEAD";
  /**
   * Request fields. `User-Agent` and `Accept-Encoding: gzip` are added if absent. After a redirect to another origin
   * only fields without secrets are sent. Credentials in the URL are sent as `Authorization: Basic`.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** Time until the head of the last response has arrived, lookups and redirects included. */
  readonly timeoutMs: number;
  /** Longest silence of the body while it is read. Default 20 000. */
  readonly idleMs?: number;
  /** A body that brings less while its reader waits, over a minute or more, errors with `timeout`. Default 0. */
  readonly minBytesPerS?: number;
  /** Largest body after unpacking, bytes. Default: no limit. */
  readonly maxBytes?: number;
  /**
   * Whether private, loopback and link-local targets are allowed (the caller is on this machine, or the option says so).
   * After a hop to the Internet they never are.
   */
  readonly allowPrivate: boolean;
  /** Whether a redirect to a magnet link is an answer; otherwise it is refused as any address that is no http. */
  readonly magnets?: boolean;
  /** As `HttpClientRequest.isLenient`. */
  readonly isLenient?: boolean;
}

/** A response that is no redirect, whatever its status; or, if asked for, one to a magnet link. */
export interface OpenedUrl {
  readonly status: number;
  readonly headers: Headers;
  /** The final address, credentials included: the base of relative addresses, not for logs. */
  readonly url: string;
  /** A server of the Internet gave the body, or a redirect to it: what the body names may not be private. */
  readonly isPublic: boolean;
  /** The magnet link that the server redirects to, as indexers do; then there is no body. */
  readonly magnet?: string;
  /** The body was sent compressed. */
  readonly isUnpacked: boolean;
  /** Decompressed, and read only as fast as it is pulled. Read it or cancel it. Errors as `guardedOpen` throws. */
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Opens `url`; `signal` ends the body, too. Throws `invalid_argument` (not http or https, a malformed field), `denied`
 * (private target), `not_found` (no such host), `too_large`, `timeout`, `protocol_violation` (a coding that was not asked
 * for), `connection_failed`, or the signal's reason.
 */
export async function guardedOpen(
  ports: FetchPorts,
  url: string,
  options: GuardedOptions,
  signal: AbortSignal,
): Promise<OpenedUrl> {
  const control = new AbortController();
  const both = AbortSignal.any([signal, control.signal]);
  const late = ports.clock.setTimeout(
    () => control.abort(new MillraceError("timeout", `no answer from ${hostOf(url)} in time`)),
    options.timeoutMs,
  );
  try {
    let target = parseHttpUrl(url);
    let headers = requestHeaders(options.headers);
    let isPublic = false;
    const cookies = new RedirectCookies();
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const checked = await checkedTarget(ports, target, options.allowPrivate && !isPublic, both);
      isPublic ||= checked.isPublic;
      const { method = "GET", isLenient = false } = options;
      const sent = cookies.added(withCredentials(headers, target), target);
      const request = { url: target, method, headers: sent, isLenient };
      const answer = await openOne(ports, request, checked.addresses, both);
      const location = REDIRECTS.has(answer.status) ? answer.headers.get("location") : null;
      if (location === null) return { ...openedUrl(ports, answer, target, options, control), isPublic };
      await answer.body.cancel().catch(() => {});
      cookies.note(target, answer.headers);
      if (options.magnets === true && /^magnet:/i.test(location)) {
        return {
          ...openedUrl(ports, { ...answer, body: nothing() }, target, options, control),
          isPublic,
          magnet: location,
        };
      }
      const next = parseHttpUrl(URL.canParse(location, target.href) ? new URL(location, target.href).href : location);
      if (next.origin !== target.origin) headers = forwarded(headers);
      target = next;
    }
    throw new MillraceError("connection_failed", `more than ${MAX_REDIRECTS} redirects from ${hostOf(url)}`);
  } catch (error) {
    control.abort(error);
    if (signal.aborted) throw abortError(signal);
    if (error instanceof MillraceError) throw error;
    throw new MillraceError("connection_failed", `${hostOf(url)} could not be reached`, { cause: error });
  } finally {
    late.cancel();
  }
}

function nothing(): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({ start: (controller) => controller.close() });
}

/** Limits of one whole guarded fetch. */
export interface FetchLimits {
  /** Largest body, bytes. */
  readonly maxBytes: number;
  /** For the whole exchange, redirects and body included. */
  readonly timeoutMs: number;
  /** As in `GuardedOptions`. */
  readonly allowPrivate: boolean;
}

/** A body and its final address. */
export interface FetchedBody {
  readonly bytes: Uint8Array;
  readonly url: string;
  readonly contentType: string | null;
}

/**
 * GETs `url` within `limits`.
 *
 * @throws `invalid_argument`, `denied`, `not_found`, `too_large`, `timeout`, `protocol_violation`, `connection_failed`,
 * or the signal's reason: as `guardedOpen`; `not_found` for 404 and 410, `connection_failed` for other failures
 */
export async function guardedFetch(
  ports: FetchPorts,
  url: string,
  limits: FetchLimits,
  signal: AbortSignal,
): Promise<FetchedBody> {
  const late = deadline(
    ports.clock,
    limits.timeoutMs,
    signal,
    () => new MillraceError("timeout", `no answer from ${hostOf(url)} in time`),
  );
  try {
    const opened = await guardedOpen(ports, url, limits, late.signal);
    await requireSuccess(opened);
    const bytes = await readBounded(opened.body, limits.maxBytes, () => tooLarge(limits.maxBytes));
    return { bytes, url: opened.url, contentType: opened.headers.get("content-type") };
  } finally {
    late.cancel();
  }
}

/** Cancels the body and throws `not_found` (404, 410) or `connection_failed` unless the status is 2xx. */
export async function requireSuccess({ status, url, body }: OpenedUrl): Promise<void> {
  if (status >= 200 && status < 300) return;
  await body.cancel();
  const code = status === 404 || status === 410 ? "not_found" : "connection_failed";
  throw new MillraceError(code, `${hostOf(url)} answered ${status}`, { detail: { status } });
}

/** Tries the addresses in turn, the one that is reached first before the others. */
async function openOne(
  ports: FetchPorts,
  request: Omit<HttpClientRequest, "address" | "signal">,
  found: readonly string[],
  signal: AbortSignal,
): Promise<HttpClientAnswer> {
  const { race } = ports.httpClient;
  const port = Number(request.url.port || (request.url.protocol === "https:" ? 443 : 80));
  const racers = { addresses: found, port, signal };
  const addresses = await race?.order(racers) ?? found;
  for (const [i, address] of addresses.entries()) {
    if (i === addresses.length - 1) return await ports.httpClient.open({ ...request, address, signal });
    const attempt = new AbortController();
    const late = ports.clock.setTimeout(() => attempt.abort(), ATTEMPT_MS);
    try {
      return await ports.httpClient.open({ ...request, address, signal: AbortSignal.any([signal, attempt.signal]) });
    } catch (error) {
      if (signal.aborted || !(attempt.signal.aborted || hasCode(error, "connection_failed"))) throw error;
      race?.forget(racers);
    } finally {
      late.cancel();
    }
  }
  throw new MillraceError("not_found", `no address is known for ${request.url.host}`);
}

function openedUrl(
  ports: FetchPorts,
  answer: HttpClientAnswer,
  url: URL,
  { method, maxBytes = null, idleMs = IDLE_MS, minBytesPerS = 0 }:
    & Pick<GuardedOptions, "method" | "idleMs" | "minBytesPerS">
    & { maxBytes?: number | null },
  control: AbortController,
): Omit<OpenedUrl, "isPublic"> {
  const headers = new Headers(answer.headers);
  if (maxBytes !== null && Number(headers.get("content-length") ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const coding = (headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  const isUnpacked = coding === "gzip" || coding === "x-gzip";
  let { body } = answer;
  if (isUnpacked) {
    // These fields describe the compressed bytes.
    for (const name of ["content-encoding", "content-length"]) headers.delete(name);
    if (method !== "HEAD" && !BODILESS.has(answer.status)) body = unpacked(body);
  } else if (coding !== "identity" && coding !== "") {
    throw new MillraceError("protocol_violation", `${url.host} answers in a coding that was not asked for`);
  }
  return {
    status: answer.status,
    headers,
    url: url.href,
    isUnpacked,
    body: bounded(body, { maxBytes, idleMs, minBytesPerS }, ports.clock, (reason) => control.abort(reason)),
  };
}

function requestHeaders(given: Readonly<Record<string, string>> = {}): Headers {
  let headers: Headers;
  try {
    headers = new Headers(given);
  } catch (cause) {
    throw new MillraceError("invalid_argument", "invalid header: it contains a character that is not allowed", {
      cause,
    });
  }
  if (!headers.has("user-agent")) headers.set("user-agent", `millrace/${VERSION}`);
  // Ranges count the bytes of the stored file, so the response must not be compressed.
  if (!headers.has("accept-encoding")) headers.set("accept-encoding", headers.has("range") ? "identity" : "gzip");
  return headers;
}

/** `headers` for another origin than they were meant for. */
function forwarded(headers: Headers): Headers {
  return new Headers([...headers].filter(([name]) => FORWARDED.has(name)));
}

/** `headers`, with the URL's own credentials (RFC 7617) unless others are given. */
function withCredentials(headers: Headers, url: URL): Headers {
  const authorization = authorizationOf(url);
  if (authorization === null || headers.has("authorization")) return headers;
  const all = new Headers(headers);
  all.set("authorization", authorization);
  return all;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "the address";
}
