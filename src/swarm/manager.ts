/** What all swarms of an engine share: one listener, one set of limits, one table of leases. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { NetworkSurroundings } from "../discovery/nearness.ts";
import { refuseAll } from "../discovery/redirects.ts";
import { PEER_RECEIVE_BUFFER_BYTES } from "../discovery/shared-socket.ts";
import type { Discovery } from "../discovery/types.ts";
import { hasCode, MillraceError } from "../errors.ts";
import { faultFields, guardedClock } from "../bytes/guarded-clock.ts";
import type { Ports, TcpConnection, TcpListener, Timer, UdpSocket } from "../ports.ts";
import { otherName } from "../metainfo/hash-trees.ts";
import type { PieceCache } from "../storage/piece-store.ts";
import { UtpEndpoint } from "../utp/utp-endpoint.ts";
import { connectPeer, type EncryptionMode } from "../wire/mod.ts";
import { Acceptor } from "./acceptor.ts";
import { BanList } from "./neighbours/bans.ts";
import { DEFAULT_UPLOAD_SLOTS } from "./upload/choker.ts";
import type { SwarmContext } from "./context.ts";
import { DialRule } from "./neighbours/dial-rule.ts";
import { DialSlots } from "./neighbours/dial-slots.ts";
import { type Lease, LeasedSwarms } from "./leases.ts";
import { MetadataBudget } from "./metadata/metadata-fetch.ts";
import { Scheduler } from "./scheduler/scheduler.ts";
import { Reachability } from "./neighbours/reachability.ts";
import { TokenBucket } from "./token-bucket.ts";
import type { TransportFileFetch } from "./metadata/transport-sources.ts";
import { TorrentSwarm } from "./torrent/torrent-swarm.ts";
import type { Swarm, SwarmManager, SwarmTarget } from "./types.ts";

/**
 * Read-ahead that every reader gets however small the cache is, bytes: with less, playback would wait at every piece.
 * Storage exceeds its limit by this amount if necessary.
 */
const MIN_READ_AHEAD_BYTES = 2 * 1024 * 1024;

/** Longest linger of a swarm, ms: a restarted player finds its peers still connected, and the window of a broadcast. */
const DEFAULT_LINGER_MS = 30_000;

const DEFAULT_MAX_PEERS = 200;

/** `close` resolves within this, ms. */
const CLOSE_TIMEOUT_MS = 2_500;
/** A torrent that is joined again waits this long until its old store is closed, ms: a disk that hangs must not hold it forever. */
const REOPEN_TIMEOUT_MS = 30_000;

/** Options of `createSwarmManager`. */
export interface SwarmManagerOptions {
  readonly cache: PieceCache;
  /** Default none: only peers that are named or that connect to us. */
  readonly discovery?: Discovery | null;
  /** As in `DiscoveryOptions`, for web seeds. */
  readonly publicFetch?: typeof fetch;
  /** Default: refuses all. */
  readonly transportFileFetch?: TransportFileFetch;
  /** Shared with other users that ask how near an address is. Default: a new one. */
  readonly surroundings?: NetworkSurroundings;
  /** 20 bytes (see `createPeerId`). */
  readonly peerId: Uint8Array;
  /** Default "0.0.0.0". */
  readonly peerHost?: string;
  /** Port to accept peers on; 0 = any free one, null = accept none. Default 0. */
  readonly peerPort?: number | null;
  /** Peers over all swarms. Default 200. */
  readonly maxPeers?: number;
  /** Peers of one swarm. Default 80. */
  readonly maxPeersPerSwarm?: number;
  /** 0 (default) = unlimited. */
  readonly downloadLimitBytesPerSecond?: number;
  /** 0 (default) = unlimited. */
  readonly uploadLimitBytesPerSecond?: number;
  /** Peers uploaded to at once in a swarm, at least 2. Default 8. */
  readonly uploadSlots?: number;
  /** How long a swarm stays after its last lease, ms: see `LeasedSwarm.lingerMs`. Default 30 000. */
  readonly lingerMs?: number;
  /** Default "accept": plaintext first, encrypted when the peer insists. */
  readonly encryption?: EncryptionMode;
  /** Peer exchange. Default true. */
  readonly pex?: boolean;
  /** Peers of torrents connect over UDP (uTP), too. Default true. */
  readonly utp?: boolean;
  /** All goes through a proxy: no uTP, and nobody learns where we listen, for the proxy lets nobody in. Default false. */
  readonly isProxied?: boolean;
  /** A torrent's swarm is closing: it is no longer in `list` and its figures are final. */
  readonly left?: (swarm: Swarm) => void;
}

/** Starts listening and returns the manager. Rejects with `conflict` when the port is taken, `config` for bad options. */
export async function createSwarmManager(ports: Ports, options: SwarmManagerOptions): Promise<TorrentSwarmManager> {
  if (options.peerId.length !== 20) throw new MillraceError("config", "the peer id must be 20 bytes long");
  const manager = new TorrentSwarmManager(ports, options);
  await manager.listen();
  return manager;
}

/** The swarms of torrents, and what those of broadcasts share with them. */
export class TorrentSwarmManager implements SwarmManager {
  /** What all swarms share. */
  readonly context: SwarmContext;
  /** All swarms, including broadcasts (`LiveSwarmManager`): they share the peer port, the places for peers and the bans. */
  readonly swarms: LeasedSwarms;
  readonly #ports: Ports;
  readonly #options: SwarmManagerOptions;
  readonly #acceptor: Acceptor;
  #listener: TcpListener | null = null;
  #externalPort: number | null = null;
  #closing: Promise<void> | null = null;

  /** Use `createSwarmManager`. */
  constructor(ports: Ports, options: SwarmManagerOptions) {
    this.#ports = ports;
    this.#options = options;
    const { clock } = ports;
    this.swarms = new LeasedSwarms(clock, options.lingerMs ?? DEFAULT_LINGER_MS);
    const surroundings = options.surroundings ?? new NetworkSurroundings(ports.network, () => clock.monotonic());
    this.context = {
      ports,
      cache: this.#orderedCache(options.cache),
      discovery: options.discovery ?? null,
      publicFetch: options.publicFetch ?? refuseAll,
      transportFileFetch: options.transportFileFetch ?? refuseAll,
      peerId: options.peerId,
      encryption: options.encryption ?? "accept",
      pex: options.pex ?? true,
      maxPeersPerSwarm: options.maxPeersPerSwarm ?? 80,
      uploadSlots: Math.max(2, options.uploadSlots ?? DEFAULT_UPLOAD_SLOTS),
      metadataBudget: new MetadataBudget(),
      bans: new BanList(),
      dialRule: new DialRule(surroundings),
      externalAddresses: surroundings.external,
      reachability: new Reachability(() => clock.monotonic(), (host) => {
        const nearness = surroundings.nearness(host);
        return nearness === "public" || nearness === "neighbour";
      }),
      isNear: (host) => surroundings.isNear(host),
      slots: new DialSlots(),
      downloadBucket: new TokenBucket(clock, options.downloadLimitBytesPerSecond ?? 0),
      uploadBucket: new TokenBucket(clock, options.uploadLimitBytesPerSecond ?? 0),
      buffers: options.cache.buffers ?? { acquire: (bytes) => new Uint8Array(bytes), release: () => {} },
      createScheduler: (shape, sources, forgetPiece) => new Scheduler(shape, sources, forgetPiece),
      utp: new UtpEndpoint({ clock, random: Math.random, open: () => this.#openUdp() }),
      usesUtp: (options.utp ?? true) && options.isProxied !== true,
      connectPeer,
      described: (infohashHex) => this.#described(infohashHex),
      failed: (error) => this.#ports.log.log("error", "a fault of the engine", faultFields(error)),
      listenPort: () => {
        if (this.#listener === null || options.isProxied === true) return null;
        return this.#externalPort ?? this.#listener.address.port;
      },
      utpPort: async () => {
        const port = await this.context.utp.bind();
        return port === this.#listener?.address.port ? this.#externalPort ?? port : port;
      },
      globalRoom: () => this.#globalRoom(),
      readAheadRoom: () => this.#readAheadRoom(),
    };
    this.#acceptor = new Acceptor(this.context, this.swarms);
  }

  /** Most peers over all swarms. */
  get maxPeers(): number {
    return this.#options.maxPeers ?? DEFAULT_MAX_PEERS;
  }

  get peerAddress(): { host: string; port: number } | null {
    return this.#listener === null ? null : { ...this.#listener.address };
  }

  /** Call it once. Rejects with `conflict` when the port is taken. */
  async listen(): Promise<void> {
    const port = this.#options.peerPort === undefined ? 0 : this.#options.peerPort;
    if (port === null) return;
    try {
      this.#listener = await (port === 0 ? this.#listenAnywhere() : this.#listenAt(port));
    } catch (error) {
      // A platform without sockets still plays from web seeds.
      if (!hasCode(error, "unavailable")) throw error;
      this.#ports.log.log("info", "this platform accepts no peers", { error: String(error) });
      return;
    }
    // Others may dial this port by uTP first: refused at once, they try TCP at once. Without UDP they wait some seconds.
    const { utp, usesUtp } = this.context;
    if (usesUtp) utp.listen((connection) => this.#acceptor.take(connection, "utp"));
    await utp.bind().catch(() => null);
  }

  #listenAt(port: number): Promise<TcpListener> {
    const at = { host: this.#options.peerHost ?? "0.0.0.0", port };
    return this.#ports.tcp.listen(at, (connection) => this.#acceptor.take(connection, "tcp"));
  }

  /** At the number of the DHT's UDP port if that is free: others dial the port that we announce over UDP as well. */
  async #listenAnywhere(): Promise<TcpListener> {
    const port = this.context.discovery?.dhtPort ?? 0;
    return await this.#listenAt(port).catch((error) => {
      if (port === 0 || !hasCode(error, "conflict")) throw error;
      return this.#listenAt(0);
    });
  }

  /**
   * The DHT's port if it has one, else the number of the peer port, so that a router needs to pass on only one number.
   */
  async #openUdp(): Promise<UdpSocket> {
    if (this.#options.isProxied === true) throw new MillraceError("unavailable", "no uTP through a proxy");
    const shared = this.context.discovery?.peerDatagrams ?? null;
    if (shared !== null) return shared;
    const { udp } = this.#ports;
    const wanted = { host: this.#options.peerHost ?? "0.0.0.0", receiveBufferBytes: PEER_RECEIVE_BUFFER_BYTES };
    return await udp.bind({ ...wanted, port: this.#listener?.address.port ?? 0 }).catch(() => udp.bind(wanted));
  }

  acquire(target: SwarmTarget): Lease<TorrentSwarm> {
    const infohashHex = target.metainfo?.infohashHex ?? target.magnet?.infohashHex;
    if (infohashHex === undefined) throw new MillraceError("invalid_argument", "neither metainfo nor magnet given");
    const swarm = this.#joined(infohashHex, target);
    const peering = target.withoutPeers === true ? 0 : 1;
    swarm.peeringLeases += peering;
    swarm.followLeases();
    return this.swarms.lease(swarm, (remaining, current) => {
      current.peeringLeases -= peering;
      if (remaining > 0) current.followLeases();
    });
  }

  /**
   * What a swarm of this infohash shares with the others. Its clock is its own: an exception in one of its timers ends
   * this swarm, and nobody else notices.
   */
  contextOf(infohashHex: string): SwarmContext {
    const failed = (cause: unknown) => {
      const fields = { infohash: infohashHex, ...faultFields(cause) };
      this.#ports.log.log("error", "a fault of the engine ended a swarm", fields);
      const swarm = this.swarms.get(infohashHex);
      const reason = new MillraceError("internal", "a fault of the engine ended this stream: start it again", {
        cause,
      });
      if (swarm !== undefined) void this.swarms.leave(swarm, reason);
    };
    return { ...this.context, failed, ports: { ...this.#ports, clock: guardedClock(this.#ports.clock, failed) } };
  }

  list(): readonly TorrentSwarm[] {
    return this.swarms.list().filter((swarm) => swarm instanceof TorrentSwarm);
  }

  /** Takes a connection to a web browser, which shakes hands first. */
  takeFromPage(connection: TcpConnection): void {
    this.#acceptor.take(connection, "webrtc");
  }

  /** The port by which others reach ours, because a router passes it on; null: others use our port's own number. */
  setExternalPort(port: number | null): void {
    this.#externalPort = port;
  }

  /** Whether this host, or a peer at it, is banned for corrupt data or for breaking the protocol. */
  banned(host: string): boolean {
    return this.context.bans.concerns(host, this.#ports.clock.monotonic());
  }

  /** Bytes per second, 0 = unlimited. */
  setLimits(limits: { downloadBytesPerSecond?: number; uploadBytesPerSecond?: number }): void {
    if (limits.downloadBytesPerSecond !== undefined) {
      this.context.downloadBucket.setLimit(limits.downloadBytesPerSecond);
    }
    if (limits.uploadBytesPerSecond !== undefined) this.context.uploadBucket.setLimit(limits.uploadBytesPerSecond);
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    this.#acceptor.close();
    this.context.utp.close();
    const jobs = [this.#listener?.close(), this.swarms.close()];
    this.context.downloadBucket.close();
    this.context.uploadBucket.close();
    let timer: Timer | undefined;
    const late = new Promise<void>((resolve) => {
      timer = this.#ports.clock.setTimeout(resolve, CLOSE_TIMEOUT_MS);
    });
    await Promise.race([Promise.all(jobs), late]);
    timer?.cancel();
  }

  /** Shares the running swarm of that infohash, or starts one. */
  #joined(infohashHex: string, target: SwarmTarget): TorrentSwarm {
    // A magnet of the other name may be waiting for its metadata.
    const second = target.metainfo === undefined ? null : otherName(infohashHex, target.metainfo);
    const running = this.swarms.get(infohashHex) ?? (second === null ? undefined : this.swarms.get(second));
    if (running instanceof TorrentSwarm) {
      running.learn(target);
      return running;
    }
    if (running !== undefined) throw new MillraceError("conflict", "this broadcast is already running");
    this.swarms.makeRoom();
    const swarm = new TorrentSwarm(this.contextOf(infohashHex), target);
    this.swarms.add(swarm, () => this.#options.left?.(swarm));
    return swarm;
  }

  /** Two magnets of a hybrid have a swarm each until the first of them has its metadata: it takes the other one over. */
  async #described(infohashHex: string): Promise<void> {
    const swarm = this.swarms.get(infohashHex);
    if (!(swarm instanceof TorrentSwarm)) return;
    const twin = this.list().find((one) => one !== swarm && one.infohashHex === swarm.otherInfohashHex);
    if (twin === undefined) return;
    swarm.takeOver(twin);
    await this.swarms.merge(twin, swarm);
  }

  #globalRoom(): number {
    return this.swarms.list().reduce((room, { peers }) => room - peers.count, this.maxPeers);
  }

  /** Half of the cache is for read-ahead; the other half holds what was read and pieces under way. */
  #readAheadRoom(): number {
    const { limitBytes } = this.#options.cache;
    if (limitBytes === 0) return Infinity;
    const readers = this.list().reduce((count, { readingAheadCount }) => count + readingAheadCount, 0);
    return Math.max(MIN_READ_AHEAD_BYTES, Math.floor(limitBytes / 2 / Math.max(1, readers)));
  }

  /** A torrent joined again while its old swarm is closing waits until the old store is closed. */
  #orderedCache(cache: PieceCache): PieceCache {
    return {
      open: async (layout) => {
        const late = deadline(this.#ports.clock, REOPEN_TIMEOUT_MS, undefined, stillClosing);
        await withSignal(this.swarms.closed(layout.infohashHex), late.signal).finally(() => late.cancel());
        return await cache.open(layout);
      },
      get usedBytes() {
        return cache.usedBytes;
      },
      get limitBytes() {
        return cache.limitBytes;
      },
      torrents: () => cache.torrents(),
      keep: (infohashHex, isKept) => cache.keep(infohashHex, isKept),
      setLimit: (limitBytes) => cache.setLimit(limitBytes),
      remove: (infohashHex) => cache.remove(infohashHex),
      close: () => cache.close(),
    };
  }
}

function stillClosing(): MillraceError {
  return new MillraceError("too_busy", "this torrent is still being closed after its last use: try again in a minute");
}
