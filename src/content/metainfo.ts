/** Finds out what a torrent holds, without playing it. */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { type AnyMetainfo, fromPublic } from "../metainfo/live.ts";
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
}

/** Finds the metadata behind a selector. Made by `createMetainfoFinder`. */
export interface MetainfoFinder {
  /** The metainfo behind a selector, kept for the next time. Rejects as `Resolver.resolve`, and with `timeout`. */
  find(selector: StreamSelector, context: ResolveContext): Promise<AnyMetainfo>;
  /** The metainfo of a content id or infohash seen before, 40 hexadecimal characters; no network is used. */
  known(idHex: string): Promise<AnyMetainfo | null>;
  /** Content id of `metainfo`, which is kept so that the id resolves from now on. */
  contentId(metainfo: AnyMetainfo): Promise<string>;
}

/** See `MetainfoFinder`. */
export function createMetainfoFinder(parts: MetainfoFinderParts): MetainfoFinder {
  const { resolver, cache, clock } = parts;
  return {
    async find(selector, context) {
      const late = deadline(
        clock,
        parts.timeoutMs,
        context.signal,
        () => new MillraceError("timeout", "no peer sent the torrent's description in time"),
      );
      try {
        const { metainfo, magnet, servers = "any" } = await resolver.resolve(selector, {
          ...context,
          signal: late.signal,
        });
        if (metainfo === undefined && magnet === undefined) throw new MillraceError("not_found", "nothing was found");
        const asked = async () => {
          const found = await parts.metadataOf(magnet!, servers, late.signal);
          // It names what the caller's link names.
          return servers === "public" ? fromPublic(found) : found;
        };
        const found = metainfo ?? await asked();
        await cache.keep(found);
        return found;
      } finally {
        late.cancel();
      }
    },
    known: async (idHex) => await cache.byContentId(idHex) ?? await cache.byInfohash(idHex),
    contentId: (metainfo) => cache.keep(metainfo),
  };
}
