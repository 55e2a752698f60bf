/** What an engine is configured with and what it offers: the types of the composition root. */
import type { AudioTarget, TranscodeAudio } from "../media/model/audio-target.ts";
import type { StreamSelector } from "../content/selector.ts";
import type { AccessPolicy } from "../http/address.ts";
import type { FrontName } from "../http/context.ts";
import type { Broadcast, BroadcastOptions, LiveMembership, Relay } from "../live/broadcast/broadcast-types.ts";
import type { RequestInfo, SocketAddress } from "../ports.ts";
import type { CushionChoice } from "../playback/cushion.ts";
import type { ChannelOrder } from "../playlist/channel.ts";
import type { SwarmManager } from "../swarm/types.ts";

/**
 * How an engine is set up. Every field is optional; the defaults suit an embedder without a disk.
 *
 * @example
 * ```ts
 * const options: EngineOptions = {
 *   stateDir: "/var/lib/millrace",
 *   cache: "disk",
 *   cacheDir: "/var/cache/millrace",
 *   cacheLimitBytes: 20 * 1024 ** 3,
 *   publicUrl: "https://tv.example",
 *   trustProxy: ["10.0.0.2"],
 * };
 * ```
 */
export interface EngineOptions {
  /**
   * Address that peers connect to. Default "::", where they arrive over IPv4 and IPv6; "0.0.0.0" on a machine without IPv6,
   * through a proxy and with one interface alone.
   */
  readonly peerHost?: string;
  /** Default 8621; 0 picks a free port. */
  readonly peerPort?: number;
  /** Directory for data that must survive a restart (DHT nodes, transport files). Default null: nothing is kept. */
  readonly stateDir?: string | null;
  /** Directory of the disk cache; needed with `cache: "disk"`. */
  readonly cacheDir?: string | null;
  /**
   * Where pieces are kept. Default "ram". "seed": `cacheDir` holds the user's own complete files, which are verified
   * and served, never written.
   */
  readonly cache?: "disk" | "ram" | "seed";
  /** Bytes of pieces kept, over all torrents; 0 = no limit. Default 512 MiB. */
  readonly cacheLimitBytes?: number;
  /** 0 (default) = unlimited. */
  readonly downloadLimitBytesPerSecond?: number;
  /** 0 (default) = unlimited. */
  readonly uploadLimitBytesPerSecond?: number;
  /** Connected peers over all swarms. Default 200. */
  readonly maxPeers?: number;
  /** Trackers added to every public torrent. */
  readonly trackers?: readonly string[];
  /** Default true. */
  readonly dht?: boolean;
  /** First contacts of the DHT, `host:port`; default: the well-known routers. */
  readonly dhtBootstrap?: readonly string[];
  /** Local service discovery (BEP 14). Default true. */
  readonly lsd?: boolean;
  /** Peer exchange (BEP 11). Default true. */
  readonly pex?: boolean;
  /** Whether peers of torrents are dialled, and may dial us, over UDP (uTP, BEP 29), too. Default true. */
  readonly utp?: boolean;
  /** Peers in web browsers are found and connected to (WebRTC), without a proxy or a chosen interface. Default true. */
  readonly webrtc?: boolean;
  /**
   * Encryption of connections with peers (MSE). "accept" (default): dialled in plaintext, then encrypted if the peer hangs up;
   * "prefer": the other way round; "require": encrypted alone; "off": in plaintext alone.
   */
  readonly encryption?: "accept" | "prefer" | "require" | "off";
  /** Whether routers are asked to pass the peer port on, unless it listens on loopback. Default true. */
  readonly portMapping?: boolean;
  /**
   * Proxy of what goes out, `socks5://[user:password@]host:port` or `http://…`. LSD, uTP, port mapping, and what needs UDP where
   * the proxy passes none on, are off then. Default null: none.
   */
  readonly proxy?: string | null;
  /**
   * Name or address of the interface from which all is sent, and at which peers are taken. While it is away nothing is sent. LSD
   * and port mapping are off then. Default null: the system chooses.
   */
  readonly interface?: string | null;
  /** "all" (default), or "peers": all but lists, guides and transport files that callers name. */
  readonly proxyFor?: "all" | "peers";
  /** Time after which a stream that has not started fails, ms. Default 60 000. */
  readonly startTimeoutMs?: number;
  /** How long `analyze_content` asks peers about an unknown id, ms. Default 5000; never more than `startTimeoutMs`. */
  readonly analysisTimeoutMs?: number;
  /**
   * How far back players of a broadcast can go, 10 s to 2 h. Kept in memory, at most 768 MiB per broadcast; with
   * `cache` "disk" data older than 90 s is on disk, at most `cacheLimitBytes` per broadcast. Default 60 000.
   */
  readonly liveWindowMs?: number;
  /**
   * Which of a channel's sources are tried first: "peers-first": torrents and broadcasts; "peers-last": addresses.
   * Default "library": as they stand there.
   */
  readonly channelOrder?: ChannelOrder;
  /** Bytes of all recordings, which are kept in `stateDir`; 0 = no limit. Default 50 GiB. */
  readonly recordingsLimitBytes?: number;
  /**
   * How much of a film a player waits for after two stops, when the peers are slower than the film: "auto": so much that
   * the rest plays without a stop; "off"; or seconds of the film. Default "auto".
   */
  readonly cushion?: CushionChoice;
  /**
   * Which sound is converted when a request does not say: "auto": if the file would otherwise be silent; "always": all
   * that MPEG TS cannot carry. Default "auto".
   */
  readonly transcodeAudio?: TranscodeAudio;
  /** Broadcasts as fragmented MP4 are low-latency HLS, with parts of a third of a second. Default false. */
  readonly lowLatency?: boolean;
  /** Format that sound is converted to. Default "aac". */
  readonly audioTarget?: AudioTarget;
  /** How long a swarm stays after its last session, ms; at most 1000 while it has no data. Default 30 000. */
  readonly swarmLingerMs?: number;
  /** Names besides `localhost` and this machine's addresses that `Host` may carry. */
  readonly allowedHosts?: readonly string[];
  /** Origins of web pages that may play and use the API's public methods. Default: none. */
  readonly allowOrigins?: readonly string[];
  /** Base of all URLs in responses when there is a reverse proxy in front. */
  readonly publicUrl?: string | null;
  /** Addresses or CIDR ranges of proxies whose `X-Forwarded-*`, `Forwarded` and `X-Real-IP` are trusted. */
  readonly trustProxy?: readonly string[];
  /** Additional prefixes that serve everything of `/engine`. */
  readonly pathAliases?: readonly string[];
  /** Additional interfaces, compatible with other servers and devices. Default: none. */
  readonly fronts?: readonly FrontName[];
  /** Those of them that pages of every origin may use: whoever makes the user visit a page can use them, too. Default: none. */
  readonly frontPages?: readonly FrontName[];
  /** Folder that is kept filled with `.strm` files of the library, once `servedAt` was called. Default null: none. */
  readonly strmDir?: string | null;
  /** Base of the addresses in them. Default null: `publicUrl`, else the address of `servedAt`. */
  readonly strmUrl?: string | null;
  /** Programs that `open_in_player` may start: commands or paths of mpv, VLC and ffplay. Default: all that are found. */
  readonly playerPrograms?: readonly string[];
  /** Kodis that `open_in_player` may use: `[user:password@]host[:port]` of their web servers. Default: none. */
  readonly kodis?: readonly string[];
  /** Whether to look for players that were not named. Default true. */
  readonly playerDiscovery?: boolean;
  /** What this engine calls itself to others of the local network. Default "millrace". */
  readonly deviceName?: string;
  /** Id of the player, as `get_available_players` lists it, that plays what other engines send. Default: the first program. */
  readonly castPlayer?: string | null;
  /** Keys of engines that may play their streams here without being asked about. */
  readonly allowCastFrom?: readonly string[];
  /** Lets remote callers name private addresses in `url`. Default false. */
  readonly allowPrivateFetch?: boolean;
  /** Token of the JSON API, 64 hexadecimal characters. Default: the one in `stateDir`, made at the first start. */
  readonly accessToken?: string | null;
  /** OpenID Connect issuer whose ID tokens `sign_in` accepts. Default null: none. */
  readonly oidcIssuer?: string | null;
  /** Client id at that issuer; required with it. */
  readonly oidcAudience?: string | null;
  /** libSQL server for settings and playlists. Default null: `millrace.db` in `stateDir`, or memory without one. */
  readonly databaseUrl?: string | null;
  /** Token for that server. */
  readonly databaseToken?: string | null;
}

/** A running engine. */
export interface Engine {
  /**
   * Handles one HTTP request. Without `info` the caller counts as local: only for embedders that check callers
   * themselves.
   *
   * @example
   * ```ts
   * async function addressToPlay(engine: Engine, magnet: string): Promise<string> {
   *   const url = `http://localhost/engine/getstream?format=json&magnet=${encodeURIComponent(magnet)}`;
   *   const { response, error } = await (await engine.fetch(new Request(url))).json();
   *   if (error !== null) throw new Error(error);
   *   return response.playback_url;
   * }
   * ```
   */
  fetch(request: Request, info?: RequestInfo): Promise<Response>;
  /**
   * HTTP clients reach this engine at `address` from now on, a wildcard for all interfaces: where other machines do, other
   * engines find it as a player, and with `fronts: ["dlna"]` televisions find the library, until `close`.
   */
  servedAt(address: SocketAddress): void;
  /** Where peers connect; null when the port could not be opened. */
  readonly peerAddress: { readonly host: string; readonly port: number } | null;
  /** The access policy, for embedders that set it themselves; the API's settings change the same one. */
  readonly access: Pick<AccessPolicy, "setAllowed">;
  /** All swarms, for embedders and the command line. */
  readonly swarms: SwarmManager;
  /** All broadcasts, received and sent. */
  readonly broadcasts: { list(): readonly LiveMembership[] };
  /**
   * Starts a broadcast on this engine's peer port. Rejects as `startBroadcast`, or with `closed` when the engine ends.
   *
   * @example
   * ```ts
   * import type { LiveInput } from "../mod.ts";
   *
   * async function send(engine: Engine, input: LiveInput): Promise<void> {
   *   const broadcast = await engine.broadcast({ input, name: "talk", directory: null });
   *   console.log(broadcast.magnet);
   *   await broadcast.done;
   *   await broadcast.close();
   * }
   * ```
   */
  broadcast(options: BroadcastOptions): Promise<Broadcast>;
  /**
   * Passes on a broadcast without watching it. Rejects as resolving does, or with `invalid_argument` when it is not a
   * broadcast.
   *
   * @example
   * ```ts
   * import type { Relay } from "../mod.ts";
   *
   * async function passOn(engine: Engine, contentId: string, signal: AbortSignal): Promise<Relay> {
   *   const relay = await engine.relay({ kind: "content_id", contentId }, { signal });
   *   console.log(relay.metainfo.name, relay.status().peers);
   *   return relay;
   * }
   * ```
   */
  relay(selector: StreamSelector, options?: { readonly signal?: AbortSignal }): Promise<Relay>;
  /** Ends readers, notifies trackers, saves state; resolves within 3 s. */
  close(): Promise<void>;
}
