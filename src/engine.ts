/** The composition root: every part is made here, wired together, and ended together. */
import { accessToken, loadAccessToken } from "./account/access-token.ts";
import { createSettings, type SettingsStore } from "./account/settings.ts";
import { deadline } from "./bytes/deadline.ts";
import { guardedFetch } from "./content/fetch-guard.ts";
import { createMetainfoFinder } from "./content/metainfo.ts";
import { createResolver } from "./content/resolve.ts";
import { createTransportCache } from "./content/transport-cache.ts";
import { createStore, type StoreLocation } from "./database/store.ts";
import { createDiscovery } from "./discovery/discovery.ts";
import type { Discovery } from "./discovery/types.ts";
import { MillraceError } from "./errors.ts";
import { AccessPolicy } from "./http/address.ts";
import { createApp } from "./http/app.ts";
import { Playlist } from "./playlist/items.ts";
import { FfmpegEncoder } from "./media/transcode/ffmpeg.ts";
import { Sessions } from "./playback/sessions.ts";
import type { Logger, Ports, RequestInfo } from "./ports.ts";
import { createDiskCache } from "./storage/disk-cache.ts";
import { createRamCache } from "./storage/ram-cache.ts";
import { createSeedCache } from "./storage/seed-cache.ts";
import type { PieceCache } from "./storage/types.ts";
import { createSwarmManager } from "./swarm/manager.ts";
import type { SwarmManager } from "./swarm/types.ts";
import { transportRecordOf } from "./transport/content-id.ts";
import type { Magnet, Metainfo } from "./transport/types.ts";
import { VERSION } from "./version.ts";
import { createPeerId } from "./wire/peer-id.ts";

/** How an engine is set up. Every field is optional; the defaults suit an embedder without a disk. */
export interface EngineOptions {
  /** Address that peers connect to. Default "0.0.0.0". */
  readonly peerHost?: string;
  /** Default 8621; 0 picks a free port. */
  readonly peerPort?: number;
  /** Directory for what must survive a restart (DHT nodes, transport files). Default null: nothing is kept. */
  readonly stateDir?: string | null;
  /** Directory of the disk cache; needed with `cache: "disk"`. */
  readonly cacheDir?: string | null;
  /**
   * Where pieces are kept. Default "ram". "seed": `cacheDir` holds complete files of the user's own, which are verified
   * and served, never written.
   */
  readonly cache?: "disk" | "ram" | "seed";
  /** Bytes of pieces kept, all torrents; 0 = no limit. Default 512 MiB. */
  readonly cacheLimitBytes?: number;
  /** 0 (default) = unlimited. */
  readonly downloadLimitBytesPerSecond?: number;
  /** 0 (default) = unlimited. */
  readonly uploadLimitBytesPerSecond?: number;
  /** Peers at once, all swarms. Default 200. */
  readonly maxPeers?: number;
  /** Trackers added to every public torrent. */
  readonly trackers?: readonly string[];
  /** Default true. */
  readonly dht?: boolean;
  /** First contacts of the DHT, `host:port`; none given = the well-known routers. */
  readonly dhtBootstrap?: readonly string[];
  /** Local service discovery (BEP 14). Default true. */
  readonly lsd?: boolean;
  /** Peer exchange (BEP 11). Default true. */
  readonly pex?: boolean;
  /** A stream that has not started by then fails. Default 60 000. */
  readonly startTimeoutMs?: number;
  /** How long a swarm stays after its last session; at most 1000 while it has no data. Default 30 000. */
  readonly swarmLingerMs?: number;
  /** Names besides `localhost` and this machine's addresses that `Host` may carry. */
  readonly allowedHosts?: readonly string[];
  /** Base of all URLs in answers when a reverse proxy stands in front. */
  readonly publicUrl?: string | null;
  /** Addresses or CIDR ranges of proxies whose `X-Forwarded-*` is believed. */
  readonly trustProxy?: readonly string[];
  /** Further prefixes that serve what `/engine` serves. */
  readonly pathAliases?: readonly string[];
  /** Lets callers elsewhere name private addresses in `url`. Default false. */
  readonly allowPrivateFetch?: boolean;
  /** Token of the JSON API, 64 hexadecimal characters. Default: the one in `stateDir`, made at the first start. */
  readonly accessToken?: string | null;
  /** libSQL server for settings and playlists. Default null: `millrace.db` in `stateDir`, or memory without one. */
  readonly databaseUrl?: string | null;
  /** Token for that server. */
  readonly databaseToken?: string | null;
}

/** A running engine. */
export interface Engine {
  /** Answers one HTTP request. Without `info` the caller counts as local: only for embedders that check callers themselves. */
  fetch(request: Request, info?: RequestInfo): Promise<Response>;
  /** Where peers connect; null when the port could not be opened for listening. */
  readonly peerAddress: { readonly host: string; readonly port: number } | null;
  /** Who may call, for embedders that set it themselves; the API's settings change the same. */
  readonly access: Pick<AccessPolicy, "setAllowed">;
  /** All swarms, for embedders and the command line. */
  readonly swarms: SwarmManager;
  /** Ends readers, tells trackers, saves state; resolves within 3 s. */
  close(): Promise<void>;
}

/** The routers that BitTorrent clients commonly start from. */
const DHT_ROUTERS = ["router.bittorrent.com:6881", "dht.transmissionbt.com:6881", "dht.libtorrent.org:25401"];
/** Content ids put into the DHT per engine at most: each costs some dozens of packets. */
const MAX_PUBLISHED = 1000;
/** For one record to reach the DHT. */
const PUBLISH_TIMEOUT_MS = 30_000;
const DEFAULT_CACHE_LIMIT_BYTES = 512 * 1024 * 1024;
const DEFAULT_START_TIMEOUT_MS = 60_000;
/** For one list that an API caller names. */
const FETCH_TIMEOUT_MS = 20_000;
/** Caller that an embedder's request counts as. */
const LOCAL: RequestInfo = { remote: { host: "127.0.0.1", port: 0 } };

/**
 * Makes an engine on `ports`. Nothing runs before this is called and nothing after `close()`. Rejects with `conflict`
 * (peer port taken), `io` (directories), `config` (options that contradict each other).
 */
export async function createEngine(ports: Ports, options: EngineOptions = {}): Promise<Engine> {
  const { clock, log } = ports;
  const stateDir = options.stateDir ?? null;
  const policy = new AccessPolicy(ports.network, {
    allowedHosts: options.allowedHosts ?? [],
    publicUrl: options.publicUrl ?? null,
    trustedProxies: options.trustProxy ?? [],
    allowIntranet: true,
    allowInternet: false,
  });
  const token = options.accessToken ? accessToken(options.accessToken) : await loadAccessToken(ports.files, stateDir);
  const location = storeLocation(options);
  const store = createStore(ports, location);
  const settings = createSettings(store);
  await applySettings(settings, policy, location);
  const cache = await createCache(ports, options);
  const peerId = createPeerId();
  const peerHost = options.peerHost ?? "0.0.0.0";
  const peerPort = options.peerPort ?? 8621;
  let swarms: SwarmManager | null = null;
  const discovery = await createDiscovery(ports, {
    peerId,
    peerPort: () => swarms?.peerAddress?.port ?? 0,
    trackers: options.trackers ?? [],
    dht: {
      enabled: options.dht ?? true,
      bootstrap: options.dhtBootstrap?.length ? options.dhtBootstrap : DHT_ROUTERS,
      statePath: stateDir === null ? null : `${stateDir}/dht.json`,
      // The same number for TCP and UDP: one forwarded port is enough.
      host: peerHost,
      port: peerPort,
    },
    lsd: { enabled: options.lsd ?? true, ...(isWildcard(peerHost) ? {} : { interfaces: [peerHost] }) },
    userAgent: `millrace/${VERSION}`,
  });
  const manager = swarms = await createSwarmManager(ports, {
    cache,
    discovery,
    peerId,
    peerHost,
    peerPort,
    ...(options.maxPeers === undefined ? {} : { maxPeers: options.maxPeers }),
    downloadLimitBytesPerSecond: options.downloadLimitBytesPerSecond ?? 0,
    uploadLimitBytesPerSecond: options.uploadLimitBytesPerSecond ?? 0,
    pex: options.pex ?? true,
    ...(options.swarmLingerMs === undefined ? {} : { lingerMs: options.swarmLingerMs }),
  });
  const transportCache = createTransportCache(ports.files, stateDir === null ? null : `${stateDir}/transport`, log);
  const metadataOf = async (magnet: Magnet, signal: AbortSignal) => {
    const lease = manager.acquire({ magnet });
    try {
      return await lease.swarm.metadata(signal);
    } finally {
      lease.release();
    }
  };
  const resolver = createResolver({
    ports,
    discovery,
    cache: transportCache,
    allowPrivateFetch: options.allowPrivateFetch ?? false,
    metadataOf,
  });
  const timeoutMs = options.startTimeoutMs ?? DEFAULT_START_TIMEOUT_MS;
  const content = createMetainfoFinder({ resolver, cache: transportCache, clock, metadataOf, timeoutMs });
  const publisher = createPublisher(discovery, clock, log);
  const sessions = new Sessions({
    clock,
    log,
    swarms: manager,
    resolver,
    startTimeoutMs: timeoutMs,
    audioEncoder: new FfmpegEncoder(ports.processes, clock),
    onMetadata: (metainfo) => {
      void transportCache.keep(metainfo);
      publisher.publish(metainfo);
    },
  });
  const app = createApp({
    sessions,
    cacheFigures: () => ({ limitBytes: cache.limitBytes, usedBytes: cache.usedBytes }),
    policy,
    publicUrl: options.publicUrl ?? null,
    prefixes: ["engine", ...options.pathAliases ?? []],
    clock,
    log,
    runtime: ports.runtime,
    api: {
      token,
      settings,
      content,
      playlist: new Playlist(store, clock),
      fetchBytes: async (url, maxBytes, { callerIsLocal, signal }) => {
        const allowPrivate = callerIsLocal || (options.allowPrivateFetch ?? false);
        return (await guardedFetch(ports, url, { maxBytes, timeoutMs: FETCH_TIMEOUT_MS, allowPrivate }, signal)).bytes;
      },
      isConnected: () => isConnected(manager, discovery),
    },
  });
  let closing: Promise<void> | null = null;
  return {
    fetch: async (request, info = LOCAL) => await app.fetch(request, { info }),
    get peerAddress() {
      return manager.peerAddress;
    },
    access: policy,
    swarms: manager,
    close: () =>
      closing ??= (async () => {
        publisher.close();
        sessions.close();
        await manager.close();
        await discovery.close();
        await cache.close();
        await store.close();
      })(),
  };
}

/** Whether anything of the network answers: a peer, a DHT node or a tracker. */
function isConnected(swarms: SwarmManager, discovery: Discovery): boolean {
  return discovery.dhtAnswers?.() === true || swarms.list().some((swarm) => {
    const { peers, sources } = swarm.status();
    return peers > 0 ||
      sources.some((source) =>
        source.kind === "tracker" && source.lastError === null && (source.nextAnnounceMs !== null || source.peers > 0)
      );
  });
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

function storeLocation({ databaseUrl, databaseToken, stateDir }: EngineOptions): StoreLocation {
  if (databaseUrl) return { kind: "server", url: databaseUrl, token: databaseToken ?? null };
  return stateDir ? { kind: "file", path: `${stateDir}/millrace.db` } : { kind: "memory" };
}

/** Whom the user let in before the restart. Names the database when it cannot be read: the message is for the user. */
async function applySettings(settings: SettingsStore, policy: AccessPolicy, location: StoreLocation): Promise<void> {
  try {
    const { allow_intranet, allow_internet } = await settings.load();
    if (allow_intranet !== undefined) policy.setAllowed("intranet", allow_intranet);
    if (allow_internet !== undefined) policy.setAllowed("internet", allow_internet);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    const place = location.kind === "file" ? location.path : "--database-url";
    throw new MillraceError(error.code, `${place}: ${error.message}`, { cause: error });
  }
}

async function createCache(ports: Ports, options: EngineOptions): Promise<PieceCache> {
  const { files, clock, log } = ports;
  const limitBytes = options.cacheLimitBytes ?? DEFAULT_CACHE_LIMIT_BYTES;
  const kind = options.cache ?? "ram";
  if (kind === "ram") return createRamCache({ limitBytes, clock });
  const directory = options.cacheDir ?? null;
  if (directory === null) throw new MillraceError("config", `cache "${kind}" needs cacheDir`);
  return kind === "seed"
    ? createSeedCache({ files, directory, clock, log })
    : await createDiskCache({ files, directory, limitBytes, clock, log });
}

/** Puts transport records into the DHT (B30), once each, in the background. */
function createPublisher(discovery: Discovery, clock: Ports["clock"], log: Logger) {
  const published = new Set<string>();
  const closing = new AbortController();
  return {
    publish(metainfo: Metainfo): void {
      if (metainfo.isPrivate || published.has(metainfo.infohashHex) || published.size >= MAX_PUBLISHED) return;
      if (discovery.dhtPort === null) return;
      published.add(metainfo.infohashHex);
      const late = deadline(clock, PUBLISH_TIMEOUT_MS, closing.signal);
      discovery.putImmutable(transportRecordOf(metainfo), late.signal)
        .catch((error) => log.log("debug", "a transport record was not stored in the DHT", { error: String(error) }))
        .finally(() => late.cancel());
    },
    close: () => closing.abort(),
  };
}
