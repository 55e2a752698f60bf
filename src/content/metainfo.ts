/** Finds out what a torrent holds, without playing it. */
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { type AnyMetainfo, fromPublic } from "../metainfo/live.ts";
import { Lookups } from "./lookups.ts";
import type { MetadataSearch, ResolveContext, Resolver } from "./resolve.ts";
import type { StreamSelector } from "./selector.ts";
import type { TransportCache } from "./transport-cache.ts";

/** What the finder needs. */
export interface MetainfoFinderParts {
  readonly resolver: Resolver;
  readonly cache: TransportCache;
  readonly clock: Clock;
  /** Joins the swarm until the metadata is there. */
  readonly metadataOf: MetadataSearch;
  /** For one search, resolving included. */
  readonly timeoutMs: number;
  /** Fires when the engine ends. */
  readonly closing: AbortSignal;
}

/** Finds the metadata behind a selector. Made by `createMetainfoFinder`. */
export interface MetainfoFinder {
  /**
   * The metainfo behind a selector, kept for the next time. Callers share a search, and one whose signal fires with
   * `timeout` leaves it running, as `Lookups` says.
   *
   * @throws `invalid_argument`, `not_found`, `bad_transport_file`, `denied`, `timeout`, `unsupported_media`, or the
   * signal's reason: as `Resolver.resolve`; and with `timeout`
   */
  find(selector: StreamSelector, context: ResolveContext): Promise<AnyMetainfo>;
  /** The metainfo of a content id or infohash seen before, 40 hexadecimal characters; no network is used. */
  known(idHex: string): Promise<AnyMetainfo | null>;
  /** Content id of `metainfo`, which is kept so that the id resolves from now on. */
  contentId(metainfo: AnyMetainfo): Promise<string>;
}

/** See `MetainfoFinder`. */
export function createMetainfoFinder(parts: MetainfoFinderParts): MetainfoFinder {
  const { resolver, cache, clock, timeoutMs, closing } = parts;
  const lookups = new Lookups<AnyMetainfo>({
    clock,
    timeoutMs,
    late: () => new MillraceError("timeout", "no peer sent the torrent's description in time"),
    closing,
  });
  const search = async (selector: StreamSelector, context: ResolveContext): Promise<AnyMetainfo> => {
    const { metainfo, magnet, servers = "any" } = await resolver.resolve(selector, context);
    if (metainfo === undefined && magnet === undefined) throw new MillraceError("not_found", "nothing was found");
    const asked = async () => {
      const found = await parts.metadataOf(magnet!, servers, context.signal);
      // It names what the caller's link names.
      return servers === "public" ? fromPublic(found) : found;
    };
    const found = metainfo ?? await asked();
    await cache.keep(found);
    return found;
  };
  return {
    find(selector, { signal, callerIsLocal, isFromPublic = false, withoutPeers = false }) {
      const context = { callerIsLocal, isFromPublic, withoutPeers };
      if (selector.kind === "transport_file") return search(selector, { ...context, signal });
      // What a caller may name decides what is asked for it.
      const key = JSON.stringify([selector, context]);
      return lookups.get(key, (signal) => search(selector, { ...context, signal }), signal);
    },
    known: async (idHex) => await cache.byContentId(idHex) ?? await cache.byInfohash(idHex),
    contentId: (metainfo) => cache.keep(metainfo),
  };
}
