/** Figures of torrents and the settings of the server, as apps expect them: field names are the interface's, numbers whole and not negative. */
import { isLive } from "../../../metainfo/live.ts";
import type { Metainfo, MetainfoFile } from "../../../metainfo/types.ts";
import type { PlaybackSession } from "../../../playback/session.ts";
import type { AnySession } from "../../../playback/sessions.ts";
import type { EngineSettings } from "../../api/parts.ts";
import type { HttpParts } from "../../context.ts";

/** The version whose interface this is. */
const VERSION = "4.20.8";
/** Numbers of the original that nothing here corresponds to. The app refuses an answer that lacks one. */
const TIMEOUTS = { btHandshakeTimeout: 20_000, btRequestTimeout: 4000 } as const;
const SPEEDS = { btDownloadSpeedSoftLimit: 2_621_440, btDownloadSpeedHardLimit: 3_670_016 } as const;
const MIN_PEERS = 5;
/** Files listed: apps ask every second. */
const MAX_FILES = 10_000;

/** `/settings`. */
export function settingsOf(baseUrl: string, { limits, cache }: EngineSettings): Record<string, unknown> {
  return {
    baseUrl,
    options: [],
    values: {
      serverVersion: VERSION,
      // Nobody who may play here learns where the engine keeps its files.
      appPath: "",
      cacheRoot: "",
      cacheSize: cache.limitBytes === 0 ? null : cache.limitBytes,
      btMaxConnections: limits.maxPeers,
      ...TIMEOUTS,
      ...SPEEDS,
      btMinPeersForStable: MIN_PEERS,
      remoteHttps: "",
      proxyStreamsEnabled: false,
      localAddonEnabled: false,
      transcodeProfile: null,
      allTranscodeProfiles: [],
      transcodeHardwareAccel: false,
    },
  };
}

/** The session of a file that plays the torrent, that of file `index` if there is one; null: none does. */
function sessionOf({ sessions }: HttpParts, hash: string, index: number | null): PlaybackSession | null {
  const running = sessions.list().filter((one): one is PlaybackSession =>
    one.kind === "file" && one.identity.infohashHex === hash
  );
  return running.find(({ file }) => file.index === index) ?? running[0] ?? null;
}

/**
 * A torrent's statistics, with the fields of file `index` unless that is null. Null while nothing is known of the torrent
 * or the file; nobody is asked.
 */
export async function statisticsOf(
  parts: HttpParts,
  hash: string,
  index: number | null,
): Promise<Record<string, unknown> | null> {
  const session = sessionOf(parts, hash, index);
  const metainfo = session?.swarm.metainfo ?? await parts.api.content.known(hash);
  if (metainfo === null || isLive(metainfo)) return null;
  const file = index === null ? null : metainfo.files[index];
  if (file === undefined) return null;
  const general = generalOf(parts, metainfo, session);
  if (file === null) return general;
  const streamProgress = session === null ? 0 : progressOf(session, file);
  return { ...general, streamName: file.name, streamLen: file.sizeBytes, streamProgress };
}

function generalOf(
  { api }: HttpParts,
  { infohashHex, name, files }: Metainfo,
  session: PlaybackSession | null,
): Record<string, unknown> {
  const { limits, network } = api.operating.settings();
  const status = session?.swarm.status();
  const peers = status?.peers ?? 0;
  const known = session === null ? 0 : api.operating.progress(infohashHex)?.knownPeers ?? 0;
  return {
    infoHash: infohashHex,
    name,
    files: files.slice(0, MAX_FILES).map(({ name, path, sizeBytes, offset }) => ({
      name,
      path,
      length: sizeBytes,
      offset,
    })),
    sources: [],
    opts: {
      connections: limits.maxPeers,
      dht: network.sources.dht,
      growler: { flood: 0, pulse: SPEEDS.btDownloadSpeedHardLimit },
      handshakeTimeout: TIMEOUTS.btHandshakeTimeout,
      path: "",
      peerSearch: { min: 40, max: 200, sources: [] },
      swarmCap: { maxSpeed: SPEEDS.btDownloadSpeedSoftLimit, minPeers: MIN_PEERS },
      timeout: TIMEOUTS.btRequestTimeout,
      tracker: true,
      virtual: true,
    },
    downloadSpeed: status?.downloadBytesPerSecond ?? 0,
    uploadSpeed: status?.uploadBytesPerSecond ?? 0,
    downloaded: status?.downloadedBytes ?? 0,
    uploaded: status?.uploadedBytes ?? 0,
    peers,
    unchoked: peers,
    queued: 0,
    unique: Math.max(known, peers),
    connectionTries: 0,
    peerSearchRunning: session !== null,
    swarmConnections: peers,
    swarmPaused: false,
    swarmSize: peers,
    selections: [],
    wires: [],
  };
}

/** How much of the file is downloaded, 0 to 1. */
function progressOf({ swarm }: PlaybackSession, file: MetainfoFile): number {
  const here = swarm.picture(file.index).cells?.here ?? [];
  return here.length === 0 ? 0 : here.reduce((sum, ninths) => sum + ninths, 0) / (9 * here.length);
}

/** The statistics of the torrents that these sessions play, by infohash. */
export async function allStatistics(
  parts: HttpParts,
  sessions: readonly AnySession[],
): Promise<Record<string, unknown>> {
  const hashes = new Set(sessions.filter(({ kind }) => kind === "file").map(({ identity }) => identity.infohashHex));
  const entries = await Promise.all([...hashes].map(async (hash) => [hash, await statisticsOf(parts, hash, null)]));
  return Object.fromEntries(entries.filter(([, statistics]) => statistics !== null));
}
