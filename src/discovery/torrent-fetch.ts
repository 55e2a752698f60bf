/** Requests to servers that a torrent names. */
import type { NetworkPort, Ports } from "../ports.ts";
import { canonicalHost } from "./addresses.ts";
import type { TorrentFetches } from "./redirects.ts";

/**
 * `fetch` that looks the name up on behalf of the torrent `holder` first, so that a torrent with many silent names takes only
 * its own places of the resolver; the fetch then finds the address there. Rejects as `NetworkPort.resolve` and `fetch` do.
 */
function torrentFetch(
  fetch: typeof globalThis.fetch,
  network: Pick<NetworkPort, "resolve" | "namesAreRemote">,
  holder: string,
): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const { hostname } = new URL(input instanceof Request ? input.url : String(input));
    const name = hostname.replace(/^\[|\]$/g, "");
    const signal = init.signal ?? new AbortController().signal;
    const isLookedUp = canonicalHost(name) === null && network.namesAreRemote !== true;
    if (isLookedUp) await network.resolve(name, { signal, holder });
    return await fetch(input, init);
  };
}

/** How the torrent `holder` reaches a server that it names; `isAny`: private ones, too. */
export function torrentFetches(
  { ports, publicFetch }: {
    readonly ports: Pick<Ports, "fetch" | "network">;
    readonly publicFetch: typeof globalThis.fetch;
  },
  holder: string,
  isAny: boolean,
): TorrentFetches {
  const guarded = torrentFetch(publicFetch, ports.network, holder);
  return { fetch: isAny ? torrentFetch(ports.fetch, ports.network, holder) : guarded, publicFetch: guarded };
}
