/**
 * `fetch` that looks names up with the engine's own resolver: the one of the runtime waits for a thread that silent servers
 * may hold for minutes.
 */
import net from "node:net";
import { canonicalHost } from "../../src/discovery/addresses.ts";
import { deadline } from "../../src/bytes/deadline.ts";
import { gunzipped } from "../../src/bytes/gunzip.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import type {
  AddressRace,
  Clock,
  FetchOptions,
  HttpClientAnswer,
  HttpClientPort,
  NetworkPort,
  Racers,
  Route,
} from "../../src/ports.ts";
import { VERSION } from "../../src/version.ts";

/** Addresses of one name that are tried at most, and the deadline of each while others are left, ms. */
const MAX_ADDRESSES = 4;
const ATTEMPT_MS = 5000;
/** Statuses whose responses have no body (RFC 9110, section 6.4.1; 205: section 15.3.6). */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** What it needs. */
export interface FetchParts {
  readonly httpClient: HttpClientPort;
  readonly network: Pick<NetworkPort, "resolve">;
  readonly clock: Clock;
}

/**
 * A `fetch`. GET and HEAD requests that leave redirects to the caller go over `httpClient`, to addresses that were looked up
 * here; all else is the runtime's own fetch.
 */
export function createFetch({ httpClient, network, clock }: FetchParts): typeof fetch {
  return async (input, init: FetchOptions = {}) => {
    const url = new URL(input instanceof Request ? input.url : String(input));
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const method = init.method ?? "GET";
    const { isLenient = false, proxy, localAddress } = init;
    const isLiteral = net.isIP(host) !== 0 || canonicalHost(host) !== null;
    const isOurs = !(input instanceof Request) && /^https?:$/.test(url.protocol) && init.redirect === "manual" &&
      (method === "GET" || method === "HEAD");
    if (!isOurs && (proxy !== undefined || localAddress !== undefined)) {
      throw new MillraceError("unavailable", "a request of this kind cannot be sent by a chosen way");
    }
    if (!isOurs) return await globalThis.fetch(input, init);
    const signal = init.signal ?? new AbortController().signal;
    const headers = new Headers(init.headers);
    if (!headers.has("user-agent")) headers.set("user-agent", `millrace/${VERSION}`);
    if (!headers.has("accept")) headers.set("accept", "*/*");
    const route = { ...(proxy && { proxy }), ...(localAddress && { localAddress }) };
    const addresses = isLiteral ? [host] : await addressesOf(host, route, network, signal);
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    const racers = { addresses, port, signal, ...(localAddress && { localAddress }) };
    const answer = await openOne(
      httpClient.race,
      racers,
      clock,
      (address, limited) => httpClient.open({ url, address, method, headers, isLenient, signal: limited, ...route }),
    );
    const status = answer.status < 200 || answer.status > 599 ? 502 : answer.status;
    if (BODILESS.has(status)) {
      await answer.body.cancel().catch(() => {});
      return new Response(null, { status, headers: answer.headers });
    }
    return unpackedResponse(answer, status);
  };
}

/** Where to connect for the name `host`. A proxy looks names up itself; an address of ours reaches those of its own family. */
async function addressesOf(
  host: string,
  { proxy, localAddress }: Route,
  network: Pick<NetworkPort, "resolve">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (proxy !== undefined) return [host];
  if (localAddress === undefined) return await network.resolve(host, { signal });
  const found = await network.resolve(host, { signal, localAddresses: [localAddress] });
  const usable = found.filter((address) => net.isIP(address) === net.isIP(localAddress));
  if (usable.length === 0) throw new MillraceError("not_found", `${host} has no address that ${localAddress} reaches`);
  return usable;
}

async function openOne(
  race: AddressRace | undefined,
  racers: Racers,
  clock: Clock,
  open: (address: string, signal: AbortSignal) => Promise<HttpClientAnswer>,
): Promise<HttpClientAnswer> {
  const { signal } = racers;
  const addresses = await race?.order(racers) ?? racers.addresses.slice(0, MAX_ADDRESSES);
  for (const address of addresses.slice(0, -1)) {
    const limit = deadline(clock, ATTEMPT_MS, undefined);
    try {
      return await open(address, AbortSignal.any([signal, limit.signal]));
    } catch (error) {
      if (signal.aborted || !(limit.signal.aborted || hasCode(error, "connection_failed"))) throw error;
      race?.forget(racers);
    } finally {
      limit.cancel();
    }
  }
  return await open(addresses[addresses.length - 1]!, signal);
}

/** Some servers compress what they send although nobody asked for it. */
function unpackedResponse({ headers, body }: HttpClientAnswer, status: number): Response {
  const coding = (headers.get("content-encoding") ?? "").trim().toLowerCase();
  if (coding !== "gzip" && coding !== "x-gzip") return new Response(body, { status, headers });
  const rest = new Headers(headers);
  for (const name of ["content-encoding", "content-length"]) rest.delete(name);
  const damaged = (cause: unknown) => new MillraceError("protocol_violation", "the answer is damaged", { cause });
  return new Response(gunzipped(body, damaged) as BodyInit, { status, headers: rest });
}
