/** From a selector to something a swarm can be joined with: B9, B27, B30. */
import { withSignal } from "../bytes/deadline.ts";
import { fromHex } from "../bytes/hex.ts";
import type { Discovery } from "../discovery/types.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { Ports } from "../ports.ts";
import { decodeTransportRecord } from "../transport/content-id.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../transport/limits.ts";
import { parseMagnet } from "../transport/magnet.ts";
import { parseTransportFile } from "../transport/transport-file.ts";
import type { Magnet, Metainfo } from "../transport/types.ts";
import { guardedFetch } from "./fetch-guard.ts";
import type { StreamSelector } from "./selector.ts";
import type { TransportCache } from "./transport-cache.ts";

export { MAX_TRANSPORT_FILE_BYTES };

/** For fetching a transport file by URL. */
const FETCH_TIMEOUT_MS = 20_000;

/** What was found: at least one of the two. With both, the magnet adds trackers and peers. */
export interface ResolvedTarget {
  readonly metainfo?: Metainfo;
  readonly magnet?: Magnet;
}

/** What resolving needs besides the selector. */
export interface ResolveContext {
  /** The caller is on this machine: private addresses may be fetched. */
  readonly callerIsLocal: boolean;
  readonly signal: AbortSignal;
}

/** What the resolver is made of. */
export interface ResolverParts {
  readonly ports: Pick<Ports, "fetch" | "network" | "clock">;
  readonly discovery: Pick<Discovery, "getImmutable">;
  readonly cache: TransportCache;
  /** Also lets callers elsewhere name private addresses. */
  readonly allowPrivateFetch: boolean;
  /** Joins the swarm of an infohash until its metadata is there: the third runner of the content id race. */
  readonly metadataOf: (magnet: Magnet, signal: AbortSignal) => Promise<Metainfo>;
}

/** Turns selectors into targets. */
export interface Resolver {
  /** Rejects with `invalid_argument`, `not_found`, `bad_transport_file`, `denied`, `timeout` or the signal's reason. */
  resolve(selector: StreamSelector, context: ResolveContext): Promise<ResolvedTarget>;
}

/** See `Resolver`. */
export function createResolver(parts: ResolverParts): Resolver {
  return {
    async resolve(selector, context) {
      switch (selector.kind) {
        case "transport_file":
          return { metainfo: await parseTransportFile(selector.bytes) };
        case "magnet": {
          const magnet = parseMagnet(selector.magnet);
          const known = await parts.cache.byInfohash(magnet.infohashHex);
          return known === null ? { magnet } : { metainfo: known, magnet };
        }
        case "infohash": {
          const known = await parts.cache.byInfohash(selector.infohash);
          return known === null ? { magnet: bareMagnet(selector.infohash) } : { metainfo: known };
        }
        case "url": {
          if (selector.url.startsWith("magnet:")) return { magnet: parseMagnet(selector.url) };
          const { bytes } = await guardedFetch(parts.ports, selector.url, {
            maxBytes: MAX_TRANSPORT_FILE_BYTES,
            timeoutMs: FETCH_TIMEOUT_MS,
            allowPrivate: context.callerIsLocal || parts.allowPrivateFetch,
          }, context.signal);
          return { metainfo: await parseTransportFile(bytes) };
        }
        case "content_id":
          return await resolveContentId(parts, selector.contentId, context.signal);
      }
    },
  };
}

/** The first of: a kept transport file, the DHT's transport record, the id taken for an infohash. */
async function resolveContentId(parts: ResolverParts, id: string, signal: AbortSignal): Promise<ResolvedTarget> {
  const known = await parts.cache.byContentId(id) ?? await parts.cache.byInfohash(id);
  if (known !== null) return { metainfo: known };
  const losers = new AbortController();
  const race = AbortSignal.any([signal, losers.signal]);
  const fromRecord = async (): Promise<ResolvedTarget> => {
    const bytes = await parts.discovery.getImmutable(fromHex(id), race);
    if (bytes === null) throw new MillraceError("not_found", `no transport record is known for content_id ${id}`);
    const record = decodeTransportRecord(bytes);
    return { magnet: { ...bareMagnet(record.infohashHex), name: record.name, trackers: record.trackers } };
  };
  const asInfohash = async (): Promise<ResolvedTarget> => ({ metainfo: await parts.metadataOf(bareMagnet(id), race) });
  try {
    return await withSignal(Promise.any([fromRecord(), asInfohash()]), signal);
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    const causes = error instanceof AggregateError ? error.errors : [error];
    throw causes.find((cause) => !hasCode(cause, "not_found")) ?? causes[0];
  } finally {
    losers.abort();
  }
}

/** A magnet that says nothing but the infohash. */
export function bareMagnet(infohashHex: string): Magnet {
  return {
    infohash: fromHex(infohashHex),
    infohashHex,
    name: null,
    trackers: [],
    peers: [],
    webSeeds: [],
    selectOnly: null,
  };
}
