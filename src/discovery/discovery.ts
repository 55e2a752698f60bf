/** Peer discovery: the sources shared by all swarms, and their combination for each swarm. */
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { Ports, SocketAddress } from "../ports.ts";
import { canonicalHost, isPublicHost } from "./addresses.ts";
import type { AnnounceAnswer, TrackerAnnouncer } from "./announce.ts";
import { DhtNode, type DhtNodeOptions } from "./dht-node.ts";
import { pageAnnouncer, type PageTrackerParts } from "./page-tracker.ts";
import { resolvePeer } from "./peer-names.ts";
import { torrentFetches } from "./torrent-fetch.ts";
import { announceHttp } from "./http-tracker.ts";
import { LocalDiscovery, type LsdOptions } from "./lsd.ts";
import type { SharedSources } from "./name-search.ts";
import { SwarmDiscovery } from "./session.ts";
import { refuseAll } from "./redirects.ts";
import type { Discovery, ServerScope } from "./types.ts";
import { UdpTrackerClient } from "./udp-tracker.ts";

/** The machine's parts that discovery uses. */
export type DiscoveryPorts = Pick<Ports, "clock" | "udp" | "files" | "network" | "fetch" | "log" | "ed25519">;

/** Options of `createDiscovery`. */
export interface DiscoveryOptions {
  /** Our peer id, 20 bytes. */
  readonly peerId: Uint8Array;
  /**
   * Port on which our peers listen, asked at each announce; 0 while there is none (then we announce only to trackers,
   * with port 0).
   */
  peerPort(): number;
  /** The same as seen in the local network, for LSD. Default `peerPort`. */
  localPeerPort?(): number;
  /** Trackers for every torrent that is not private; each is a tier after the torrent's own. Default none. */
  readonly trackers?: readonly string[];
  readonly dht: DhtNodeOptions & { readonly enabled: boolean };
  readonly lsd: LsdOptions & { readonly enabled: boolean };
  /** `User-Agent` of HTTP announces. */
  readonly userAgent: string;
  /**
   * Fetches from servers of the public network and refuses others with `denied`: for trackers of the scope "public",
   * and for redirects. Default: refuses all.
   */
  readonly publicFetch?: typeof fetch;
  /** Reaches peers in web browsers. Default: their trackers are not asked. */
  readonly pageTrackers?: PageTrackerParts | null;
  /** For shuffling and jitter, in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

/** Host names looked up per reply: a hostile tracker must not make us ask for many. */
const MAX_NAMED_PEERS = 8;

/** Length of a peer id (BEP 3). */
const PEER_ID_BYTES = 20;

/** Calls `found` with the addresses of each of a reply's named peers, as they are found. */
async function namedPeers(
  ports: Pick<DiscoveryPorts, "clock" | "network">,
  { named = [] }: AnnounceAnswer,
  torrent: string,
  signal: AbortSignal,
  found: (peers: readonly SocketAddress[]) => Promise<void>,
): Promise<void> {
  // Apart from the places of the trackers: those may be silent.
  const holder = `${torrent} peers`;
  await Promise.all(
    named.slice(0, MAX_NAMED_PEERS).map(async (peer) => {
      const peers = await resolvePeer(ports, peer, holder, signal);
      if (peers.length > 0) await found(peers);
    }),
  );
}

/** Adds the tracker's address to a reply whose peers are not all public: only then does that address matter. */
async function withAddress(
  { network }: Pick<DiscoveryPorts, "network">,
  url: string,
  answer: AnnounceAnswer,
  signal: AbortSignal,
): Promise<AnnounceAnswer> {
  if (answer.peers.every(({ host }) => isPublicHost(host))) return answer;
  const name = new URL(url).hostname.replace(/^\[|\]$/g, "");
  const addresses = canonicalHost(name) === null ? await network.resolve(name, { signal }).catch(() => []) : [name];
  // If the name has addresses of both kinds, either may have been asked.
  return { ...answer, from: addresses.find(isPublicHost) ?? addresses[0] ?? null };
}

/**
 * Starts what all swarms share: the DHT node and the LSD sockets, if enabled. A source that cannot start is logged and
 * left out, since trackers alone are better than nothing.
 */
export async function createDiscovery(ports: DiscoveryPorts, options: DiscoveryOptions): Promise<Discovery> {
  if (options.peerId.length !== PEER_ID_BYTES) {
    throw new MillraceError("invalid_argument", `a peer id must be ${PEER_ID_BYTES} bytes long`);
  }
  const random = options.random ?? Math.random;
  const localPeerPort = () => options.localPeerPort?.() ?? options.peerPort();
  const leftOut = (source: string) => (error: unknown) => {
    ports.log.log("warn", `${source} cannot start and is left out`, { error: String(error) });
    return null;
  };
  const [dht, lsd] = await Promise.all([
    options.dht.enabled ? DhtNode.open(ports, options.dht).catch(leftOut("DHT")) : null,
    options.lsd.enabled
      ? LocalDiscovery.open({ ...ports, random, peerPort: localPeerPort }, options.lsd).catch(leftOut("LSD"))
      : null,
  ]);
  const udpTrackers = new UdpTrackerClient(ports);
  const publicFetch = options.publicFetch ?? refuseAll;
  const createAnnouncer = (url: string, scope: () => ServerScope): TrackerAnnouncer | null => {
    if (/^https?:\/\//i.test(url) && URL.canParse(url)) {
      return (announce, signal, late) => {
        const holder = toHex(announce.infohash);
        const fetches = torrentFetches({ ports, publicFetch }, holder, scope() === "any");
        const context = { ...fetches, clock: ports.clock, userAgent: options.userAgent };
        return announceHttp(context, url, announce, signal).then(async (answer) => {
          const found = await withAddress(ports, url, answer, signal);
          void namedPeers(ports, answer, holder, signal, async (peers) => {
            late(await withAddress(ports, url, { ...answer, peers }, signal));
          });
          return found;
        });
      };
    }
    if (/^udp:\/\//i.test(url) && URL.canParse(url)) {
      return (announce, signal, late) => udpTrackers.announce(url, announce, signal, { scope: scope(), late });
    }
    return options.pageTrackers ? pageAnnouncer(options.pageTrackers, url, scope) : null;
  };
  const shared: SharedSources = {
    clock: ports.clock,
    log: ports.log,
    random,
    peerId: options.peerId,
    peerPort: () => options.peerPort(),
    extraTrackers: options.trackers ?? [],
    createAnnouncer,
    dht,
    lsd,
  };
  const sessions = new Map<SwarmDiscovery, string>();
  let closing: Promise<void> | null = null;

  const closeAll = async () => {
    await Promise.all([...sessions.keys()].map((session) => session.close()));
    lsd?.close();
    await Promise.all([udpTrackers.close(), dht?.close()]);
  };

  const requireDht = (): DhtNode => {
    if (closing !== null) throw new MillraceError("closed", "discovery is closed");
    if (dht === null) throw new MillraceError("unavailable", "the DHT is off");
    return dht;
  };

  return {
    start(request) {
      const key = toHex(request.infohash);
      if (closing !== null) throw new MillraceError("closed", "discovery is closed");
      if ([...sessions].some(([session, other]) => other === key && !session.closed)) {
        throw new MillraceError("conflict", "discovery for this infohash is already running");
      }
      const session = new SwarmDiscovery(shared, request, () => sessions.delete(session));
      sessions.set(session, key);
      return session;
    },
    addDhtNode: (address) => dht?.addNode(address),
    dhtPort: dht?.port ?? null,
    peerDatagrams: dht?.peerDatagrams ?? null,
    dhtAnswers: () => dht?.hasAnswers ?? false,
    getImmutable: async (target, signal) => await requireDht().getImmutable(target, signal),
    getMutable: async (name, signal) => await requireDht().getMutable(name, signal),
    putImmutable: async (value, signal) => await requireDht().putImmutable(value, signal),
    close: () => closing ??= closeAll(),
  };
}
