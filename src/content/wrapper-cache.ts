/** Addresses that were wrapped, kept so that their infohash and content id can be looked up. */
import type { FilePort, Logger } from "../ports.ts";
import { encodeWrapper, parseWrapper, type Wrapper } from "../metainfo/wrapper.ts";
import { type CacheBounds, createCache, type TransportCache } from "./transport-cache.ts";

/** For programs on this machine. A wrapper has less than 9 KB. */
const OWN_BOUNDS: CacheBounds = { maxFiles: 2000, maxBytes: 64 * 1024 * 1024, maxMemoryBytes: 16 * 1024 * 1024 };
/** For everybody else together. */
const FOREIGN_BOUNDS: CacheBounds = { maxFiles: 500, maxBytes: 8 * 1024 * 1024, maxMemoryBytes: 4 * 1024 * 1024 };

/** Remembers wrappers by infohash and by content id. */
export interface WrapperCache extends Pick<TransportCache<Wrapper>, "byInfohash" | "byContentId" | "close"> {
  /**
   * Keeps a wrapper and returns its content id; never rejects. The user's own wrappers (`isOwn`: requested on this
   * machine, not by a foreign page) are never pushed out by those of others.
   */
  keep(wrapper: Wrapper, isOwn: boolean): Promise<string>;
}

/** A cache in `directory` and a sibling of it for others; with null it remembers for this run only. */
export function createWrapperCache(files: FilePort, directory: string | null, log: Logger): WrapperCache {
  const codec = { parse: parseWrapper, encode: encodeWrapper };
  const own = createCache<Wrapper>(files, directory, log, codec, OWN_BOUNDS);
  const foreignDirectory = directory === null ? null : `${directory}-of-others`;
  const foreign = createCache<Wrapper>(files, foreignDirectory, log, codec, FOREIGN_BOUNDS);
  return {
    byInfohash: async (infohash) => await own.byInfohash(infohash) ?? await foreign.byInfohash(infohash),
    byContentId: async (id) => await own.byContentId(id) ?? await foreign.byContentId(id),
    close: async () => void await Promise.all([own.close(), foreign.close()]),
    keep: (wrapper, isOwn) => (isOwn ? own : foreign).keep(wrapper),
  };
}
