/** Everything that talks to peers: discovery, the swarms of torrents and of broadcasts, and the router's port. */
import { fetchTransportFile } from "../content/fetch-transport-file.ts";
import { checkedTarget } from "../content/guarded-target.ts";
import { createPublicFetch } from "../content/public-fetch.ts";
import type { TransportCache } from "../content/transport-cache.ts";
import { isPublicHost } from "../discovery/addresses.ts";
import { DHT_ROUTERS } from "../discovery/dht-routers.ts";
import { createDiscovery } from "../discovery/discovery.ts";
import type { LsdOptions } from "../discovery/lsd.ts";
import { PageSlots } from "../discovery/page-tracker.ts";
import type { NetworkSurroundings } from "../discovery/nearness.ts";
import { peerHostFor } from "../discovery/peer-host.ts";
import type { Discovery } from "../discovery/types.ts";
import { MillraceError } from "../errors.ts";
import { RecordRefresh } from "../live/broadcast/record-refresh.ts";
import { LiveSwarmManager } from "../live/swarm/live-swarms.ts";
import { TrafficTotals } from "../metrics/traffic-totals.ts";
import type { NetworkPort } from "../ports.ts";
import type { PieceCache } from "../storage/piece-store.ts";
import { createSwarmManager, type TorrentSwarmManager } from "../swarm/manager.ts";
import { VERSION } from "../version.ts";
import { createPeerId } from "../wire/peer-id.ts";
import type { Ground } from "./ground.ts";
import { mapPeerPort } from "./port-mapping.ts";

const DEFAULT_PEER_PORT = 8621;

/** The parts that talk to peers. */
export interface SwarmParts {
  readonly discovery: Discovery;
  readonly manager: TorrentSwarmManager;
  readonly broadcasts: LiveSwarmManager;
  /** Traffic of the swarms that were left. */
  readonly totals: { readonly torrents: TrafficTotals; readonly broadcasts: TrafficTotals };
}

/** Opens the peer port and the DHT. `keep` holds the metadata of broadcasts. Rejects with `conflict` or `io`. */
export async function openSwarms(
  { ports, swarmPorts, proxied, watch, options, stateDir, closing }: Ground,
  cache: PieceCache,
  keep: Pick<TransportCache, "keep">,
): Promise<SwarmParts> {
  const { surroundings, clock, log } = ports;
  const peerId = createPeerId();
  const peerPort = options.peerPort ?? DEFAULT_PEER_PORT;
  // Multicast and routers are of the local network, beside the way that was chosen.
  const isFree = proxied === null && watch === null;
  const peerHost = await peerHostFor({ named: options.peerHost ?? null, isFree }, swarmPorts.udp);
  const publicFetch = createPublicFetch(swarmPorts);
  const pages = swarmPorts.pages ?? null;
  const totals = { torrents: new TrafficTotals(), broadcasts: new TrafficTotals() };
  let swarms: TorrentSwarmManager | null = null;
  const discovery = await createDiscovery(swarmPorts, {
    peerId,
    peerPort: () => swarms?.context.listenPort() ?? 0,
    localPeerPort: () => swarms?.peerAddress?.port ?? 0,
    trackers: options.trackers ?? [],
    dht: {
      surroundings,
      enabled: options.dht ?? true,
      bootstrap: options.dhtBootstrap?.length ? options.dhtBootstrap : DHT_ROUTERS,
      statePath: stateDir === null ? null : `${stateDir}/dht.json`,
      // The same number for TCP and UDP: forwarding one port is enough.
      host: peerHost,
      port: peerPort,
    },
    lsd: { enabled: (options.lsd ?? true) && isFree, ...lsdInterfaces(ports.network, peerHost) },
    userAgent: `millrace/${VERSION}`,
    publicFetch,
    pageTrackers: pages === null || options.webrtc === false ? null : {
      ...{ clock, pages, slots: new PageSlots() },
      addressesOf: async (url, { scope, holder, signal }) => {
        const { network } = swarmPorts;
        const named = { ...network, resolve: (host: string) => network.resolve(host, { signal, holder }) };
        return (await checkedTarget({ network: named, surroundings }, url, scope === "any", signal)).addresses;
      },
      allows: (address, source) =>
        swarms?.context.dialRule.allows({ address, origin: "tracker", source, scope: "any" }) ?? false,
      tells: (host, tracker) => isPublicHost(host) || isWithinReach(surroundings, host, tracker),
      take: (connection) => swarms === null ? connection.abort() : swarms.takeFromPage(connection),
    },
  });
  closing.push(() => discovery.close());
  const manager = swarms = await createSwarmManager(swarmPorts, {
    surroundings,
    cache,
    discovery,
    publicFetch,
    transportFileFetch: async (url, scope, maxBytes, signal) => {
      const fetched = await fetchTransportFile(ports, url, scope === "any", signal, maxBytes);
      if ("bytes" in fetched) return fetched;
      throw new MillraceError("bad_transport_file", "the address leads to another magnet link");
    },
    peerId,
    peerHost,
    peerPort,
    ...(options.maxPeers === undefined ? {} : { maxPeers: options.maxPeers }),
    downloadLimitBytesPerSecond: options.downloadLimitBytesPerSecond ?? 0,
    uploadLimitBytesPerSecond: options.uploadLimitBytesPerSecond ?? 0,
    pex: options.pex ?? true,
    utp: options.utp ?? true,
    isProxied: proxied !== null,
    encryption: options.encryption ?? "accept",
    ...(options.swarmLingerMs === undefined ? {} : { lingerMs: options.swarmLingerMs }),
    left: (swarm) => totals.torrents.left(swarm),
  });
  const records = new RecordRefresh({ discovery, clock, log, random: Math.random });
  const broadcasts = new LiveSwarmManager({
    manager,
    joined: (swarm) => {
      void keep.keep(swarm.metainfo);
      records.watch(swarm);
    },
    left: (swarm) => {
      totals.broadcasts.left(swarm);
      records.forget(swarm);
    },
  });
  const mapper = (options.portMapping ?? true) && isFree ? mapPeerPort(ports, { manager, discovery }) : null;
  closing.push(() => records.close(), () => manager.close(), () => mapper?.close());
  return { discovery, manager, broadcasts, totals };
}

/** Whether a server at `server` is as near to us as the address `host` of ours, which is not public. */
function isWithinReach(surroundings: Pick<NetworkSurroundings, "nearness">, host: string, server: string): boolean {
  const nearness = surroundings.nearness(server);
  return nearness === "own" || (nearness === "private" && !/^(?:127\.|::1$)/.test(host));
}

/** Where the peer port can be reached. */
function lsdInterfaces(network: NetworkPort, peerHost: string): LsdOptions {
  const ipv6 = network.interfaces().filter(({ family, host, loopback }) =>
    family === 6 && !loopback && !/^fe[89ab]/i.test(host) && (peerHost === "::" || peerHost === host)
  );
  const ipv6Interfaces = [...new Set(ipv6.map(({ name }) => name))];
  return { ipv6Interfaces, ...(peerHost === "0.0.0.0" || peerHost.includes(":") ? {} : { interfaces: [peerHost] }) };
}
