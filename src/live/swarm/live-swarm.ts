/** One live swarm: the node, its neighbours, discovery, and its listeners, from joining to leaving. */
import { guarded } from "../../bytes/guarded-clock.ts";
import { scopeIn, type ServerScope, trackerTrouble } from "../../discovery/types.ts";
import { MillraceError } from "../../errors.ts";
import type { Timer } from "../../ports.ts";
import { learnNamedPeers, namedDhtNodes } from "../../swarm/neighbours/named-peers.ts";
import { Announcing } from "../../swarm/torrent/announcing.ts";
import { BROADCAST, SearchPace } from "../../swarm/torrent/search-pace.ts";
import type { SwarmContext } from "../../swarm/context.ts";
import type { LeasedSwarm } from "../../swarm/leases.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { LiveOffer } from "../../wire/types.ts";
import { BoundedVerifier } from "./bounded-verifier.ts";
import { LiveNode } from "../node/live-node.ts";
import { type LiveBroadcast, LivePeers } from "./live-peers.ts";
import type { LiveSource, LiveTarget } from "./live-source.ts";
import { NodeSupply } from "./node-supply.ts";
import { MAX_SHOWN_MEMBERS, type MemberFigures, memberFigures } from "./member-figures.ts";
import type { LiveSwarmStatus } from "./live-swarm-status.ts";
import { CryptoVerifier, type HeaderSigner } from "../signer.ts";
import { SourceProofs } from "./source-proofs.ts";
import { Uplink } from "./uplink.ts";

/** How often the node is ticked, ms. */
const TICK_MS = 100;
/** The same for a viewer during its first `JOINING_MS`, ms: the steps until it plays depend on one another. */
const JOINING_TICK_MS = 50;
const JOINING_MS = 4000;
/** Bytes left as a viewer reports them to trackers: a broadcast is never complete. */
const VIEWER_LEFT_BYTES = 16_384;

/** More peers are looked for while there are fewer than these. */
const FEW_PEERS = 8;
/** Viewers that a broadcaster behind NAT needs: they know the others, and report to it which to dial. */
const ENOUGH_HEADS = 3;

/** What a swarm consists of. */
export interface LiveSwarmOptions {
  readonly context: SwarmContext;
  readonly metainfo: LiveMetainfo;
  /** Of the trackers and DHT nodes in `metainfo`. */
  readonly servers: ServerScope;
  /** The broadcaster's; null for a viewer. */
  readonly signer: HeaderSigner | null;
  /** Upload of this swarm, bytes/s; 0: only the engine's limit. */
  readonly uploadLimitBytesPerSecond: number;
}

/** A live swarm that this engine is a member of. Runs until `close`. */
export class LiveSwarm implements LiveSource, LeasedSwarm, LiveBroadcast {
  readonly metainfo: LiveMetainfo;
  readonly role: "source" | "viewer";
  readonly node: LiveNode;
  readonly supply: NodeSupply;
  readonly peers: LivePeers;
  readonly uplink: Uplink;
  readonly offer: LiveOffer;
  readonly proofs: SourceProofs;
  readonly #context: SwarmContext;
  readonly #discovery: Announcing;
  readonly #listeners = new Set<() => void>();
  readonly #beganMs: number;
  #timer: Timer;
  #closing: Promise<void> | null = null;
  readonly #ending = new AbortController();

  constructor(options: LiveSwarmOptions) {
    const { context, metainfo, signer } = options;
    const role = signer === null ? "viewer" : "source";
    const { clock } = context.ports;
    this.#context = context;
    this.metainfo = metainfo;
    this.role = role;
    const verifier = new CryptoVerifier(metainfo.publicKey, metainfo.infohash, context.ports);
    const ownLimit = options.uploadLimitBytesPerSecond;
    const limit = Math.min(ownLimit || Infinity, context.uploadBucket.bytesPerSecond || Infinity);
    this.uplink = new Uplink(context.uploadBucket, guarded(() => this.node.pump(), context.failed));
    this.node = new LiveNode({
      clock,
      verifier: new BoundedVerifier(verifier, (value) => this.peers.setCongested(value)),
      random: Math.random,
      role,
      stream: metainfo,
      // The engine's limit also sets the pace: a burst of its bucket would be taken for a faster line.
      uplinkBytesPerS: limit < Infinity ? limit : null,
      gate: this.uplink,
      onPiece: () => {
        for (const listener of [...this.#listeners]) listener();
      },
    });
    this.supply = new NodeSupply(this.node);
    this.offer = {
      role,
      takesBundles: true,
      // A limit says what may be sent, not what the line carries. The user of a broadcaster is assumed to know both.
      upBytesPerS: role === "source" && limit < Infinity ? limit : null,
      get clockMs() {
        return clock.now();
      },
      get isOpen() {
        const { state } = context.reachability;
        return state === "unknown" ? undefined : state === "open";
      },
    };
    this.proofs = new SourceProofs({
      peerId: context.peerId,
      sign: signer && ((receiverId, senderId) => signer.signSource(receiverId, senderId)),
      verify: (...proof) => verifier.source(...proof),
      proven: ({ address }) => address && this.peers.redial.isSource(address),
    });
    this.peers = new LivePeers(context, this);
    this.peers.joinedBy(options.servers);
    const scope = scopeIn(metainfo, options.servers);
    this.#discovery = new Announcing(context.discovery, {
      infohash: metainfo.infohash,
      trackers: metainfo.trackers,
      servers: scope,
      isPrivate: metainfo.isPrivate,
      onPeer: (address, origin, source) => this.peers.found(address, origin, source),
      state: () => ({
        uploadedBytes: this.peers.uploadRate.totalBytes,
        downloadedBytes: this.#verifiedBytes,
        leftBytes: role === "source" ? 0 : VIEWER_LEFT_BYTES,
      }),
    }, new SearchPace(BROADCAST));
    for (const node of namedDhtNodes(metainfo, this.peers.rule, scope)) context.discovery?.addDhtNode(node);
    this.#beganMs = clock.monotonic();
    this.#timer = this.#nextTick();
  }

  get infohashHex(): string {
    return this.metainfo.infohashHex;
  }

  /** A broadcaster that stopped has no reason to linger. */
  lingerMs(longestMs: number): number {
    return this.role === "source" ? 0 : longestMs;
  }

  /** Starts to look for peers once it is reachable itself. */
  begin(): void {
    this.#discovery.begin();
  }

  /** Adds the trackers and peers that another description of the same broadcast names. */
  learn(target: Partial<LiveTarget>): void {
    const { servers = "any" } = target;
    this.peers.joinedBy(servers);
    const { metainfo } = target;
    if (metainfo !== undefined) this.#discovery.addTrackers(metainfo.trackers, scopeIn(metainfo, servers));
    if (target.magnet === undefined) return;
    this.#discovery.addTrackers(target.magnet.trackers.map((tracker) => [tracker]), servers);
    learnNamedPeers(
      this.#context.ports,
      { infohashHex: target.magnet.infohashHex, texts: target.magnet.peers },
      this.#ending.signal,
      (address) => {
        this.peers.found(address, "magnet", null, servers);
      },
    );
  }

  onPiece(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Members of the swarm that this member knows of. */
  get estimatedMembers(): number {
    return Math.max(1, this.peers.book.size, ...this.#discovery.status().map(({ peers }) => peers));
  }

  status(): LiveSwarmStatus {
    const nowMs = this.#context.ports.clock.monotonic();
    const { window, uploader } = this.node;
    const sources = this.#discovery.status();
    return {
      peers: this.peers.memberCount,
      downloadBytesPerSecond: Math.round(this.peers.downloadRate.rate(nowMs)),
      uploadBytesPerSecond: Math.round(this.peers.uploadRate.rate(nowMs)),
      downloadedBytes: this.#verifiedBytes,
      uploadedBytes: this.peers.uploadRate.totalBytes,
      wastedBytes: Math.max(0, this.peers.downloadRate.totalBytes - this.#verifiedBytes),
      failedPieces: this.node.counters.badBlocks + this.node.counters.forgedHeaders,
      havePieces: window.solid - window.base,
      sources,
      message: this.node.clockTrouble ?? trackerTrouble(sources),
      parents: this.node.parentCount,
      children: this.node.childCount,
      uplinkBytesPerSecond: Math.round(uploader.uplinkBytesPerS),
    };
  }

  members(): readonly MemberFigures[] {
    const shown: MemberFigures[] = [];
    for (const { peer, link, host } of this.peers.members()) {
      if (shown.length >= MAX_SHOWN_MEMBERS) break;
      shown.push(memberFigures(peer!, this.node, { host, port: link?.remote.port ?? 0 }));
    }
    return shown;
  }

  /** Leaves: connections end at once, and trackers are notified before it resolves. */
  close(reason = new MillraceError("closed", "the swarm was closed")): Promise<void> {
    return this.#closing ??= this.#leave(reason);
  }

  /** Aborted when it is left, with the reason. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  async #leave(reason: MillraceError): Promise<void> {
    this.#timer.cancel();
    this.#ending.abort(reason);
    const discovery = this.#discovery.close();
    this.peers.close();
    this.uplink.close();
    this.node.close();
    this.#listeners.clear();
    await discovery.catch((error) => {
      const fields = { infohash: this.metainfo.infohashHex, error: String(error) };
      this.#context.ports.log.log("warn", "leaving a live swarm failed", fields);
    });
  }

  /**
   * Looks for more peers. A broadcaster that nobody can connect to dials its first viewers itself, so that several of them
   * pass the stream on.
   */
  everyRound(nowMs: number): void {
    const { memberCount } = this.peers;
    const enough = this.role === "source" ? ENOUGH_HEADS : 1;
    const isLonely = memberCount < enough && this.#context.reachability.state !== "open";
    this.#discovery.needPeersAgain(nowMs, memberCount < FEW_PEERS, isLonely);
  }

  needPeers(): void {
    this.#discovery.needPeers(true);
  }

  get #verifiedBytes(): number {
    return this.node.counters.fromSourceBytes + this.node.counters.fromViewersBytes;
  }

  #nextTick(): Timer {
    const { clock } = this.#context.ports;
    const isJoining = this.role === "viewer" && clock.monotonic() - this.#beganMs < JOINING_MS;
    return clock.setTimeout(() => this.#tick(), isJoining ? JOINING_TICK_MS : TICK_MS);
  }

  #tick(): void {
    if (this.#closing !== null) return;
    this.#timer = this.#nextTick();
    this.node.tick();
  }
}
