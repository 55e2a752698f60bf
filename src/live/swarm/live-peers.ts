/** The neighbours of one live swarm. */
import type { SocketAddress, TcpConnection, Timer } from "../../ports.ts";
import { MillraceError } from "../../errors.ts";
import { samePeerId } from "../../swarm/neighbours/address.ts";
import { AddressBook, type KnownAddress } from "../../swarm/neighbours/address-book.ts";
import type { SwarmContext } from "../../swarm/context.ts";
import { Neighbourhood } from "../../swarm/neighbours/neighbourhood.ts";
import type { Reach } from "../../swarm/neighbours/reachability.ts";
import type { UtpEndpoint } from "../../utp/utp-endpoint.ts";
import { acceptPeer } from "../../wire/mod.ts";
import type { LinkSettings } from "../../wire/options.ts";
import type { LiveOffer, PeerLink } from "../../wire/types.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import { OUTGOING_PEERS, PeerAdmission } from "./admission.ts";
import { LOBBY_PEERS, lobbyLeavers } from "./lobby.ts";
import { faultOf, isOver } from "./neighbour-check.ts";
import { ReachExchange, type ReachSwarm } from "./reach-exchange.ts";
import type { LiveNode } from "../node/live-node.ts";
import { type LiveNeighbours, LivePeerSession } from "./live-session.ts";
import type { MemberMessage } from "../punch-messages.ts";
import { BOUNDS } from "../node/neighbour/bounds.ts";
import { POLICY } from "../node/policy.ts";
import { DIAL_TIMES, RedialPolicy, SOURCE_QUIET_MS } from "./redial.ts";
import { refuseTwin, SpareLinks } from "./spare-links.ts";
import type { SourceProofs } from "./source-proofs.ts";
import type { Uplink } from "./uplink.ts";

/** Neighbours that a member looks for itself; more may connect to it. */
const WANTED_PEERS = 20;
/** Most neighbours. A broadcaster has more: newcomers find the swarm through it. */
const VIEWER_PEERS = 40;
const SOURCE_PEERS = 80;
/**
 * Time from a newcomer's arrival to the exchange of peers, ms. The newcomer needs neighbours at once, and others may
 * come with it.
 */
const PEX_DELAY_MS = 30;

/** The broadcast that the neighbours belong to (`LiveSwarm`). */
export interface LiveBroadcast {
  readonly metainfo: LiveMetainfo;
  readonly node: LiveNode;
  readonly uplink: Uplink;
  /** What our handshake announces. */
  readonly offer: LiveOffer;
  readonly proofs: SourceProofs;
  /** Called every second. */
  everyRound(nowMs: number): void;
  /** Asks all that know members for some. */
  needPeers(): void;
}

/** The connections of one live swarm. */
export class LivePeers extends Neighbourhood<LivePeerSession, SwarmContext> implements LiveNeighbours, ReachSwarm {
  readonly dialTimes = DIAL_TIMES;
  readonly node: LiveNode;
  readonly uplink: Uplink;
  readonly #exchange: ReachExchange;
  readonly #spares: SpareLinks;
  readonly #broadcast: LiveBroadcast;
  readonly #startedMs = this.now();
  readonly redial = new RedialPolicy(
    Math.random,
    () => [...this.sessions].flatMap(({ address }) => address?.origin ?? []),
    this.context.isNear,
  );
  readonly book = new AddressBook(this.redial);
  /** All places, including those for newcomers. */
  readonly #limit: number;
  readonly #admission: PeerAdmission;
  #exploreAtMs = 0;
  #pexTimer: Timer | null = null;

  constructor(context: SwarmContext, broadcast: LiveBroadcast) {
    super(context, broadcast.metainfo.infohash, 0, null);
    this.#broadcast = broadcast;
    this.node = broadcast.node;
    this.uplink = broadcast.uplink;
    const most = Math.min(broadcast.offer.role === "source" ? SOURCE_PEERS : VIEWER_PEERS, context.maxPeersPerSwarm);
    this.#limit = Math.max(OUTGOING_PEERS + LOBBY_PEERS + 1, most);
    this.#admission = new PeerAdmission(this.#limit);
    this.#exchange = new ReachExchange(context, this);
    const { slots, ports: { tcp } } = context;
    const { clock, node } = this;
    this.#spares = new SpareLinks({
      clock,
      node,
      tcp,
      slots,
      sessions: () => this.sessions,
      hasPlace: (host) => !this.isClosed && this.makePlace(host),
      join: (...spare) => this.#joinSpare(...spare),
      failed: (error) => this.failed(error),
    });
  }

  get isPrivate(): boolean {
    return this.#broadcast.metainfo.isPrivate;
  }

  get isEager(): boolean {
    return this.#broadcast.offer.role === "viewer";
  }

  search(): void {
    this.#broadcast.needPeers();
  }

  /** Where the members we are connected to listen. */
  memberAddresses(): SocketAddress[] {
    return [...this.members()].flatMap(({ address }) => address === null ? [] : [address.address]);
  }

  override skips(host: string): boolean {
    return super.skips(host) || !this.#admission.allows(host, false);
  }

  connected(entry: KnownAddress, connection: TcpConnection): void {
    if (this.#admission.allows(connection.remote.host, false)) return void this.join(entry, connection);
    connection.abort();
    this.book.rest(entry, this.now(), false);
  }

  override extended(session: LivePeerSession): void {
    session.first ??= this.#spares.firstOf(session);
    if (session.first === null) this.#endTwin(session);
    super.extended(session);
    if (session.extensions!.live === null || session.first !== null) return;
    this.#pexTimer ??= this.clock.setTimeout(() => {
      this.#pexTimer = null;
      this.exchangePeers(this.now());
    }, PEX_DELAY_MS);
  }

  joined(session: LivePeerSession): void {
    this.#broadcast.proofs.joined(session);
    this.#exchange.joined(session);
    this.#spares.joined(session);
  }

  memberMessage(session: LivePeerSession, message: MemberMessage): void {
    if (message.type === "source") this.#broadcast.proofs.message(session, message);
    else if (message.type === "second") this.#spares.message(session, message);
    else this.#exchange.message(session, message);
  }

  spareJoined(first: LivePeerSession): void {
    this.#spares.spareJoined(first);
  }

  override close(): void {
    this.#pexTimer?.cancel();
    this.#exchange.close();
    this.#spares.close();
    super.close();
  }

  // ReachSwarm

  get utp(): UtpEndpoint {
    return this.context.utp;
  }

  utpPort(): Promise<number> {
    return this.context.utpPort();
  }

  reach(): Reach {
    return this.context.reachability.state;
  }

  learnReachable(address: SocketAddress, source: string): void {
    this.learn(address, "pex", source);
    this.redial.isReachable(this.book.get(address));
  }

  wants(host: string, peerId: Uint8Array): boolean {
    const isKnown = [...this.sessions].some(({ info }) => info !== null && samePeerId(info.peerId, peerId));
    return !isKnown && this.mayAdmit(host);
  }

  /** Takes a connection made by hole punching; it counts as incoming at both ends, since others chose it. */
  met(connection: TcpConnection, isInitiator: boolean): void {
    const { encryption } = this.context;
    const { host } = connection.remote;
    const { infohashHex } = this.#broadcast.metainfo;
    if (isInitiator) {
      if (!this.#admission.allows(host, true)) return connection.abort();
      const session = this.open(host, null);
      session.isPunched = true;
      return this.shake(session, connection, encryption === "prefer" || encryption === "require");
    }
    const attach = (link: PeerLink) => {
      const session = this.accept(link);
      session.isPunched = true;
      return session;
    };
    acceptPeer(connection, {
      clock: this.clock,
      encryption,
      candidates: () => [infohashHex],
      lookup: (named) => named === infohashHex && this.mayAdmit(host) ? { ...this.settings(), attach } : null,
    });
  }

  protected create(id: number, host: string, address: KnownAddress | null): LivePeerSession {
    return new LivePeerSession(this, id, host, address);
  }

  protected override open(host: string, address: KnownAddress | null): LivePeerSession {
    this.#admission.take(host, address === null);
    return super.open(host, address);
  }

  /** Connections without second ones. */
  get #neighbourCount(): number {
    return [...this.sessions].filter(({ first }) => first === null).length;
  }

  /** More peers are dialled while there are few, or few that we chose. */
  protected wanted(): number {
    const isSource = this.#broadcast.offer.role === "source";
    if (isSource && this.now() - this.#startedMs < SOURCE_QUIET_MS) return 0;
    return Math.max(
      Math.min(WANTED_PEERS, this.#limit - LOBBY_PEERS) - this.#neighbourCount,
      OUTGOING_PEERS - this.#admission.outgoing,
    );
  }

  protected makePlace(host: string): boolean {
    return this.context.globalRoom() > 0 && this.#admission.allows(host, true);
  }

  protected override settings(): LinkSettings {
    const { metainfo, offer } = this.#broadcast;
    const { requestQueueLimit } = BOUNDS;
    return { ...super.settings(), infoBytes: metainfo.infoBytes, requestQueueLimit, live: offer };
  }

  protected override redundant(older: LivePeerSession, newer: LivePeerSession): LivePeerSession | null {
    if (older.first !== null || newer.first !== null || this.#spares.mayJoin(older, newer)) return null;
    // Introductions name members by their peer ids, so each id has one connection, and others that belong to it.
    return isOver(older, this.now()) ? older : super.redundant(older, newer) ?? newer;
  }

  protected override settle(session: LivePeerSession, entry: KnownAddress, error: Error | null): void {
    this.redial.left(entry, this.now() - session.startedMs);
    if (session.extensions !== null && session.peer === null) this.redial.fetchedMetadata(entry);
    if (session.isUnreachable) this.book.remove(entry);
    else super.settle(session, entry, error);
  }

  protected left(session: LivePeerSession): void {
    this.#admission.release(session.host, session.incoming);
    this.#exchange.left(session);
    this.#spares.left(session);
  }

  protected round(nowMs: number): void {
    for (const session of [...this.sessions]) {
      const fault = faultOf(session, this.node, nowMs);
      if (fault?.isGone === true) session.drop(new MillraceError("timeout", fault.reason));
      else if (fault !== null) session.part(fault.reason);
    }
    this.exchangePeers(nowMs);
    this.#exchange.round();
    this.#spares.round();
    this.#explore(nowMs);
    for (const session of lobbyLeavers(this.sessions, this.#admission, this.node, nowMs)) {
      session.part("makes room");
    }
    this.#broadcast.everyRound(nowMs);
  }

  /** `session` leads to a member that is connected already, and is no further connection to it: one of the two ends. */
  #endTwin(session: LivePeerSession): void {
    if (session.peer !== null) return;
    for (const other of [...this.sessions]) {
      if (other === session || !other.isReady || !samePeerId(other.info!.peerId, session.info!.peerId)) continue;
      const loser = this.redundant(other, session);
      if (loser !== null) refuseTwin(loser);
      if (loser === session) return;
    }
  }

  /** Shakes hands over another connection; it counts as incoming, since it is none that we looked for. */
  #joinSpare(first: LivePeerSession, connection: TcpConnection, token: Uint8Array): void {
    const session = this.open(first.host, null);
    session.first = first;
    const settings = this.settings();
    this.shake(session, connection, first.info!.encrypted, { ...settings, live: { ...settings.live!, joins: token } });
  }

  /** Exchanges a neighbour of no use for another member: see `LiveNode.expendable`. */
  #explore(nowMs: number): void {
    if (nowMs < this.#exploreAtMs) return;
    this.#exploreAtMs = nowMs + POLICY.exploreMs * (0.5 + Math.random());
    const count = this.#neighbourCount;
    if (count < WANTED_PEERS || this.book.size <= count) return;
    const peer = this.node.expendable();
    for (const session of this.members()) if (session.peer === peer) return session.part("explores");
  }
}
