/** One torrent's swarm: metadata, data path, peers, web seeds, discovery and readers, from joining to leaving. */
import { deferred } from "../../bytes/deferred.ts";
import { withSignal } from "../../bytes/deadline.ts";
import { fromHex } from "../../bytes/hex.ts";
import { MillraceError } from "../../errors.ts";
import type { SocketAddress } from "../../ports.ts";
import type { PieceStore } from "../../storage/piece-store.ts";
import { type AnyMetainfo, isLive, type LiveMetainfo } from "../../metainfo/live.ts";
import { lacksLayers, otherName } from "../../metainfo/hash-trees.ts";
import type { Magnet, Metainfo } from "../../metainfo/types.ts";
import { announceState, Announcing, namedIn } from "./announcing.ts";
import { Completion } from "./completion.ts";
import type { SwarmContext } from "../context.ts";
import { HashExchange } from "../hashes/hash-exchange.ts";
import { pieceBytes } from "../data/layout.ts";
import type { LeasedSwarm } from "../leases.ts";
import { MagnetFacts } from "./magnet-facts.ts";
import { MetadataFetch } from "../metadata/metadata-fetch.ts";
import { torrentFetches } from "../../discovery/torrent-fetch.ts";
import { scopeIn } from "../../discovery/types.ts";
import { learnNamedPeers, namedDhtNodes } from "../neighbours/named-peers.ts";
import type { PeerSession, Torrent } from "./peer-session.ts";
import { Peers } from "./peers.ts";
import { type SwarmPicture, swarmPicture } from "../data/picture.ts";
import { Readers } from "../reading/readers.ts";
import { swarmStatus } from "./status.ts";
import { TorrentSources } from "./torrent-sources.ts";
import { Transfer } from "../data/transfer.ts";
import { TransportSources } from "../metadata/transport-sources.ts";
import type { ReaderOptions, Swarm, SwarmReader, SwarmStatus, SwarmTarget } from "../types.ts";
import { UploadCache } from "../upload/upload-cache.ts";
import { WebSeedScopes } from "../web-seeds/scopes.ts";
import { WebSeeds } from "../web-seeds/web-seeds.ts";

/** Discovery is asked for more peers while fewer than this are connected. */
const FEW_PEERS = 8;

/** Linger of a swarm that has no piece, ms: closing it loses nothing, but the next try may follow at once. */
const EMPTY_LINGER_MS = 1_000;

/** A swarm that runs until `close`. */
export class TorrentSwarm implements Swarm, LeasedSwarm, Torrent {
  readonly infohashHex: string;
  readonly infohash: Uint8Array;
  /** Leases that use peers. After a change call `followLeases`. */
  peeringLeases = 0;
  transfer: Transfer | null = null;
  uploads: UploadCache | null = null;
  readonly #context: SwarmContext;
  readonly fetcher: MetadataFetch<PeerSession>;
  readonly hashes: HashExchange<PeerSession>;
  readonly peers: Peers;
  readonly #transportSources: TransportSources;
  readonly #discovery: Announcing;
  #store: PieceStore | null = null;
  #opening: Promise<void> = Promise.resolve();
  readonly #webSeeds: WebSeeds;
  /** What the magnets named. */
  readonly named = new MagnetFacts();
  readonly #webSeedScopes = new WebSeedScopes((url) => this.#webSeeds.retry(url));
  readonly #readers: Readers;
  #downloadAll = false;
  #isPeering: boolean;
  #toldCompleted = false;
  #trouble: string | null = null;
  #closing: Promise<void> | null = null;
  readonly #ending = new AbortController();
  readonly #started = deferred<AnyMetainfo>();
  /** Set when the metadata has arrived; public as `metainfo` when the store is open. */
  #description: Metainfo | null = null;
  readonly #completion = new Completion(this.#ending.signal);

  constructor(context: SwarmContext, target: SwarmTarget) {
    const named = target.metainfo ?? target.magnet;
    if (named === undefined) throw new MillraceError("invalid_argument", "neither metainfo nor magnet given");
    this.#context = context;
    this.infohash = named.infohash;
    this.infohashHex = named.infohashHex;
    void this.#started.promise.catch(() => {}).then(() => this.#transportSources.close());
    this.peers = new Peers(context, this);
    this.#readers = new Readers({
      now: () => context.ports.clock.monotonic(),
      stallWithoutPeers: () => this.peers.memberCount === 0 && this.#webSeeds.count === 0,
      readAheadRoom: () => context.readAheadRoom(),
    });
    this.fetcher = new MetadataFetch(context.ports.clock, context.metadataBudget, this.peers);
    this.hashes = new HashExchange(context.ports.clock, this.peers);
    this.#transportSources = new TransportSources({
      infohashHex: this.infohashHex,
      ports: context.ports,
      budget: context.metadataBudget,
      fetch: context.transportFileFetch,
      found: (metainfo, servers) => {
        if (isLive(metainfo)) this.#giveWay(metainfo);
        else this.learn({ metainfo, servers, withoutPeers: !this.#isPeering });
      },
    });
    this.#webSeeds = new WebSeeds({
      clock: context.ports.clock,
      fetchesFor: (url) => torrentFetches(context, this.infohashHex, this.#webSeedScopes.isAny(url)),
      downloadBucket: context.downloadBucket,
      downloaded: (bytes) => this.peers.downloadRate.add(bytes, context.ports.clock.monotonic()),
      log: context.ports.log,
    }, () => this.peers.takeId());
    this.#discovery = new Announcing(context.discovery, {
      infohash: this.infohash,
      ...namedIn(target),
      onPeer: (address, origin, source) => this.peers.found(address, origin, source),
      state: () => announceState(this.transfer, this.peers.uploadRate.totalBytes),
    });
    this.#isPeering = target.withoutPeers !== true;
    this.peers.setWanted(this.#isPeering);
    if (target.metainfo === undefined && this.#isPeering) this.#discovery.begin();
    this.learn(target);
  }

  get otherInfohashHex(): string | null {
    return this.#description && otherName(this.infohashHex, this.#description);
  }

  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  get metainfo(): Metainfo | null {
    return this.transfer?.metainfo ?? null;
  }

  /** BEP 27. */
  get isPrivate(): boolean {
    return this.#description?.isPrivate ?? false;
  }

  /** Readers that fetch ahead. */
  get readingAheadCount(): number {
    return this.#readers.readingAheadCount;
  }

  /** Somebody reads, everything is wanted, or the metadata is not known yet. */
  get eager(): boolean {
    if (this.transfer === null) return true;
    return !this.transfer.complete && (this.#readers.count > 0 || this.#downloadAll);
  }

  /** Learns from another description of the same torrent: metadata, trackers, peers, web seeds. */
  learn(target: SwarmTarget): void {
    const { magnet, metainfo, servers = "any", withoutPeers = false } = target;
    this.peers.joinedBy(servers);
    if (metainfo !== undefined) {
      const scope = scopeIn(metainfo, servers);
      this.#discovery.addTrackers(metainfo.trackers, scope);
      this.#webSeedScopes.allow([...metainfo.webSeeds, ...metainfo.httpSeeds ?? []], scope);
      const nodes = withoutPeers ? [] : namedDhtNodes(metainfo, this.peers.rule, scope);
      for (const node of nodes) this.#context.discovery?.addDhtNode(node);
      this.#begin(metainfo);
    }
    if (magnet === undefined) return;
    this.#discovery.addTrackers(magnet.trackers.map((tracker) => [tracker]), servers);
    this.#webSeedScopes.allow(magnet.webSeeds, servers);
    this.named.learn(magnet);
    if (this.#description === null) this.#wait({ magnet, servers, withoutPeers });
    const peers = { infohashHex: this.infohashHex, texts: withoutPeers ? [] : magnet.peers };
    learnNamedPeers(this.#context.ports, peers, this.#ending.signal, (address) => {
      this.peers.found(address, "magnet", null, servers);
    });
    if (this.#description === null) this.#transportSources.add(magnet.sources ?? [], servers, withoutPeers);
    this.#openWebSeeds();
  }

  /** The metadata may come by the other name that a magnet states, or by another swarm's magnet. */
  #wait(target: SwarmTarget & { readonly magnet: Magnet }): void {
    this.named.keep(target);
    const second = otherName(this.infohashHex, target.magnet);
    if (second !== null) this.#discovery.addName(fromHex(second));
  }

  /**
   * Looks for peers and serves them if a lease uses peers. If none does, all bytes come from web seeds, and we announce
   * ourselves nowhere.
   */
  followLeases(): void {
    const isPeering = this.peeringLeases > 0;
    if (isPeering === this.#isPeering || this.#closing !== null) return;
    this.#isPeering = isPeering;
    this.peers.setWanted(isPeering);
    if (!isPeering) void this.#discovery.pause();
    else if (this.transfer !== null || this.#description === null) this.#beginDiscovery();
  }

  /** Dials an address that the user named. */
  addPeer(address: SocketAddress): void {
    this.peers.learn(address, "manual", null, "any");
  }

  lingerMs(longestMs: number): number {
    return this.transfer === null || this.transfer.bank.have.count === 0
      ? Math.min(longestMs, EMPTY_LINGER_MS)
      : longestMs;
  }

  metadata(signal: AbortSignal): Promise<AnyMetainfo> {
    return withSignal(this.#started.promise, signal);
  }

  openReader(fileIndex: number, options: ReaderOptions = {}): SwarmReader {
    const { transfer } = this;
    if (this.#closing !== null) throw new MillraceError("closed", "the swarm was closed");
    if (transfer === null) throw new MillraceError("conflict", "the metadata is not known yet");
    return this.#readers.open(transfer, fileIndex, options);
  }

  setDownloadAll(value: boolean): void {
    this.#downloadAll = value;
    this.#applyBackground();
  }

  async completed(signal: AbortSignal): Promise<void> {
    await this.metadata(signal);
    if (this.transfer?.complete) return;
    await this.#completion.wait(signal);
  }

  status(): SwarmStatus {
    const { transfer, peers } = this;
    const state = { transfer, peers, sources: this.#discovery.status(), trouble: this.#trouble };
    return swarmStatus(state, this.#context.ports.clock.monotonic());
  }

  picture(fileIndex: number): SwarmPicture {
    const { transfer, fetcher, peers: { sessions } } = this;
    const state = { transfer, readers: this.#readers.list(), store: this.#store, fetcher, sessions };
    return swarmPicture(state, fileIndex, this.#context.ports.clock.monotonic());
  }

  /** Leaves: readers and connections end at once. Resolves when the store is closed and trackers are notified. */
  close(reason = new MillraceError("closed", "the swarm was closed")): Promise<void> {
    return this.#closing ??= this.#leave(reason);
  }

  async #leave(error: MillraceError): Promise<void> {
    this.#ending.abort(error);
    this.#started.reject(error);
    this.#completion.settle();
    this.fetcher.close();
    this.hashes.close();
    this.#readers.close();
    this.#webSeeds.close();
    const discovery = this.#discovery.close();
    this.peers.close();
    this.transfer?.close(error);
    this.uploads?.clear();
    const log = (error: unknown) =>
      this.#context.ports.log.log("warn", "leaving a swarm failed", { infohash: this.infohashHex, error });
    // The next swarm of this torrent opens the same store, so one that is still being opened counts.
    await Promise.all([this.#opening.then(() => this.#store?.close()).catch(log), discovery.catch(log)]);
  }

  async learnMetadata(session: PeerSession, bytes: Uint8Array): Promise<void> {
    if (this.#description !== null || this.#closing !== null) return;
    try {
      const metainfo = await this.named.describe(bytes);
      if (isLive(metainfo)) this.#giveWay(metainfo);
      else this.#begin(metainfo);
    } catch (error) {
      // The bytes match the infohash, so no other peer can have better ones.
      const reason = error as MillraceError;
      this.#trouble = reason.message;
      this.#started.reject(reason);
      session.drop(reason);
    }
  }

  /** `twin`, which has no metadata yet, is this torrent by its other name: what it knows is known here from now on. */
  takeOver(twin: TorrentSwarm): void {
    for (const target of twin.named.targets) this.learn(target);
    for (const { address, origin } of twin.peers.book.list()) this.peers.adopt(address, origin);
    twin.#giveWay(this.#started.promise);
    this.peeringLeases += twin.peeringLeases;
    this.followLeases();
    if (twin.#downloadAll) this.setDownloadAll(true);
  }

  /** Another swarm takes over, that of a broadcast or of the torrent's other name, and uses the addresses found here. */
  #giveWay(metainfo: LiveMetainfo | Promise<AnyMetainfo>): void {
    this.fetcher.close();
    this.peers.close();
    this.#started.resolve(metainfo);
  }

  #begin(metainfo: Metainfo): void {
    if (this.#description !== null || this.#closing !== null) return;
    this.#description = metainfo;
    this.named.forgetTargets();
    this.fetcher.close();
    if (metainfo.isPrivate) this.#discovery.setPrivate();
    if (lacksLayers(metainfo)) this.#beginDiscovery();
    this.hashes.complete(metainfo, (whole) => this.#opening = this.#openStore(whole));
    void this.#discovery.describe(metainfo, this.#context.described(this.infohashHex));
  }

  async #openStore(metainfo: Metainfo): Promise<void> {
    try {
      this.#store = await this.#context.cache.open(metainfo);
      if (this.#closing === null) this.#start(metainfo, this.#store);
    } catch (error) {
      this.#trouble = error instanceof Error ? error.message : String(error);
      this.#started.reject(error instanceof Error ? error : new MillraceError("io", this.#trouble));
    }
  }

  #start(metainfo: Metainfo, store: PieceStore): void {
    const context = this.#context;
    const transfer = new Transfer({
      metainfo,
      store,
      ports: context.ports,
      buffers: context.buffers,
      leavesOf: (piece) => this.hashes.leaves(metainfo, piece),
      createScheduler: context.createScheduler,
      sources: new TorrentSources(this.peers, this.#webSeeds),
      events: {
        verified: (piece) => this.#verified(piece),
        trouble: (message) => this.#setTrouble(message),
        lost: (piece) => this.#lost(piece),
      },
    });
    this.transfer = transfer;
    this.hashes.serve(transfer, context.ports.sha256);
    this.uploads = new UploadCache(transfer.bank, metainfo.pieceLengthBytes, (piece) => pieceBytes(metainfo, piece));
    this.#toldCompleted = transfer.complete;
    this.peers.joinAll();
    this.#openWebSeeds();
    this.#applyBackground();
    this.#beginDiscovery();
    this.#started.resolve(metainfo);
  }

  #beginDiscovery(): void {
    if (!this.#isPeering) return;
    // A magnet of a torrent that is already in the cache was announced as lacking everything.
    if (this.#discovery.begin() && this.transfer?.complete) this.#discovery.needPeers();
  }

  #verified(piece: number): void {
    this.peers.broadcastHave(piece);
    if (!this.transfer?.complete) return;
    this.#completion.settle();
    if (this.#toldCompleted) return;
    this.#toldCompleted = true;
    this.#discovery.completed();
  }

  #lost(piece: number): void {
    this.uploads?.drop(piece);
    this.peers.broadcastLost(piece);
    this.peers.wakeSeeds();
  }

  #setTrouble(message: string | null): void {
    if (message !== null && message !== this.#trouble) {
      this.#context.ports.log.log("warn", message, { infohash: this.infohashHex });
    }
    this.#trouble = message;
  }

  #openWebSeeds(): void {
    const { transfer } = this;
    if (transfer === null || this.#closing !== null) return;
    this.#webSeeds.open(transfer, this.named.webSeeds);
  }

  needPeers(): void {
    if (this.eager) this.#discovery.needPeers(true);
  }

  everyRound(nowMs: number): void {
    if (this.eager) this.#needPeers(nowMs);
    this.fetcher.round(nowMs);
  }

  #needPeers(nowMs: number): void {
    const { memberCount } = this.peers;
    const isLonely = memberCount === 0 && this.transfer === null && this.#context.reachability.state !== "open";
    this.#discovery.needPeersAgain(nowMs, memberCount < FEW_PEERS, isLonely);
  }

  /** Only readers fetch if the cache is smaller than the torrent: a full download would forever fetch evicted pieces. */
  #applyBackground(): void {
    if (this.transfer?.setBackground(this.#downloadAll, this.#context.cache.limitBytes) !== false) return;
    this.#setTrouble("the cache is smaller than the torrent: only what is being read is fetched");
  }
}
