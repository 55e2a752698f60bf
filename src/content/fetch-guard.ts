/**
 * Fetching addresses that callers give: B27. Limits on size, time and redirects hold for everyone; targets inside this
 * machine or its private networks are only for callers on this machine, so that the engine is no way around a firewall.
 */
import ipaddr from "ipaddr.js";
import { abortError, MillraceError } from "../errors.ts";
import type { Ports } from "../ports.ts";
import { deadline } from "../bytes/deadline.ts";
import { readBounded } from "../bytes/read-bounded.ts";

/** What one guarded fetch may cost. */
export interface FetchLimits {
  /** Largest body, bytes. */
  readonly maxBytes: number;
  /** For the whole exchange, redirects included. */
  readonly timeoutMs: number;
  /** Whether private, loopback and link-local targets are allowed (the caller is on this machine, or the option says so). */
  readonly allowPrivate: boolean;
}

/** Redirects followed at most; browsers allow 20, nothing honest needs more than a few. */
const MAX_REDIRECTS = 5;

/** A body and where it came from in the end. */
export interface FetchedBody {
  readonly bytes: Uint8Array;
  readonly url: string;
  readonly contentType: string | null;
}

/** True for an address that is reachable from anywhere; false for private, loopback, link-local, multicast and the like. */
export function isPublicAddress(host: string): boolean {
  if (!ipaddr.isValid(host)) return false;
  const address = ipaddr.process(host);
  return address.range() === "unicast";
}

/**
 * GETs `url` within `limits`. Throws `invalid_argument` (not http/https), `denied` (private target), `too_large`,
 * `timeout`, `not_found` (404/410) or `connection_failed`.
 */
export async function guardedFetch(
  ports: Pick<Ports, "fetch" | "network" | "clock">,
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
    let target = parseHttpUrl(url);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      if (!limits.allowPrivate) await requirePublic(ports, target, late.signal);
      const response = await ports.fetch(target.href, { redirect: "manual", signal: late.signal });
      const location = response.headers.get("location");
      if (response.status >= 300 && response.status < 400 && location !== null) {
        await response.body?.cancel();
        target = parseHttpUrl(new URL(location, target).href);
        continue;
      }
      if (!response.ok) {
        await response.body?.cancel();
        const code = response.status === 404 || response.status === 410 ? "not_found" : "connection_failed";
        throw new MillraceError(code, `${target.host} answered ${response.status}`);
      }
      const bytes = await readBody(response, limits.maxBytes);
      return { bytes, url: target.href, contentType: response.headers.get("content-type") };
    }
    throw new MillraceError("connection_failed", `more than ${MAX_REDIRECTS} redirects from ${hostOf(url)}`);
  } catch (error) {
    if (late.signal.aborted) throw abortError(late.signal);
    if (error instanceof MillraceError) throw error;
    throw new MillraceError("connection_failed", `${hostOf(url)} could not be reached`, { cause: error });
  } finally {
    late.cancel();
  }
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "the address";
}

function parseHttpUrl(url: string): URL {
  if (!URL.canParse(url)) {
    throw new MillraceError("invalid_argument", "invalid url: an http or https address is expected");
  }
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new MillraceError("invalid_argument", "invalid url: only http and https are fetched");
  }
  return parsed;
}

async function requirePublic(ports: Pick<Ports, "network">, url: URL, signal: AbortSignal): Promise<void> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = ipaddr.isValid(host) ? [host] : await ports.network.resolve(host, { signal });
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) {
    throw new MillraceError(
      "denied",
      `${url.host} is inside a private network: only callers on this machine may name it`,
    );
  }
}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = () => new MillraceError("too_large", `the answer is larger than ${maxBytes} bytes`);
  if (Number(response.headers.get("content-length") ?? 0) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge();
  }
  return await readBounded(response.body, maxBytes, tooLarge);
}
