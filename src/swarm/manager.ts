/** All swarms of an engine: one listener, one set of limits, leases and lingering. */
import { Surroundings } from "../discovery/nearness.ts";
import { refuseAll } from "../discovery/redirects.ts";
import type { Discovery } from "../discovery/types.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { Ports, SocketAddress, TcpListener, Timer, UdpSocket } from "../ports.ts";
import type { PieceCache } from "../storage/types.ts";
import { UtpEndpoint } from "../utp/utp-endpoint.ts";
import { acceptPeer, connectPeer, type EncryptionMode, type LinkSettings } from "../wire/mod.ts";
import type { PeerLink, PeerLinkHandlers } from "../wire/types.ts";
import { Acceptor } from "./acceptor.ts";
import type { KnownAddress } from "./address-book.ts";
import { BanList } from "./bans.ts";
import { DEFAULT_UPLOAD_SLOTS } from "./choker.ts";
import type { SwarmContext } from "./context.ts";
import { DialRule } from "./dial-rule.ts";
import { DialSlots } from "./dial-slots.ts";
import { MetadataBudget } from "./metadata-fetch.ts";
import { Scheduler } from "./scheduler/scheduler.ts";
import { Reachability } from "./reachability.ts";
import { TokenBucket } from "./token-bucket.ts";
import { TorrentSwarm } from "./torrent-swarm.ts";
import type { Swarm, SwarmLease, SwarmManager, SwarmTarget } from "./types.ts";

/** Swarms at once. Each costs connections, announces and memory; sessions share them. */
const MAX_SWARMS = 256;

/**
 * Read-ahead that every reader gets however small the cache is, bytes: with less, playback would wait at every piece.
 * Storage exceeds its limit by this amount if necessary.
 */
const MIN_READ_AHEAD_BYTES = 2 * 1024 * 1024;

/** Linger of a swarm that has pieces, ms: a restarted player finds its peers still connected. */
const DEFAULT_LINGER_MS = 30_000;

/** Linger of a swarm that has no piece, ms: closing it loses nothing, but the next try may follow at once. */
const EMPTY_LINGER_MS = 1_000;

const DEFAULT_MAX_PEERS = 200;

/** `close` resolves within this, ms. */
const CLOSE_TIMEOUT_MS = 2_500;

/** Options of `createSwarmManager`. */
export interface SwarmManagerOptions {
  readonly cache: PieceCache;
  /** Default none: only peers that are named or that connect to us. */
  readonly discovery?: Discovery | null;
  /** As in `DiscoveryOptions`, for web seeds. */
  readonly publicFetch?: typeof fetch;
  /** Shared with other users that ask how near an address is. Default: a new one. */
  readonly surroundings?: Surroundings;
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
  /** How long a swarm stays after its last lease, ms; at most 1000 while it has no piece. Default 30 000. */
  readonly lingerMs?: number;
  /** Default "accept": plaintext first, encrypted when the peer insists. */
  readonly encryption?: EncryptionMode;
  /** Peer exchange. Default true. */
  readonly pex?: boolean;
  /** A swarm is closing: it is no longer in `list` and its figures are final. */
  readonly left?: (swarm: Swarm) => void;
}

/** A swarm of another kind that shares the peer port, the places for peers and the bans: a broadcast. */
export interface GuestSwarm {
  /** Connections, including those still in their handshake. */
  readonly peerCount: number;
  admit(remote: SocketAddress): { settings: LinkSettings; attach: (link: PeerLink) => PeerLinkHandlers } | null;
  /** There may be room for peers. */
  pump(): void;
}

/** A guest's place. */
export interface GuestPlace {
  /** Peers that a torrent swarm learnt before the metadata showed that this is a broadcast. */
  readonly addresses: readonly Pick<KnownAddress, "address" | "origin">[];
  /** Stops sending peers to it. */
  release(): void;
}

/** A swarm manager with the operations that embedding and broadcasts need besides playback. */
export interface TorrentSwarmManager extends SwarmManager {
  acquire(target: SwarmTarget): SwarmLease & { readonly swarm: TorrentSwarm };
  list(): readonly TorrentSwarm[];
  /** What its swarms share. */
  readonly context: SwarmContext;
  /**
   * From now on sends the peers of an infohash to `guest`; a torrent swarm of that infohash ends. Throws `conflict`
   * when another guest has it, `too_busy`, or `closed`.
   */
  host(infohashHex: string, guest: GuestSwarm): GuestPlace;
  /** Most peers over all swarms. */
  readonly maxPeers: number;
  /** The port by which others reach ours, because a router passes it on; null: others use our port's own number. */
  setExternalPort(port: number | null): void;
  /** Whether this host is banned for corrupt data or for breaking the protocol. */
  banned(host: string): boolean;
  /** Bytes per second, 0 = unlimited. */
  setLimits(limits: { downloadBytesPerSecond?: number; uploadBytesPerSecond?: number }): void;
}

/** Starts listening and returns the manager. Rejects with `conflict` when the port is taken, `config` for bad options. */
export async function createSwarmManager(ports: Ports, options: SwarmManagerOptions): Promise<TorrentSwarmManager> {
  if (options.peerId.length !== 20) throw new MillraceError("config", "the peer id must be 20 bytes long");
  const manager = new Manager(ports, options);
  await manager.listen();
  return manager;
}

interface Entry {
  readonly swarm: TorrentSwarm;
  leases: number;
  /** Leases that use peers. */
  peering: number;
  linger: Timer | null;
}

class Manager implements TorrentSwarmManager {
  private readonly ports: Ports;
  private readonly options: SwarmManagerOptions;
  readonly context: SwarmContext;
  private readonly acceptor: Acceptor;
  private readonly entries = new Map<string, Entry>();
  private readonly guests = new Map<string, GuestSwarm>();
  /** Swarms being closed: their store must be closed before it is opened again. */
  private readonly leaving = new Map<string, Promise<void>>();
  private listener: TcpListener | null = null;
  private externalPort: number | null = null;
  private closing: Promise<void> | null = null;

  constructor(ports: Ports, options: SwarmManagerOptions) {
    this.ports = ports;
    this.options = options;
    const { clock } = ports;
    const surroundings = options.surroundings ?? new Surroundings(ports.network, () => clock.monotonic());
    this.context = {
      ports,
      cache: this.orderedCache(options.cache),
      discovery: options.discovery ?? null,
      publicFetch: options.publicFetch ?? refuseAll,
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
      utp: new UtpEndpoint({ clock, random: Math.random, open: () => this.openUdp() }),
      connectPeer,
      listenPort: () => this.listener === null ? null : this.externalPort ?? this.listener.address.port,
      utpPort: async () => {
        const port = await this.context.utp.bind();
        return port === this.listener?.address.port ? this.externalPort ?? port : port;
      },
      globalRoom: () => this.globalRoom(),
      readAheadRoom: () => this.readAheadRoom(),
    };
    this.acceptor = new Acceptor({
      clock,
      encryption: this.context.encryption,
      bans: this.context.bans,
      reachability: this.context.reachability,
      infohashes: () => [...this.entries.keys(), ...this.guests.keys()],
      lookup: (infohashHex, remote) => {
        const taken = (this.entries.get(infohashHex)?.swarm ?? this.guests.get(infohashHex))?.admit(remote) ?? null;
        return taken === null ? null : { ...taken.settings, attach: taken.attach };
      },
      accept: acceptPeer,
    });
  }

  get maxPeers(): number {
    return this.options.maxPeers ?? DEFAULT_MAX_PEERS;
  }

  get peerAddress(): { host: string; port: number } | null {
    return this.listener === null ? null : { ...this.listener.address };
  }

  async listen(): Promise<void> {
    const port = this.options.peerPort === undefined ? 0 : this.options.peerPort;
    if (port === null) return;
    const at = { host: this.options.peerHost ?? "0.0.0.0", port };
    try {
      this.listener = await this.ports.tcp.listen(at, (connection) => this.acceptor.take(connection));
    } catch (error) {
      // A platform without sockets still plays from web seeds.
      if (!hasCode(error, "unavailable")) throw error;
      this.ports.log.log("info", "this platform accepts no peers", { error: String(error) });
    }
  }

  /**
   * The DHT's port if it has one, else the number of the peer port, so that a router needs to pass on only one number.
   */
  private async openUdp(): Promise<UdpSocket> {
    const shared = this.context.discovery?.peerDatagrams ?? null;
    if (shared !== null) return shared;
    const { udp } = this.ports;
    const host = this.options.peerHost ?? "0.0.0.0";
    return await udp.bind({ host, port: this.listener?.address.port ?? 0 }).catch(() => udp.bind({ host }));
  }

  acquire(target: SwarmTarget): SwarmLease & { readonly swarm: TorrentSwarm } {
    if (this.closing !== null) throw new MillraceError("closed", "the engine is closing");
    const infohashHex = target.metainfo?.infohashHex ?? target.magnet?.infohashHex;
    if (infohashHex === undefined) throw new MillraceError("invalid_argument", "neither metainfo nor magnet given");
    let entry = this.entries.get(infohashHex);
    if (entry === undefined) {
      if (this.guests.has(infohashHex)) throw new MillraceError("conflict", "this broadcast is already running");
      this.makeRoom();
      entry = { swarm: new TorrentSwarm(this.context, target), leases: 0, peering: 0, linger: null };
      this.entries.set(infohashHex, entry);
    } else entry.swarm.learn(target);
    const share = target.withoutPeers === true ? 0 : 1;
    entry.leases++;
    entry.peering += share;
    entry.swarm.setPeering(entry.peering > 0);
    entry.linger?.cancel();
    entry.linger = null;
    const held = entry;
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      held.peering -= share;
      if (--held.leases === 0) this.linger(infohashHex, held);
      else held.swarm.setPeering(held.peering > 0);
    };
    return { swarm: held.swarm, release };
  }

  list(): readonly TorrentSwarm[] {
    return [...this.entries.values()].map((entry) => entry.swarm);
  }

  host(infohashHex: string, guest: GuestSwarm): GuestPlace {
    if (this.closing !== null) throw new MillraceError("closed", "the engine is closing");
    if (this.guests.has(infohashHex)) throw new MillraceError("conflict", "this broadcast is already running");
    this.makeRoom();
    const entry = this.entries.get(infohashHex);
    const addresses = entry?.swarm.knownAddresses().map(({ address, origin }) => ({ address, origin })) ?? [];
    if (entry !== undefined) void this.leave(infohashHex, entry);
    this.guests.set(infohashHex, guest);
    const release = () => {
      if (this.guests.get(infohashHex) === guest) this.guests.delete(infohashHex);
      for (const other of this.entries.values()) other.swarm.pump();
    };
    return { addresses, release };
  }

  setExternalPort(port: number | null): void {
    this.externalPort = port;
  }

  banned(host: string): boolean {
    return this.context.bans.has(host, this.ports.clock.monotonic());
  }

  setLimits(limits: { downloadBytesPerSecond?: number; uploadBytesPerSecond?: number }): void {
    if (limits.downloadBytesPerSecond !== undefined) {
      this.context.downloadBucket.setLimit(limits.downloadBytesPerSecond);
    }
    if (limits.uploadBytesPerSecond !== undefined) this.context.uploadBucket.setLimit(limits.uploadBytesPerSecond);
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private async shutDown(): Promise<void> {
    this.acceptor.close();
    this.context.utp.close();
    const jobs = [this.listener?.close()];
    for (const [infohashHex, entry] of [...this.entries]) jobs.push(this.leave(infohashHex, entry));
    jobs.push(...this.leaving.values());
    this.context.downloadBucket.close();
    this.context.uploadBucket.close();
    let timer: Timer | undefined;
    const late = new Promise<void>((resolve) => {
      timer = this.ports.clock.setTimeout(resolve, CLOSE_TIMEOUT_MS);
    });
    await Promise.race([Promise.all(jobs), late]);
    timer?.cancel();
  }

  private linger(infohashHex: string, entry: Entry): void {
    if (this.closing !== null) return;
    entry.linger?.cancel();
    const lingerMs = this.options.lingerMs ?? DEFAULT_LINGER_MS;
    const isEmpty = entry.swarm.status().havePieces === 0;
    entry.linger = this.ports.clock.setTimeout(
      () => void this.leave(infohashHex, entry),
      isEmpty ? Math.min(lingerMs, EMPTY_LINGER_MS) : lingerMs,
    );
  }

  private leave(infohashHex: string, entry: Entry): Promise<void> {
    if (this.entries.get(infohashHex) !== entry) return this.leaving.get(infohashHex) ?? Promise.resolve();
    this.entries.delete(infohashHex);
    entry.linger?.cancel();
    this.options.left?.(entry.swarm);
    const job = entry.swarm.close().finally(() => {
      if (this.leaving.get(infohashHex) === job) this.leaving.delete(infohashHex);
    });
    this.leaving.set(infohashHex, job);
    for (const other of this.entries.values()) other.swarm.pump();
    for (const guest of this.guests.values()) guest.pump();
    return job;
  }

  /** Closes a lingering swarm to make room for a new one; throws when all are in use. */
  private makeRoom(): void {
    if (this.entries.size + this.guests.size < MAX_SWARMS) return;
    for (const [infohashHex, entry] of this.entries) {
      if (entry.leases === 0) return void this.leave(infohashHex, entry);
    }
    throw new MillraceError("too_busy", "too many torrents at once");
  }

  private globalRoom(): number {
    let used = 0;
    for (const entry of this.entries.values()) used += entry.swarm.peerCount;
    for (const guest of this.guests.values()) used += guest.peerCount;
    return this.maxPeers - used;
  }

  /** Half of the cache is for read-ahead; the other half holds what was read and pieces under way. */
  private readAheadRoom(): number {
    const { limitBytes } = this.options.cache;
    if (limitBytes === 0) return Infinity;
    let readers = 0;
    for (const entry of this.entries.values()) readers += entry.swarm.readingAheadCount;
    return Math.max(MIN_READ_AHEAD_BYTES, Math.floor(limitBytes / 2 / Math.max(1, readers)));
  }

  /** A torrent joined again while its old swarm is closing waits until the old store is closed. */
  private orderedCache(cache: PieceCache): PieceCache {
    return {
      open: async (layout) => {
        await this.leaving.get(layout.infohashHex);
        return await cache.open(layout);
      },
      get usedBytes() {
        return cache.usedBytes;
      },
      get limitBytes() {
        return cache.limitBytes;
      },
      remove: (infohashHex) => cache.remove(infohashHex),
      close: () => cache.close(),
    };
  }
}
