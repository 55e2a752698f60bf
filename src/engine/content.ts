/** From selectors to content: what is resolved, kept and analysed. */
import { type Analyzer, createAnalyzer } from "../content/analysis/analyzer.ts";
import { createMediaFinder, type MediaFinder } from "../content/media-files.ts";
import { createMetainfoFinder, type MetainfoFinder } from "../content/metainfo.ts";
import { createResolver, type MetadataSearch, type Resolver } from "../content/resolve.ts";
import { createTransportCache, type TransportCache } from "../content/transport-cache.ts";
import { createWrapperCache, type WrapperCache } from "../content/wrapper-cache.ts";
import type { Store } from "../database/store.ts";
import { ChannelSources } from "../playback/channel/channel-sources.ts";
import { readListFacts } from "../playlist/list-facts.ts";
import { isFromPublic, libraryMagnet } from "../playlist/private-addresses.ts";
import type { Ground } from "./ground.ts";
import type { SwarmParts } from "./swarms.ts";

/** Short, because people wait for the result. */
const DEFAULT_ANALYSIS_TIMEOUT_MS = 5000;

/** What is known of content from earlier. */
export interface KeptContent {
  readonly transportCache: TransportCache;
  readonly wrappers: WrapperCache;
}

/** The parts that find content. */
export interface ContentParts {
  readonly resolver: Resolver;
  readonly content: MetainfoFinder;
  readonly analyzer: Analyzer;
  readonly media: MediaFinder;
  readonly metadataOf: MetadataSearch;
  readonly channels: ChannelSources;
}

/** Opens the caches of transport files and wrappers. */
export function openKeptContent({ ports: { files, log }, stateDir, closing }: Ground): KeptContent {
  const transportCache = createTransportCache(files, stateDir === null ? null : `${stateDir}/transport`, log);
  const wrappers = createWrapperCache(files, stateDir === null ? null : `${stateDir}/wrappers`, log);
  closing.push(() => transportCache.close(), () => wrappers.close());
  return { transportCache, wrappers };
}

/** Makes the parts that find content; nothing of them has to be closed. */
export function createContent(
  { ports, options, startTimeoutMs: timeoutMs, closing }: Ground,
  { transportCache: cache, wrappers }: KeptContent,
  { discovery, manager, broadcasts }: SwarmParts,
  store: Store,
): ContentParts {
  const metadataOf: MetadataSearch = async (magnet, servers, signal) => {
    const running = broadcasts.running(magnet.infohashHex);
    if (running !== null) return running;
    const lease = manager.acquire({ magnet, servers });
    try {
      return await lease.swarm.metadata(signal);
    } catch (error) {
      // Meanwhile a broadcast with metadata from elsewhere was joined and replaced the swarm.
      const live = broadcasts.running(magnet.infohashHex);
      if (live === null) throw error;
      return live;
    } finally {
      lease.release();
    }
  };
  const allowPrivateFetch = options.allowPrivateFetch ?? false;
  const reach = { allowPrivateFetch, isFromPublic: (address: string) => isFromPublic(store, address) };
  const magnetOf = (infohash: string) => libraryMagnet(store, infohash);
  const resolver = createResolver({ ports, discovery, cache, wrappers, ...reach, magnetOf, metadataOf });
  const content = createMetainfoFinder({
    ...{ resolver, cache, clock: ports.clock, metadataOf, timeoutMs },
    closing: closing.signal,
  });
  const analyzer = createAnalyzer({
    ports,
    content,
    wrappers,
    ...reach,
    readList: readListFacts,
    searchTimeoutMs: Math.min(timeoutMs, options.analysisTimeoutMs ?? DEFAULT_ANALYSIS_TIMEOUT_MS),
  });
  const channels = new ChannelSources(ports, reach);
  return {
    resolver,
    content,
    analyzer,
    media: createMediaFinder({ content, analyzer, wrappers }),
    metadataOf,
    channels,
  };
}
