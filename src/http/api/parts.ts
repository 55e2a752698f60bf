/** Parts of the engine that API methods use. */
import type { AccessToken } from "../../account/access-token.ts";
import type { Devices } from "../../account/devices.ts";
import type { SignIn } from "../../account/sign-in.ts";
import type { SettingsStore } from "../../account/settings.ts";
import type { Analyzer } from "../../content/analysis/analyzer.ts";
import type { MediaFinder } from "../../content/media-files.ts";
import type { MetainfoFinder } from "../../content/metainfo.ts";
import type { ErrorCode } from "../../errors.ts";
import type { Catalogue } from "../../playlist/catalogue.ts";
import type { Channels } from "../../playlist/channel.ts";
import type { BroadcastStatus } from "../../live/broadcast/broadcast-types.ts";
import type { MemberFigures } from "../../live/swarm/member-figures.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { CushionChoice } from "../../playback/cushion.ts";
import type { Positions } from "../../playback/positions.ts";
import type { TrackChoices } from "../../playback/track-choices.ts";
import type { ItemChecks } from "../../playlist/checks.ts";
import type { Playlist } from "../../playlist/items.ts";
import type { Guide } from "../../playlist/guide/guide.ts";
import type { Lists } from "../../playlist/lists.ts";
import type { Sessions } from "../../playback/sessions.ts";
import type { Recordings } from "../../recordings/recordings.ts";
import type { CastReceiver } from "../../players/engines/cast-receiver.ts";
import type { CastSenders } from "../../players/engines/cast-senders.ts";
import type { Players } from "../../players/players.ts";
import type { Clock, FilePort, Logger, RuntimeFacts } from "../../ports.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { AccessPolicy } from "../address.ts";
import type { SentSessions } from "../sent-sessions.ts";
import type { PictureCache } from "./picture.ts";

/** The engine's own state, for the person who operates it. */
export interface Operating {
  settings(): EngineSettings;
  /** Progress of a torrent that runs here; null: it does not run. */
  progress(infohashHex: string): TorrentProgress | null;
  /** For sessions that choose none, also those that run. */
  setCushion(choice: CushionChoice): void;
  setLimits(limits: { readonly downloadBytesPerSecond?: number; readonly uploadBytesPerSecond?: number }): void;
  /** The newest warnings and errors, the newest first. */
  log(): readonly {
    readonly atMs: number;
    readonly level: "error" | "warn";
    readonly message: string;
    readonly detail: string;
  }[];
}

/** What is cached, for the person whose disk it is. */
export interface StorageDesk {
  /** Those used last first, at most `count` from `first` on; `total` of all. */
  list(first: number, count: number): Promise<{ readonly total: number; readonly torrents: readonly CachedTorrent[] }>;
  /** Removes a torrent, kept or not. Rejects with `not_found`, `conflict` while it is in use, `denied`, `too_busy`. */
  remove(infohashHex: string, signal: AbortSignal): Promise<RemovedTorrents>;
  /** Removes all that are neither kept nor in use. Rejects with `denied`. */
  removeAll(signal: AbortSignal): Promise<RemovedTorrents>;
  /** Lets a torrent stay when room is needed, or lets it go. Rejects with `not_found`, `too_large`, `denied`. */
  keep(infohashHex: string, isKept: boolean): Promise<void>;
  /** 0: none; on disk it lasts. Rejects with `conflict` for kept torrents, `denied` where the files are the user's own. */
  setLimit(limitBytes: number): Promise<void>;
}

/** What was removed from the cache. */
export interface RemovedTorrents {
  readonly freedBytes: number;
  /** Torrents that stayed because they are in use. */
  readonly inUseCount: number;
}

/** A torrent in the cache. */
export interface CachedTorrent {
  readonly infohashHex: string;
  /** Null: its transport file is not known any more. */
  readonly name: string | null;
  readonly usedBytes: number;
  readonly totalBytes: number;
  readonly isInUse: boolean;
  /** Whether the torrent stays when room is needed. */
  readonly isKept: boolean;
}

/** State of a torrent before it plays. */
export interface TorrentProgress {
  /** Connected. */
  readonly peers: number;
  /** Addresses of peers that are known. */
  readonly knownPeers: number;
  readonly hasMetadata: boolean;
  /** Bytes; null while nobody sends it, and once it is known. */
  readonly metadata: { readonly receivedBytes: number; readonly totalBytes: number } | null;
  /** Pieces on the disk that are being verified; null: none. */
  readonly checking: { readonly done: number; readonly total: number } | null;
  /** Its trackers, without what is secret in their addresses; `error`: what the last answer was instead of peers. */
  readonly trackers: readonly { readonly name: string; readonly peers: number; readonly error: string | null }[];
  /** Fields of its magnet links that hold no usable address, `tr=…`. */
  readonly unread: readonly string[];
}

/** The engine's settings and current figures. Bytes. */
export interface EngineSettings {
  readonly limits: {
    readonly downloadBytesPerSecond: number;
    readonly uploadBytesPerSecond: number;
    readonly maxPeers: number;
  };
  readonly cushion: CushionChoice;
  readonly cache: { readonly kind: "disk" | "ram" | "seed"; readonly limitBytes: number; readonly usedBytes: number };
  readonly network: {
    readonly peerPort: number | null;
    readonly sources: { readonly dht: boolean; readonly lsd: boolean; readonly pex: boolean };
  };
  readonly swarms: number;
  readonly peers: number;
  readonly sessions: number;
}

/** The broadcasts that callers start. */
export interface BroadcastDesk {
  /**
   * Resolves when the source delivers. Rejects with `invalid_argument` (the source cannot be read), `conflict` (a
   * broadcast of this name runs), `too_busy`, and as opening sources and starting broadcasts do.
   */
  start(
    wanted: { readonly source: string; readonly name: string; readonly title: string },
    signal: AbortSignal,
  ): Promise<BroadcastFigures>;
  list(): readonly BroadcastFigures[];
  /** Rejects with `not_found`. */
  stop(infohashHex: string): Promise<void>;
}

/** A broadcast of ours. */
export interface BroadcastFigures {
  readonly name: string;
  /** In a form that may appear in logs. */
  readonly source: string;
  readonly metainfo: LiveMetainfo;
  readonly contentId: string;
  readonly magnet: string;
  readonly status: BroadcastStatus;
  /** As `OpenedSource.lostPackets`. */
  readonly lostPackets: number | null;
  readonly hasEnded: boolean;
  /** Why it ended, null when its source did. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
  readonly members: readonly MemberFigures[];
}

/** What the handlers of methods work with. */
export interface ApiParts {
  readonly token: AccessToken;
  readonly policy: AccessPolicy;
  readonly settings: SettingsStore;
  readonly signIn: SignIn;
  readonly devices: Devices;
  readonly sessions: Pick<Sessions, "start" | "stop" | "startTimeoutMs">;
  readonly players: Players;
  readonly sentSessions: SentSessions;
  /** Streams that other engines send; null: none are accepted. */
  readonly cast: { readonly receiver: CastReceiver; readonly senders: CastSenders; readonly key: string } | null;
  readonly content: MetainfoFinder;
  readonly analyzer: Analyzer;
  readonly media: MediaFinder;
  readonly playlist: Playlist;
  readonly channels: Channels;
  /** The library as devices browse it. */
  readonly catalogue: Catalogue;
  readonly lists: Lists;
  readonly guide: Guide;
  readonly checks: ItemChecks;
  /** Whether callers elsewhere may name private addresses. */
  readonly allowPrivateFetch: boolean;
  readonly pictures: PictureCache;
  /**
   * GETs an address that a caller gave, within the rules for such addresses.
   *
   * @throws `invalid_argument`, `denied`, `not_found`, `too_large`, `timeout`, `protocol_violation`,
   * `connection_failed`, or the signal's reason: as `guardedFetch`
   */
  readonly fetchBytes: (
    url: string,
    limits: { readonly maxBytes: number; readonly allowPrivate: boolean },
    signal: AbortSignal,
  ) => Promise<Uint8Array>;
  /** The disk, for transport files that callers on this machine name. */
  readonly files: Pick<FilePort, "info" | "readFile">;
  readonly runtime: RuntimeFacts;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Fires when the engine ends: nothing that a call waits for outlives it. */
  readonly closing: AbortSignal;
  readonly positions: Positions;
  readonly trackChoices: TrackChoices;
  readonly operating: Operating;
  readonly storage: StorageDesk;
  readonly broadcasts: BroadcastDesk;
  /** null: the engine keeps nothing on disk. */
  readonly recordings: Recordings | null;
  /** Whether programs on the engine's machine can show windows to a user. */
  readonly hasScreen: () => boolean;
  /** Whether peers, DHT nodes or trackers answer. */
  readonly isConnected: () => boolean;
}
