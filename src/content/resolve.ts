/** From a selector to a torrent that a swarm can join. */
import { sleep, withSignal } from "../bytes/deadline.ts";
import { fromHex } from "../bytes/hex.ts";
import type { Discovery } from "../discovery/types.ts";
import type { ServerScope } from "../discovery/types.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import { decodeTransportRecord } from "../metainfo/content-id.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../metainfo/limits.ts";
import { parseMagnet } from "../metainfo/magnet.ts";
import { decodeMutableValue, type MutableMagnet, readMutableMagnet } from "../metainfo/mutable-magnet.ts";
import { type AnyMetainfo, fromPublic, parseAnyTransportFile } from "../metainfo/live.ts";
import type { Magnet } from "../metainfo/types.ts";
import { isWrapperFile, type Wrapper } from "../metainfo/wrapper.ts";
import type { FetchPorts } from "./fetch-guard.ts";
import { comesByHttp, fetchTransportFile } from "./fetch-transport-file.ts";
import type { StreamSelector } from "./selector.ts";
import type { TransportCache } from "./transport-cache.ts";

export { MAX_TRANSPORT_FILE_BYTES };

/** Time until the DHT is asked again for a record that nobody had, doubled each time, ms. */
const RECORD_RETRY_MS = 1_000;

/** The result: at least one of the two. With both, the magnet adds trackers and peers. */
export interface ResolvedTarget {
  readonly metainfo?: AnyMetainfo;
  readonly magnet?: Magnet;
  /** Which of the servers in either the caller may have asked. */
  readonly servers?: ServerScope;
}

/** What resolving needs besides the selector. */
export interface ResolveContext {
  /** The caller is on this machine: private addresses may be fetched. */
  readonly callerIsLocal: boolean;
  /** A server of the Internet gave the selector: private addresses may not be fetched, whoever called. Default false. */
  readonly isFromPublic?: boolean;
  /** Neither peers nor the DHT are asked. Default false. */
  readonly withoutPeers?: boolean;
  readonly signal: AbortSignal;
}

/** Joins the swarm of a magnet until its metadata is there; `servers` as in `ResolvedTarget`. */
export type MetadataSearch = (magnet: Magnet, servers: ServerScope, signal: AbortSignal) => Promise<AnyMetainfo>;

/** What the resolver needs. */
export interface ResolverParts {
  readonly ports: FetchPorts;
  readonly discovery: Pick<Discovery, "getImmutable" | "getMutable">;
  readonly cache: TransportCache;
  /** Addresses that were given ids: they name no swarm. */
  readonly wrappers: Pick<TransportCache<Wrapper>, "byInfohash" | "byContentId">;
  /** Also lets callers elsewhere name private addresses. */
  readonly allowPrivateFetch: boolean;
  /** Whether the user has this address or magnet from servers of the Internet alone. */
  readonly isFromPublic: (address: string) => Promise<boolean>;
  /** The magnet under which the library has this infohash; null where it has none. */
  readonly magnetOf: (infohashHex: string) => Promise<string | null>;
  /** Joins the swarm of an infohash until its metadata is there: the third runner of the content id race. */
  readonly metadataOf: MetadataSearch;
}

/** Turns selectors into targets. */
export interface Resolver {
  /**
   * Rejects with `invalid_argument`, `not_found`, `bad_transport_file`, `denied`, `timeout`, `unsupported_media`
   * (content that comes by HTTP, wrapped or not) or the signal's reason.
   */
  resolve(selector: StreamSelector, context: ResolveContext): Promise<ResolvedTarget>;
}

/** Whether the selector may lead into the private network; `address`: the address or magnet in it. */
export async function mayNamePrivate(
  parts: Pick<ResolverParts, "allowPrivateFetch" | "isFromPublic">,
  { callerIsLocal, isFromPublic = false }: Pick<ResolveContext, "callerIsLocal" | "isFromPublic">,
  address: string | null,
): Promise<boolean> {
  if (isFromPublic || !(callerIsLocal || parts.allowPrivateFetch)) return false;
  return address === null || !await parts.isFromPublic(address);
}

function addressIn(selector: StreamSelector): string | null {
  return selector.kind === "url" ? selector.url : selector.kind === "magnet" ? selector.magnet : null;
}

/** See `Resolver`. */
export function createResolver(parts: ResolverParts): Resolver {
  return {
    async resolve(selector, context) {
      const named = await inFull(parts, selector);
      const allowPrivate = await mayNamePrivate(parts, context, addressIn(named));
      return { servers: allowPrivate ? "any" : "public", ...await targetOf(parts, named, allowPrivate, context) };
    },
  };
}

/**
 * `selector` with everything that is known of what it names. Programs that found a stream in the library may name it by its
 * infohash alone: without the trackers of the library's magnet a private torrent would find nobody.
 */
async function inFull({ cache, magnetOf }: ResolverParts, selector: StreamSelector): Promise<StreamSelector> {
  if (selector.kind !== "infohash" || await cache.byInfohash(selector.infohash) !== null) return selector;
  const magnet = await magnetOf(selector.infohash);
  return magnet === null ? selector : { kind: "magnet", magnet };
}

async function targetOf(
  parts: ResolverParts,
  selector: StreamSelector,
  allowPrivate: boolean,
  { signal, withoutPeers = false }: ResolveContext,
): Promise<ResolvedTarget> {
  const marked = (metainfo: AnyMetainfo) => allowPrivate ? metainfo : fromPublic(metainfo);
  switch (selector.kind) {
    case "transport_file":
      return { metainfo: marked(await parseTarget(selector.bytes)) };
    case "magnet":
      return await fromMagnet(parts, selector.magnet, withoutPeers, signal);
    case "infohash": {
      const known = await parts.cache.byInfohash(selector.infohash);
      if (known === null && await parts.wrappers.byInfohash(selector.infohash) !== null) throw comesByHttp();
      return known === null ? { magnet: bareMagnet(selector.infohash) } : { metainfo: known };
    }
    case "url": {
      if (selector.url.startsWith("magnet:")) return await fromMagnet(parts, selector.url, withoutPeers, signal);
      const fetched = await fetchTransportFile(parts.ports, selector.url, allowPrivate, signal);
      const servers = fetched.isPublic ? { servers: "public" } as const : {};
      if ("magnet" in fetched) return { ...await fromMagnet(parts, fetched.magnet, withoutPeers, signal), ...servers };
      const metainfo = await parseTarget(fetched.bytes);
      return { metainfo: fetched.isPublic ? fromPublic(metainfo) : marked(metainfo), ...servers };
    }
    case "content_id":
      return await resolveContentId(parts, selector.contentId, allowPrivate ? "any" : "public", withoutPeers, signal);
  }
}

async function fromMagnet(
  parts: ResolverParts,
  text: string,
  withoutPeers: boolean,
  signal: AbortSignal,
): Promise<ResolvedTarget> {
  const mutable = readMutableMagnet(text);
  if (mutable !== null && withoutPeers) {
    throw new MillraceError("not_found", "disable_p2p: only the DHT knows which torrent this magnet link names now");
  }
  const magnet = parseMagnet(mutable === null ? text : mutable.of(await newestOf(parts, mutable, signal)));
  const known = await parts.cache.byInfohash(magnet.infohashHex);
  return known === null ? { magnet } : { metainfo: known, magnet };
}

/** The infohash that the key of a mutable torrent names now. */
async function newestOf(parts: ResolverParts, mutable: MutableMagnet, signal: AbortSignal): Promise<string> {
  const value = await lookedUp(parts, () => parts.discovery.getMutable(mutable, signal), signal);
  return decodeMutableValue(value);
}

/** What `ask` finds in the DHT: an item may be on its way into it, and our own node may have only just started. */
async function lookedUp(
  { ports: { clock } }: ResolverParts,
  ask: () => Promise<Uint8Array | null>,
  signal: AbortSignal,
): Promise<Uint8Array> {
  let bytes = await ask();
  for (let delayMs = RECORD_RETRY_MS; bytes === null; delayMs *= 2) {
    await sleep(clock, delayMs, signal);
    bytes = await ask();
  }
  return bytes;
}

async function parseTarget(bytes: Uint8Array): Promise<AnyMetainfo> {
  if (isWrapperFile(bytes)) throw comesByHttp();
  return await parseAnyTransportFile(bytes);
}

/** The first result of: a kept transport file, the DHT's transport record, the id taken as an infohash. */
async function resolveContentId(
  parts: ResolverParts,
  id: string,
  scope: ServerScope,
  withoutPeers: boolean,
  signal: AbortSignal,
): Promise<ResolvedTarget> {
  const known = await parts.cache.byContentId(id) ?? await parts.cache.byInfohash(id);
  if (known !== null) return { metainfo: known };
  if ((await parts.wrappers.byContentId(id) ?? await parts.wrappers.byInfohash(id)) !== null) throw comesByHttp();
  if (withoutPeers) throw new MillraceError("not_found", "disable_p2p: this content id is not known here");
  const losers = new AbortController();
  const race = AbortSignal.any([signal, losers.signal]);
  const fromRecord = async (): Promise<ResolvedTarget> => {
    const bytes = await lookedUp(parts, () => parts.discovery.getImmutable(fromHex(id), race), race);
    const record = decodeTransportRecord(bytes);
    // Anybody may have put it into the DHT.
    const servers = "public";
    return { magnet: { ...bareMagnet(record.infohashHex), name: record.name, trackers: record.trackers }, servers };
  };
  const asInfohash = async (): Promise<ResolvedTarget> => ({
    metainfo: await parts.metadataOf(bareMagnet(id), scope, race),
  });
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

/** A magnet that contains only the infohash. */
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
