/** The composition root: creates every part, connects them, and ends them together. */
import { accessToken, loadAccessToken } from "./account/access-token.ts";
import { createSignIn } from "./account/create-sign-in.ts";
import { loadSecretBox } from "./account/secret-box.ts";
import { createSettings } from "./account/settings.ts";
import { basicAuthorization } from "./bytes/basic-authorization.ts";
import { deadline } from "./bytes/deadline.ts";
import { createAnalyzer } from "./content/analysis/analyzer.ts";
import { guardedFetch, guardedOpen } from "./content/fetch-guard.ts";
import { createMediaFinder } from "./content/media-files.ts";
import { createMetainfoFinder } from "./content/metainfo.ts";
import { OwnRequests } from "./content/own-requests.ts";
import { createPublicFetch } from "./content/public-fetch.ts";
import { createResolver, type MetadataSearch } from "./content/resolve.ts";
import { createTransportCache } from "./content/transport-cache.ts";
import { createWrapperCache } from "./content/wrapper-cache.ts";
import { createStore, storeLocation } from "./database/store.ts";
import { DHT_ROUTERS } from "./discovery/dht-routers.ts";
import { createDiscovery } from "./discovery/discovery.ts";
import { Surroundings } from "./discovery/nearness.ts";
import type { Engine, EngineOptions } from "./engine/options.ts";
import { Announcements } from "./engine/announcements.ts";
import { SourceDesk } from "./engine/broadcast-desk.ts";
import { createOperating } from "./engine/operating.ts";
import { createPlayers } from "./engine/players.ts";
import { mapPeerPort } from "./engine/port-mapping.ts";
import { createPublisher } from "./engine/publisher.ts";
import { sessionObserver } from "./engine/session-observer.ts";
import { RecentLog } from "./engine/recent-log.ts";
import { SentBroadcasts } from "./engine/sent-broadcasts.ts";
import { applySettings, isConnected } from "./engine/state.ts";
import { createCache, createWindowMaker } from "./engine/storage.ts";
import { AccessPolicy } from "./http/address.ts";
import { Admission } from "./http/admission.ts";
import { createApp } from "./http/app.ts";
import { SentSessions } from "./http/sent-sessions.ts";
import { ItemChecks } from "./playlist/checks.ts";
import { Catalogue } from "./playlist/catalogue.ts";
import { Channels } from "./playlist/channel.ts";
import { Playlist } from "./playlist/items.ts";
import { readListFacts } from "./playlist/list-facts.ts";
import { LiveSwarmManager } from "./live/swarm/live-swarms.ts";
import { RecordRefresh } from "./live/broadcast/record-refresh.ts";
import { startRelay } from "./live/broadcast/relay.ts";
import { Lists } from "./playlist/lists.ts";
import { engineFigures } from "./metrics/engine-figures.ts";
import { exposition } from "./metrics/exposition.ts";
import { LoopDelay } from "./metrics/loop-delay.ts";
import { Metrics } from "./metrics/metrics.ts";
import { TrafficTotals } from "./metrics/traffic-totals.ts";
import { ForeignPrograms } from "./media/foreign/programs.ts";
import { FfmpegEncoder } from "./media/transcode/ffmpeg.ts";
import { Positions } from "./playback/positions.ts";
import { createProbe } from "./playback/probe.ts";
import { SessionRecords } from "./playback/session-records.ts";
import { Sessions } from "./playback/sessions.ts";
import { MillraceError } from "./errors.ts";
import type { Logger, Ports, RequestInfo } from "./ports.ts";
import { createSwarmManager, type TorrentSwarmManager } from "./swarm/manager.ts";
import { isLive } from "./transport/live.ts";
import { VERSION } from "./version.ts";
import { createPeerId } from "./wire/peer-id.ts";

export type { Engine, EngineOptions } from "./engine/options.ts";

const DEFAULT_START_TIMEOUT_MS = 60_000;
/** Short, because people wait for the result. */
const DEFAULT_ANALYSIS_TIMEOUT_MS = 5000;
/** Time limit for one list named by an API caller. */
const FETCH_TIMEOUT_MS = 20_000;
/** The assumed caller of a request for which an embedder gives none. */
const LOCAL: RequestInfo = { remote: { host: "127.0.0.1", port: 0 } };

/**
 * Makes an engine on `ports`. Nothing runs before this is called and nothing after `close()`. Rejects with `conflict`
 * (peer port taken), `io` (directories), `config` (options that contradict each other).
 */
export async function createEngine(ports: Ports, options: EngineOptions = {}): Promise<Engine> {
  const opened: Closer[] = [];
  try {
    return await assemble(ports, options, opened);
  } catch (error) {
    for (const close of opened.reverse()) await closeParts(ports.log, [close]);
    throw error;
  }
}

/** Ends one part of the engine. */
type Closer = () => Promise<void>;

/** Ends parts concurrently. A failure is logged and does not keep another part open. */
async function closeParts(log: Logger, parts: readonly Closer[]): Promise<void> {
  await Promise.all(parts.map((close) => close().catch((error) => log.log("warn", "a part did not close", { error }))));
}

/** Makes the engine; each part that holds resources of the machine is added to `opened` at once. */
async function assemble(machine: Ports, options: EngineOptions, opened: Closer[]): Promise<Engine> {
  const { clock } = machine;
  const recentLog = new RecentLog(clock);
  const log = recentLog.over(machine.log);
  const stateDir = options.stateDir ?? null;
  const ownRequests = new OwnRequests();
  const surroundings = new Surroundings(machine.network, () => clock.monotonic());
  const ports = { ...ownRequests.marked({ ...machine, log }), surroundings };
  const policy = new AccessPolicy(ports.network, {
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowOrigins ?? [],
    publicUrl: options.publicUrl ?? null,
    trustedProxies: options.trustProxy ?? [],
    allowIntranet: true,
    allowInternet: false,
  });
  const token = options.accessToken ? accessToken(options.accessToken) : await loadAccessToken(ports, stateDir);
  const location = storeLocation({ databaseUrl: null, databaseToken: null, ...options, stateDir });
  const store = createStore(ports, location, { replacesDamaged: true });
  opened.push(() => store.close());
  const settings = createSettings(store);
  await applySettings(settings, policy, store, location);
  const signIn = createSignIn({
    store,
    clock,
    files: ports.files,
    stateDir,
    oidcIssuer: options.oidcIssuer ?? null,
    oidcAudience: options.oidcAudience ?? null,
    fetchBytes: (url, limits, signal) => guardedFetch(ports, url, { ...limits, timeoutMs: FETCH_TIMEOUT_MS }, signal),
  });
  const metrics = new Metrics();
  const totals = { torrents: new TrafficTotals(), broadcasts: new TrafficTotals() };
  const cache = await createCache(ports, options);
  opened.push(() => cache.close());
  const peerId = createPeerId();
  const peerHost = options.peerHost ?? "0.0.0.0";
  const peerPort = options.peerPort ?? 8621;
  let swarms: TorrentSwarmManager | null = null;
  const publicFetch = createPublicFetch(ports);
  const discovery = await createDiscovery(ports, {
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
    lsd: { enabled: options.lsd ?? true, ...(isWildcard(peerHost) ? {} : { interfaces: [peerHost] }) },
    userAgent: `millrace/${VERSION}`,
    publicFetch,
  });
  opened.push(() => discovery.close());
  const manager = swarms = await createSwarmManager(ports, {
    surroundings,
    cache,
    discovery,
    publicFetch,
    peerId,
    peerHost,
    peerPort,
    ...(options.maxPeers === undefined ? {} : { maxPeers: options.maxPeers }),
    downloadLimitBytesPerSecond: options.downloadLimitBytesPerSecond ?? 0,
    uploadLimitBytesPerSecond: options.uploadLimitBytesPerSecond ?? 0,
    pex: options.pex ?? true,
    ...(options.swarmLingerMs === undefined ? {} : { lingerMs: options.swarmLingerMs }),
    left: (swarm) => totals.torrents.left(swarm),
  });
  opened.push(() => manager.close());
  const mapper = options.portMapping ?? true ? mapPeerPort(ports, { manager, discovery }) : null;
  opened.push(async () => await mapper?.close());
  const transportCache = createTransportCache(ports.files, stateDir === null ? null : `${stateDir}/transport`, log);
  const wrappers = createWrapperCache(ports.files, stateDir === null ? null : `${stateDir}/wrappers`, log);
  const records = new RecordRefresh({ discovery, clock, log, random: Math.random });
  const broadcasts = new LiveSwarmManager({
    manager,
    ...(options.swarmLingerMs === undefined ? {} : { lingerMs: options.swarmLingerMs }),
    joined: (swarm) => {
      void transportCache.keep(swarm.metainfo);
      records.watch(swarm);
    },
    left: (swarm) => {
      totals.broadcasts.left(swarm);
      records.forget(swarm);
    },
  });
  opened.push(() => broadcasts.close());
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
  const resolver = createResolver({
    ports,
    discovery,
    cache: transportCache,
    wrappers,
    allowPrivateFetch: options.allowPrivateFetch ?? false,
    metadataOf,
  });
  const timeoutMs = options.startTimeoutMs ?? DEFAULT_START_TIMEOUT_MS;
  const content = createMetainfoFinder({ resolver, cache: transportCache, clock, metadataOf, timeoutMs });
  const analyzer = createAnalyzer({
    ports,
    content,
    wrappers,
    allowPrivateFetch: options.allowPrivateFetch ?? false,
    readList: readListFacts,
    searchTimeoutMs: Math.min(timeoutMs, options.analysisTimeoutMs ?? DEFAULT_ANALYSIS_TIMEOUT_MS),
  });
  const publisher = createPublisher(discovery, clock, log);
  const liveWindow = await createWindowMaker(ports, options);
  const sessionRecords = await SessionRecords.load({ files: ports.files, stateDir, clock, log });
  const sessions = new Sessions({
    records: sessionRecords,
    clock,
    log,
    swarms: manager,
    live: broadcasts,
    liveWindow,
    resolver,
    startTimeoutMs: timeoutMs,
    audioEncoder: new FfmpegEncoder(ports.processes, clock),
    foreignReader: new ForeignPrograms(ports.processes, ports.http, clock),
    audioTarget: options.audioTarget ?? "aac",
    observer: sessionObserver(metrics, log),
    onMetadata: (metainfo) => {
      void transportCache.keep(metainfo);
      // `RecordRefresh` keeps the records of watched broadcasts in the DHT.
      if (!isLive(metainfo)) publisher.publish(metainfo);
    },
  });
  const lists = new Lists({
    store,
    files: ports.files,
    stateDir,
    clock,
    log,
    sealer: loadSecretBox(ports.files, stateDir),
    open: (url, { credentials, headers = {}, ...open }, signal) => {
      const authorization = credentials
        ? { authorization: basicAuthorization(credentials.login, credentials.password) }
        : {};
      return guardedOpen(ports, url, { ...open, headers: { ...headers, ...authorization } }, signal);
    },
  });
  opened.push(() => lists.close());
  const { players, pages, cast, ...playing } = await createPlayers(ports, options, stateDir, policy);
  const announcements = new Announcements({
    ports,
    token,
    policy,
    mediaServer: (options.playerDiscovery ?? true) && (options.fronts ?? []).includes("dlna"),
  });
  const ending = new AbortController();
  const sent = new SentBroadcasts({ files: ports.files, log, clock, swarms: broadcasts });
  const cacheFigures = () => ({ limitBytes: cache.limitBytes, usedBytes: cache.usedBytes });
  const connected = () => isConnected([...manager.list(), ...broadcasts.list()], discovery);
  const loopDelay = new LoopDelay(clock);
  loopDelay.start();
  opened.push(() => Promise.resolve(loopDelay.close()));
  const figures = engineFigures({
    clock,
    runtime: ports.runtime,
    torrents: { running: () => manager.list(), totals: totals.torrents },
    broadcasts: { running: () => broadcasts.list(), totals: totals.broadcasts },
    cache: cacheFigures,
    sessions: () => sessions.list(),
    isConnected: connected,
  });
  const sentSessions = new SentSessions();
  const app = createApp({
    sessions,
    cacheFigures,
    policy,
    isOwnRequest: (headers) => ownRequests.isOwn(headers),
    admission: new Admission(),
    publicUrl: options.publicUrl ?? null,
    transcodeAudio: options.transcodeAudio ?? "auto",
    prefixes: ["engine", ...options.pathAliases ?? []],
    pages,
    sentSessions,
    fronts: options.fronts ?? [],
    clock,
    log,
    metrics,
    scrape: () => exposition([...figures, ...metrics.families(), loopDelay.histogram]),
    runtime: ports.runtime,
    hlsModule: ports.hlsModule,
    api: {
      token,
      settings,
      signIn,
      players,
      cast,
      content,
      analyzer,
      media: createMediaFinder({ content, analyzer, wrappers }),
      playlist: new Playlist(store, clock),
      channels: new Channels(store),
      catalogue: new Catalogue(store, clock),
      lists,
      checks: new ItemChecks({
        store,
        clock,
        log,
        tasks: lists.tasks,
        probe: createProbe({ clock, resolver, analyzer, swarms: manager, live: broadcasts }),
      }),
      positions: new Positions(store, clock),
      broadcasts: new SourceDesk({
        ports,
        stateDir,
        trackers: options.trackers ?? [],
        broadcast: (wanted) => sent.start(wanted),
        membersOf: (infohashHex) =>
          broadcasts.list().find(({ metainfo }) => metainfo.infohashHex === infohashHex)?.members() ?? [],
      }),
      operating: createOperating({ options, manager, broadcasts, sessions, cacheFigures, recentLog }),
      allowPrivateFetch: options.allowPrivateFetch ?? false,
      fetchBytes: async (url, maxBytes, { callerIsLocal, signal }) => {
        const allowPrivate = callerIsLocal || (options.allowPrivateFetch ?? false);
        return (await guardedFetch(ports, url, { maxBytes, timeoutMs: FETCH_TIMEOUT_MS, allowPrivate }, signal)).bytes;
      },
      closing: ending.signal,
      isConnected: connected,
    },
  });
  await lists.start();
  let closing: Promise<void> | null = null;
  return {
    fetch: async (request, info) => await app.fetch(request, { info: info ?? LOCAL, isChecked: info === undefined }),
    get peerAddress() {
      return manager.peerAddress;
    },
    access: policy,
    servedAt(address) {
      playing.servedAt(address);
      announcements.servedAt(address);
    },
    swarms: manager,
    broadcasts,
    broadcast: (wanted) => sent.start(wanted),
    relay: async (selector, { signal } = {}) => {
      const late = deadline(clock, timeoutMs, signal ? AbortSignal.any([signal, ending.signal]) : ending.signal);
      try {
        const target = await resolver.resolve(selector, { callerIsLocal: true, signal: late.signal });
        const metainfo = target.metainfo ?? await metadataOf(target.magnet!, "any", late.signal);
        return await startRelay(broadcasts, { ...target, metainfo });
      } finally {
        late.cancel();
      }
    },
    close: () =>
      closing ??= (async () => {
        ending.abort(new MillraceError("closed", "the engine is closing"));
        loopDelay.close();
        publisher.close();
        records.close();
        const sessionsEnd = sessions.close();
        const end = (...parts: Closer[]) => closeParts(log, parts);
        await end(() => sent.close(), () => playing.close(), () => announcements.close());
        await end(() => lists.close());
        await end(() => broadcasts.close(), () => manager.close());
        await end(() => discovery.close(), async () =>
          await mapper?.close(), () =>
          transportCache.close(), () =>
          wrappers.close());
        await end(() =>
          sessionRecords.close()
        );
        await end(() => cache.close(), () => sessionsEnd);
        await end(() => store.close());
      })(),
  };
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}
