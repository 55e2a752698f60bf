/** The engine's settings and current usage, for the method API. */
import type { EngineSettings, Operating, TorrentProgress } from "../http/api/parts.ts";
import type { LiveSwarmManager } from "../live/swarm/live-swarms.ts";
import type { CushionSetting } from "../playback/cushion.ts";
import type { Sessions } from "../playback/sessions.ts";
import type { CacheFigures } from "../playback/stat.ts";
import type { TorrentSwarmManager } from "../swarm/manager.ts";
import type { EngineOptions } from "./options.ts";
import type { RecentLog } from "./recent-log.ts";

/** The parts that are inspected. */
export interface OperatingParts {
  readonly options: EngineOptions;
  readonly manager: TorrentSwarmManager;
  readonly broadcasts: LiveSwarmManager;
  readonly sessions: Sessions;
  readonly cushion: CushionSetting;
  readonly cacheFigures: () => CacheFigures;
  readonly recentLog: RecentLog;
}

/** Trackers that progress names at most: nobody reads more. */
const MAX_SHOWN_TRACKERS = 20;

/** Makes the part of the method API for operating the engine. */
export function createOperating(parts: OperatingParts): Operating {
  const { options, manager, broadcasts, sessions } = parts;
  const settings = (): EngineSettings => {
    const { downloadBucket, uploadBucket } = manager.context;
    const swarms = [...manager.list(), ...broadcasts.list()];
    return {
      limits: {
        downloadBytesPerSecond: downloadBucket.bytesPerSecond,
        uploadBytesPerSecond: uploadBucket.bytesPerSecond,
        maxPeers: manager.maxPeers,
      },
      cushion: parts.cushion.choice,
      cache: { kind: options.cache ?? "ram", ...parts.cacheFigures() },
      network: {
        peerPort: manager.peerAddress?.port ?? null,
        sources: { dht: options.dht ?? true, lsd: options.lsd ?? true, pex: options.pex ?? true },
      },
      swarms: swarms.length,
      peers: swarms.reduce((sum, swarm) => sum + swarm.status().peers, 0),
      sessions: sessions.list().length,
    };
  };
  const progress = (infohashHex: string): TorrentProgress | null => {
    const swarm = manager.list().find((one) => [one.infohashHex, one.otherInfohashHex].includes(infohashHex));
    if (swarm === undefined) return null;
    const { metadata, checking } = swarm.picture(0);
    const { peers, sources } = swarm.status();
    const trackers = sources.filter(({ kind }) => kind === "tracker").slice(0, MAX_SHOWN_TRACKERS);
    return {
      peers,
      knownPeers: swarm.peers.book.size,
      hasMetadata: swarm.metainfo !== null,
      metadata,
      checking,
      trackers: trackers.map(({ name, peers, lastError }) => ({ name, peers, error: lastError })),
      unread: [...swarm.named.unread],
    };
  };
  return {
    settings,
    progress,
    setLimits: (limits) => manager.setLimits(limits),
    setCushion: (choice) => void (parts.cushion.choice = choice),
    log: () => parts.recentLog.lines(),
  };
}
