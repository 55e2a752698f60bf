/** The neighbours of one live swarm: from addresses through connections to sessions of the node. */
import type { PeerOrigin, ServerScope } from "../../discovery/types.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { SocketAddress, TcpConnection, Timer } from "../../ports.ts";
import { hostKey, samePeerId } from "../../swarm/address.ts";
import { AddressBook, type KnownAddress } from "../../swarm/address-book.ts";
import type { SwarmContext } from "../../swarm/context.ts";
import { SwarmDialRule } from "../../swarm/dial-rule.ts";
import { Dialer } from "../../swarm/dialer.ts";
import { settleAddress } from "../../swarm/link-ends.ts";
import { PexRounds } from "../../swarm/pex-rounds.ts";
import { RateMeter } from "../../swarm/rate-meter.ts";
import type { LinkSettings } from "../../wire/options.ts";
import type { LiveOffer } from "../../wire/types.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import { OUTGOING_PEERS, PeerAdmission } from "./admission.ts";
import { linkSettings } from "./link-settings.ts";
import { LOBBY_PEERS, lobbyLeavers } from "./lobby.ts";
import { dropTwins, faultOf } from "./neighbour-check.ts";
import { ReachExchange } from "./reach-exchange.ts";
import type { LiveNode } from "../node/live-node.ts";
import type { MemberMessage } from "../punch-messages.ts";
import { LiveSession, type LiveSessionHost } from "./live-session.ts";
import { acceptPunched, type Admitted } from "./punched-link.ts";
import { POLICY } from "../node/policy.ts";
import { DIAL_TIMES, RedialPolicy, SOURCE_QUIET_MS } from "./redial.ts";
import type { SourceProofs } from "./source-proofs.ts";
import type { Uplink } from "./uplink.ts";

/** Neighbours that a member looks for itself; more may connect to it. */
const WANTED_PEERS = 20;
/** Most neighbours. A broadcaster has more: newcomers find the swarm through it. */
const VIEWER_PEERS = 40;
const SOURCE_PEERS = 80;
/** How often neighbours are examined, ms. */
const ROUND_MS = 1000;
/**
 * Time from a newcomer's arrival to the exchange of peers, ms. The newcomer needs neighbours at once, and others may
 * come with it.
 */
const PEX_DELAY_MS = 30;

/** What the neighbours need from their swarm. */
export interface LivePeersHost {
  readonly metainfo: LiveMetainfo;
  readonly node: LiveNode;
  readonly uplink: Uplink;
  /** What our handshake announces. */
  readonly offer: LiveOffer;
  readonly proofs: SourceProofs;
  readonly random: () => number;
  /** Called every second. */
  everyRound(nowMs: number): void;
}

/** The connections of one live swarm. */
export class LivePeers implements LiveSessionHost {
  readonly book: AddressBook;
  readonly rule: SwarmDialRule;
  readonly downloadRate: RateMeter;
  readonly uploadRate: RateMeter;
  private readonly context: SwarmContext;
  private readonly host: LivePeersHost;
  readonly redial: RedialPolicy;
  private readonly startedMs: number;
  private readonly dialer: Dialer;
  private readonly admission: PeerAdmission;
  private readonly pex = new PexRounds(0);
  private readonly reach: ReachExchange;
  private readonly sessions = new Map<number, LiveSession>();
  private readonly resting = new Set<LiveSession>();
  private nextId = 1;
  private exploreAtMs = 0;
  /** All places, including those for newcomers. */
  private readonly limit: number;
  private isPaused = false;
  private timer: Timer;
  private pexTimer: Timer | null = null;
  private closed = false;

  constructor(context: SwarmContext, host: LivePeersHost) {
    const { clock, tcp } = context.ports;
    this.context = context;
    this.rule = new SwarmDialRule(context.dialRule);
    this.host = host;
    this.downloadRate = new RateMeter(this.now());
    this.uploadRate = new RateMeter(this.now());
    const most = Math.min(host.offer.role === "source" ? SOURCE_PEERS : VIEWER_PEERS, context.maxPeersPerSwarm);
    this.limit = Math.max(OUTGOING_PEERS + LOBBY_PEERS + 1, most);
    this.admission = new PeerAdmission(this.limit);
    this.startedMs = this.now();
    this.redial = new RedialPolicy(
      host.random,
      () => [...this.sessions.values()].flatMap(({ address }) => address?.origin ?? []),
      context.isNear,
    );
    this.book = new AddressBook(this.redial);
    this.dialer = new Dialer(
      {
        clock,
        tcp,
        ...DIAL_TIMES,
        room: () => this.room(),
        banned: (address) => context.bans.has(address, this.now()) || !this.admission.allows(address, false),
        connected: (entry, connection) => this.connected(entry, connection),
      },
      this.book,
      context.slots,
    );
    this.reach = new ReachExchange({
      context,
      tellsPeers: this.tellsPeers,
      now: () => this.now(),
      mayDial: (address) => this.rule.allows(address, "incoming", null),
      reachable: (address, source) => this.learnReachable(address, source),
      neighbours: () => this.sessions.size,
      mayReach: (address, source) => this.rule.allows(address, "pex", source),
      wants: (name, peerId) => this.mayAdmit(name) && !this.knows(peerId),
      met: (connection, isInitiator) => this.met(connection, isInitiator),
    });
    this.timer = clock.setTimeout(() => this.round(), ROUND_MS);
  }

  get node(): LiveNode {
    return this.host.node;
  }

  get uplink(): Uplink {
    return this.host.uplink;
  }

  /** Connections, including those still shaking hands. */
  get count(): number {
    return this.sessions.size;
  }

  /** Members of the swarm among them. */
  get memberCount(): number {
    let members = 0;
    for (const session of this.sessions.values()) if (session.peer !== null) members++;
    return members;
  }

  /** Where the members we are connected to listen. */
  memberAddresses(): SocketAddress[] {
    return [...this.members()].flatMap(({ address }) => address === null ? [] : [address.address]);
  }

  now(): number {
    return this.context.ports.clock.monotonic();
  }

  /**
   * Learns a literal address and dials it when the rule allows that and there is room. `source` and `scope` as in `NamedPeer`;
   * by default the scope is the swarm's.
   */
  learn(address: SocketAddress, origin: PeerOrigin, source: string | null, scope?: ServerScope): void {
    if (this.rule.allows(address, origin, source, scope)) this.adopt(address, origin);
  }

  /** As `learn`, for an address that another swarm of the same broadcast was allowed to dial. */
  adopt(address: SocketAddress, origin: PeerOrigin): void {
    if (!this.closed && this.book.add(address, origin)) this.dialer.pump();
  }

  /** Dials if there is room. */
  pump(): void {
    this.dialer.pump();
  }

  /** Takes an incoming link; null when there is no room for it. */
  admit({ host }: SocketAddress, isPunched = false): Admitted<LiveSession> | null {
    if (!this.mayAdmit(host)) return null;
    return {
      settings: this.settings(),
      attach: (link) => {
        this.admission.take(host, true);
        const session = this.open(host, null, isPunched);
        session.link = link;
        return session;
      },
    };
  }

  /** Stops (or resumes) reading from all. */
  setCongested(value: boolean): void {
    this.isPaused = value;
    for (const session of this.sessions.values()) session.setPaused(2, value);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.timer.cancel();
    this.pexTimer?.cancel();
    this.dialer.close();
    this.reach.close();
    for (const session of [...this.sessions.values()]) {
      session.drop(new MillraceError("closed", "the swarm was closed"));
    }
  }

  // LiveSessionHost

  ready(session: LiveSession): void {
    if (dropTwins(session, this.sessions.values(), this.context.peerId, this.now())) return;
    if (session.address !== null) session.address.failures = 0;
    const dhtPort = this.context.discovery?.dhtPort ?? null;
    if (dhtPort !== null && !this.host.metainfo.isPrivate) session.link!.sendDhtPort(dhtPort);
    if (this.isPaused) session.setPaused(2, true);
  }

  extended(session: LiveSession): void {
    const { listenPort, live, yourIp } = session.extensions!;
    if (yourIp !== null) this.context.externalAddresses.report(yourIp, session.link!.remote.host);
    if (session.address === null && listenPort !== null && live !== null && !session.isPunched) {
      const address = { host: hostKey(session.link!.remote.host), port: listenPort };
      if (this.rule.allows(address, "incoming", null)) this.book.add(address, "incoming");
      const entry = this.book.get(address);
      if (entry !== undefined && entry.state === "idle") {
        entry.state = "connected";
        session.address = entry;
      }
    }
    if (live !== null && this.tellsPeers) {
      this.pexTimer ??= this.context.ports.clock.setTimeout(() => {
        this.pexTimer = null;
        this.pex.run(() => this.members(), this.now());
      }, PEX_DELAY_MS);
    }
  }

  joined(session: LiveSession): void {
    this.host.proofs.joined(session);
    this.reach.joined(session);
  }

  memberMessage(session: LiveSession, message: MemberMessage): void {
    if (message.type === "source") this.host.proofs.message(session, message);
    else this.reach.message(session, message);
  }

  downloaded(session: LiveSession, bytes: number): void {
    this.downloadRate.add(bytes, this.now());
    const { downloadBucket } = this.context;
    downloadBucket.spend(bytes);
    if (downloadBucket.open) return;
    session.setPaused(1, true);
    downloadBucket.whenOpen(() => session.setPaused(1, false));
  }

  uploaded(bytes: number): void {
    this.uploadRate.add(bytes, this.now());
  }

  peersLearnt(session: LiveSession, added: readonly SocketAddress[]): void {
    if (!this.tellsPeers) return;
    for (const address of added) this.learn(address, "pex", session.link!.remote.host);
  }

  dhtNode(address: SocketAddress): void {
    if (this.host.metainfo.isPrivate) return;
    if (this.rule.allows(address, "incoming", null)) this.context.discovery?.addDhtNode(address);
  }

  closedSession(session: LiveSession, error: Error | null): void {
    if (!this.sessions.delete(session.id)) return;
    this.admission.release(session.host, session.incoming);
    this.pex.left(session);
    this.reach.left(session);
    const nowMs = this.now();
    if (hasCode(error, "protocol_violation") && session.info !== null) this.ban(session.host, error.message);
    const entry = session.address;
    if (entry !== null) {
      this.redial.left(entry, nowMs - session.startedMs);
      if (session.extensions !== null && session.peer === null) this.redial.fetchedMetadata(entry);
      if (session.isUnreachable) this.book.remove(entry);
      else if (this.resting.has(session)) this.book.rest(entry, nowMs, false);
      else {
        const end = { greeted: session.info !== null, error, mayFlip: this.context.encryption !== "off" };
        settleAddress(this.book, entry, end, nowMs);
      }
    }
    this.resting.delete(session);
    if (!this.closed) this.dialer.pump();
  }

  /** PEX is for swarms that are not private (BEP 27). */
  private get tellsPeers(): boolean {
    return this.context.pex && !this.host.metainfo.isPrivate;
  }

  /** Connections that speak `live1`. */
  *members(): Iterable<LiveSession> {
    for (const session of this.sessions.values()) if (session.peer !== null) yield session;
  }

  private learnReachable(address: SocketAddress, source: string): void {
    this.learn(address, "pex", source);
    this.redial.isReachable(this.book.get(address));
  }

  private connected(entry: KnownAddress, connection: TcpConnection): void {
    const { host } = connection.remote;
    if (!this.admission.take(host, false)) {
      connection.abort();
      return this.book.rest(entry, this.now(), false);
    }
    entry.state = "connected";
    const { encryption } = this.context;
    const encrypted = encryption !== "off" && entry.flipEncryption !== (encryption === "prefer");
    this.shake(connection, this.open(host, entry), encrypted);
  }

  private shake(connection: TcpConnection, session: LiveSession, encrypted: boolean): void {
    session.link = this.context.connectPeer(connection, {
      ...this.settings(),
      clock: this.context.ports.clock,
      encryption: encrypted ? "prefer" : "accept",
      handlers: session,
    });
  }

  private mayAdmit(host: string): boolean {
    if (this.closed || this.context.bans.has(host, this.now()) || this.context.globalRoom() <= 0) return false;
    return this.admission.allows(host, true);
  }

  private knows(peerId: Uint8Array): boolean {
    return [...this.sessions.values()].some(({ info }) => info !== null && samePeerId(info.peerId, peerId));
  }

  /** Takes a connection that a neighbour arranged. It counts as incoming at both ends: others chose it. */
  private met(connection: TcpConnection, isInitiator: boolean): void {
    const { infohashHex } = this.host.metainfo;
    const { host } = connection.remote;
    if (!isInitiator) return acceptPunched(this.context, infohashHex, connection, (remote) => this.admit(remote, true));
    if (!this.admission.take(host, true)) return connection.abort();
    this.shake(connection, this.open(host, null, true), this.context.encryption === "prefer");
  }

  private open(host: string, entry: KnownAddress | null, isPunched = false): LiveSession {
    const session = new LiveSession(this, this.nextId++, host, entry, isPunched);
    this.sessions.set(session.id, session);
    return session;
  }

  private settings(): LinkSettings {
    return linkSettings(this.context, this.host.metainfo, this.host.offer, this.tellsPeers);
  }

  /** More peers are dialled while there are few, or few that we chose. */
  private room(): number {
    if (this.closed || (this.host.offer.role === "source" && this.now() - this.startedMs < SOURCE_QUIET_MS)) return 0;
    const wanted = Math.max(
      Math.min(WANTED_PEERS, this.limit - LOBBY_PEERS) - this.sessions.size,
      OUTGOING_PEERS - this.admission.outgoing,
    );
    return Math.min(wanted, this.context.globalRoom());
  }

  /** Exchanges a neighbour of no use for another member: see `LiveNode.expendable`. */
  private explore(nowMs: number): void {
    if (nowMs < this.exploreAtMs) return;
    this.exploreAtMs = nowMs + POLICY.exploreMs * (0.5 + this.host.random());
    if (this.sessions.size < WANTED_PEERS || this.book.size <= this.sessions.size) return;
    const peer = this.node.expendable();
    for (const session of this.members()) if (session.peer === peer) return this.part(session, "explores");
  }

  private part(session: LiveSession, reason: string): void {
    this.resting.add(session);
    session.drop(new MillraceError("closed", `parted: ${reason}`));
  }

  private ban(host: string, reason: string): void {
    this.context.ports.log.log("info", "peer of a live swarm banned", { host, reason });
    this.context.bans.ban(host, this.now());
    for (const session of [...this.sessions.values()]) {
      if (hostKey(session.host) === hostKey(host)) session.drop(new MillraceError("denied", "banned"));
    }
  }

  private round(): void {
    if (this.closed) return;
    const nowMs = this.now();
    for (const session of [...this.sessions.values()]) {
      const fault = faultOf(session, this.node, nowMs);
      if (fault?.isSilent === true) session.drop(new MillraceError("timeout", fault.reason));
      else if (fault !== null) this.part(session, fault.reason);
    }
    if (this.tellsPeers) this.pex.run(() => this.members(), nowMs);
    this.reach.round();
    this.explore(nowMs);
    for (const session of lobbyLeavers(this.sessions.values(), this.admission, nowMs)) this.part(session, "makes room");
    this.dialer.pump();
    this.host.everyRound(nowMs);
    this.timer = this.context.ports.clock.setTimeout(() => this.round(), ROUND_MS);
  }
}
