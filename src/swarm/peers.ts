/** All peers of one swarm: from address to connection to session, and how each ends. */
import type { PeerOrigin, ServerScope } from "../discovery/types.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { SocketAddress, TcpConnection, Timer } from "../ports.ts";
import type { LinkSettings } from "../wire/options.ts";
import type { PeerLink, PeerLinkHandlers } from "../wire/types.ts";
import { hostKey, samePeerId } from "./address.ts";
import { AddressBook, type KnownAddress } from "./address-book.ts";
import type { SwarmContext } from "./context.ts";
import { Departed } from "./departed.ts";
import { SwarmDialRule } from "./dial-rule.ts";
import { Dialer } from "./dialer.ts";
import type { Suspect } from "./evidence.ts";
import { introduce, linkSettings } from "./introduction.ts";
import { redundantOf, settleAddress } from "./link-ends.ts";
import { displacedBy } from "./places.ts";
import { type PartReason, PeerRounds, ROUND_MS } from "./peer-rounds.ts";
import { PeerSession, type SessionHost } from "./peer-session.ts";
import type { Transfer } from "./transfer.ts";
import { RateMeter } from "./rate-meter.ts";
import type { UploadCache } from "./upload-cache.ts";

/** Incoming connections per address and swarm: several machines may share a router, but none needs more. */
const MAX_INCOMING_PER_HOST = 16;

/** What the peers ask of their swarm. */
export interface PeersHost {
  readonly infohash: Uint8Array;
  readonly swarm: {
    readonly transfer: Transfer | null;
    readonly uploads: UploadCache | null;
    /** BEP 27. */
    readonly isPrivate: boolean;
    /** Whether there is something to download. Interest is then sent right after the handshake, to save a round trip. */
    readonly eager: boolean;
  };
  extended(session: PeerSession): void;
  metadata(session: PeerSession, infoBytes: Uint8Array): void;
  metadataFailed(session: PeerSession): void;
  /** A session ended. */
  left(session: PeerSession): void;
  /** Called every second. */
  everyRound(nowMs: number): void;
}

/** The peers of one swarm. */
export class Peers implements SessionHost {
  readonly clock;
  readonly uploadBucket;
  readonly book = new AddressBook();
  readonly rule: SwarmDialRule;
  readonly downloadRate: RateMeter;
  readonly uploadRate: RateMeter;
  private readonly context: SwarmContext;
  private readonly host: PeersHost;
  private readonly dialer: Dialer;
  private readonly rounds: PeerRounds;
  private readonly byId = new Map<number, PeerSession>();
  private readonly departed = new Departed();
  private readonly resting = new Set<PeerSession>();
  private nextId = 1;
  private timer: Timer | null = null;
  private congestion = false;
  private isWanted = true;
  private closed = false;

  constructor(context: SwarmContext, host: PeersHost) {
    this.context = context;
    this.rule = new SwarmDialRule(context.dialRule);
    this.host = host;
    this.clock = context.ports.clock;
    this.uploadBucket = context.uploadBucket;
    const now = this.clock.monotonic();
    this.downloadRate = new RateMeter(now);
    this.uploadRate = new RateMeter(now);
    this.dialer = new Dialer(
      {
        clock: this.clock,
        tcp: context.ports.tcp,
        room: () => this.room(),
        banned: (address) => context.bans.has(address, this.clock.monotonic()),
        connected: (entry, connection, rttMs) => this.connected(entry, connection, rttMs),
      },
      this.book,
      context.slots,
    );
    this.rounds = new PeerRounds({
      sessions: () => this.byId.values(),
      uploadSlots: context.uploadSlots,
      pexEnabled: () => context.pex && !host.swarm.isPrivate,
      seeding: () => this.host.swarm.transfer?.complete ?? false,
      crowded: () => this.crowded(),
      part: (session, reason) => this.part(session, reason),
    }, now);
    this.timer = this.clock.setTimeout(() => this.round(), ROUND_MS);
  }

  get transfer(): Transfer | null {
    return this.host.swarm.transfer;
  }

  get uploads(): UploadCache | null {
    return this.host.swarm.uploads;
  }

  /** All sessions, including those still in their handshake. */
  get sessions(): Iterable<PeerSession> {
    return this.byId.values();
  }

  get count(): number {
    return this.byId.size;
  }

  /** Peers with a finished handshake. */
  get readyCount(): number {
    let ready = 0;
    for (const session of this.byId.values()) if (session.isReady) ready++;
    return ready;
  }

  get(id: number): PeerSession | undefined {
    return this.byId.get(id);
  }

  /** A number for a source that is not a peer (a web seed). */
  takeId(): number {
    return this.nextId++;
  }

  /**
   * Learns a literal address and dials it when the rule allows it and there is room. `source` and `scope` as in `NamedPeer`;
   * by default the scope is the swarm's.
   */
  learn(address: SocketAddress, origin: PeerOrigin, source: string | null, scope?: ServerScope): void {
    if (this.closed || !this.rule.allows(address, origin, source, scope)) return;
    if (this.book.add(address, origin)) this.dialer.pump();
  }

  /** A piece of a complete torrent was lost: seeds that we disconnected are needed again. */
  wakeSeeds(): void {
    if (this.book.wakeSeeds(this.clock.monotonic())) this.dialer.pump();
  }

  /** Dials if there is room. */
  pump(): void {
    this.dialer.pump();
  }

  /** The suspect for a source. */
  suspect(source: number): Suspect | undefined {
    const host = this.byId.get(source)?.link?.remote.host;
    return host === undefined ? this.departed.get(source) : { source, host: hostKey(host) };
  }

  /** It sent corrupt data: bans its host and ends every connection to it. */
  convict(suspect: Suspect): void {
    this.context.ports.log.log("info", "peer sent corrupt data", { host: suspect.host });
    this.ban(suspect.host);
  }

  /** Takes an incoming link; null when there is no room for it. */
  admit(remote: SocketAddress): { settings: LinkSettings; attach: (link: PeerLink) => PeerLinkHandlers } | null {
    if (this.closed || !this.isWanted || this.context.bans.has(remote.host, this.clock.monotonic())) return null;
    let sameHost = 0;
    for (const s of this.byId.values()) {
      if (s.link?.incoming && hostKey(s.link.remote.host) === hostKey(remote.host)) sameHost++;
    }
    if (sameHost >= MAX_INCOMING_PER_HOST || !this.makeRoom(remote.host)) return null;
    return {
      settings: linkSettings(this.context, this.host),
      attach: (link) => {
        const session = this.open(null);
        session.link = link;
        return session;
      },
    };
  }

  /** The data path exists now: all peers join it and learn what we have. */
  joinAll(): void {
    for (const session of this.byId.values()) {
      if (!session.isReady) continue;
      session.join();
      const { have } = this.host.swarm.transfer!.bank;
      for (let piece = 0; piece < have.size; piece++) if (have.has(piece)) session.link?.have(piece);
    }
  }

  /** Tells every peer that lacks the piece that we have it. */
  broadcastHave(piece: number): void {
    for (const session of this.byId.values()) {
      if (session.isReady && !session.pieces?.has(piece)) session.link?.have(piece);
    }
  }

  /** Tells every peer that we lost the piece (BEP 54). */
  broadcastLost(piece: number): void {
    for (const session of this.byId.values()) if (session.isReady) session.link?.dontHave(piece);
  }

  /** Stops reading from all peers, or resumes. */
  setCongested(value: boolean): void {
    this.congestion = value;
    for (const session of this.byId.values()) session.setPaused(2, value);
  }

  /** Whether peers are wanted (default true). While false, none is dialled, accepted or kept. */
  setWanted(value: boolean): void {
    this.isWanted = value;
    if (value) return this.dialer.pump();
    for (const session of [...this.byId.values()]) session.drop(new MillraceError("closed", "no peers are wanted"));
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.timer?.cancel();
    this.dialer.close();
    for (const session of [...this.byId.values()]) session.drop(new MillraceError("closed", "the swarm was closed"));
  }

  // SessionHost

  ready(session: PeerSession): void {
    const { peerId } = session.info!;
    for (const other of this.byId.values()) {
      if (other === session || !other.isReady || !samePeerId(other.info!.peerId, peerId)) continue;
      const loser = redundantOf(other, session, this.context.peerId);
      loser.drop(new MillraceError("conflict", "connected twice to one peer"));
      if (loser === session) return;
    }
    if (session.address !== null) session.address.failures = 0;
    introduce(session, this.transfer);
    if (this.host.swarm.eager) session.setInterested(true);
    const dhtPort = this.context.discovery?.dhtPort ?? null;
    if (session.info!.dht && dhtPort !== null) session.link!.sendDhtPort(dhtPort);
    if (this.congestion) session.setPaused(2, true);
  }

  extended(session: PeerSession): void {
    const { listenPort: port = null, yourIp = null } = session.extensions ?? {};
    if (yourIp !== null) this.context.externalAddresses.report(yourIp, session.link!.remote.host);
    if (session.address === null && port !== null && port > 0) {
      const address = { host: hostKey(session.link!.remote.host), port };
      if (this.rule.allows(address, "incoming", null)) this.book.add(address, "incoming");
      const entry = this.book.get(address);
      if (entry !== undefined && entry.state === "idle") {
        entry.state = "connected";
        session.address = entry;
      }
    }
    this.host.extended(session);
  }

  interestChanged(session: PeerSession): void {
    this.rounds.interestChanged(session);
  }

  piecesChanged(session: PeerSession): void {
    if (session.isSeed && this.host.swarm.transfer?.complete) this.part(session, "both_seeds");
  }

  downloaded(session: PeerSession, bytes: number): void {
    this.downloadRate.add(bytes, this.clock.monotonic());
    const bucket = this.context.downloadBucket;
    if (bucket.bytesPerSecond === 0) return;
    bucket.spend(bytes);
    if (bucket.open) return;
    session.setPaused(1, true);
    bucket.whenOpen(() => session.setPaused(1, false));
  }

  uploaded(bytes: number): void {
    this.uploadRate.add(bytes, this.clock.monotonic());
  }

  metadata(session: PeerSession, infoBytes: Uint8Array): void {
    this.host.metadata(session, infoBytes);
  }

  metadataFailed(session: PeerSession): void {
    this.host.metadataFailed(session);
  }

  peersLearnt(session: PeerSession, added: readonly SocketAddress[]): void {
    if (!this.context.pex || this.host.swarm.isPrivate) return;
    for (const address of added) this.learn(address, "pex", session.link!.remote.host);
  }

  dhtNode(address: SocketAddress): void {
    if (this.host.swarm.isPrivate) return;
    if (this.rule.allows(address, "incoming", null)) this.context.discovery?.addDhtNode(address);
  }

  closedSession(session: PeerSession, error: Error | null): void {
    this.byId.delete(session.id);
    if (session.downloadRate.totalBytes > 0) this.departed.remember(session.id, session.host);
    const now = this.clock.monotonic();
    if (hasCode(error, "protocol_violation") && session.info !== null) this.ban(session.host);
    const entry = session.address;
    if (entry !== null) this.settle(session, entry, error, now);
    this.resting.delete(session);
    this.rounds.left(session);
    this.host.left(session);
    if (!this.closed) this.dialer.pump();
  }

  private settle(session: PeerSession, entry: KnownAddress, error: Error | null, nowMs: number): void {
    // Two seeds have no use for each other, no matter which side hung up first.
    const seeds = session.isSeed && this.transfer?.complete === true;
    if (seeds || this.resting.has(session)) this.book.rest(entry, nowMs, seeds);
    else if (session.deaf || session.hasteGivenUp) this.book.slower(entry, nowMs);
    else if (this.transfer === null && session.info !== null) this.book.endedEarly(entry, nowMs);
    else {
      const end = { greeted: session.info !== null, error, mayFlip: this.context.encryption !== "off" };
      settleAddress(this.book, entry, end, nowMs);
    }
  }

  private connected(entry: KnownAddress, connection: TcpConnection, rttMs: number): void {
    entry.state = "connected";
    const session = this.open(entry);
    session.rttMs = rttMs;
    const { encryption } = this.context;
    const encrypted = encryption !== "off" && entry.flipEncryption !== (encryption === "prefer");
    session.link = this.context.connectPeer(connection, {
      ...linkSettings(this.context, this.host),
      clock: this.clock,
      encryption: encrypted ? "prefer" : "accept",
      handlers: session,
    });
    if (!encrypted && !entry.patient && this.host.swarm.eager) session.anticipate();
  }

  private open(entry: KnownAddress | null): PeerSession {
    const session = new PeerSession(this, this.nextId++, entry);
    this.byId.set(session.id, session);
    return session;
  }

  private room(): number {
    if (this.closed || !this.isWanted) return 0;
    return Math.min(this.context.maxPeersPerSwarm - this.byId.size, this.context.globalRoom());
  }

  /** No more peers fit, and there are untried addresses. */
  crowded(): boolean {
    if (this.room() > 0) return false;
    const now = this.clock.monotonic();
    return this.book.next(now, (host) => this.context.bans.has(host, now)) !== null;
  }

  /** Hangs up on a peer that is of no use for a while; its address rests. */
  part(session: PeerSession, reason: PartReason): void {
    if (reason !== "silent" && reason !== "deaf") this.resting.add(session);
    session.drop(new MillraceError("closed", `parted: ${reason}`));
  }

  private ban(host: string): void {
    const now = this.clock.monotonic();
    this.context.bans.ban(host, now);
    for (const session of [...this.byId.values()]) {
      if (session.link !== null && hostKey(session.link.remote.host) === hostKey(host)) {
        session.drop(new MillraceError("denied", "banned"));
      }
    }
  }

  /** Whether there is a place for an incoming peer; an unproven one gives way if necessary. */
  private makeRoom(host: string): boolean {
    if (this.closed || this.room() > 0) return !this.closed;
    const displaced = displacedBy(this.byId.values(), host);
    if (displaced !== null) this.part(displaced, "makes_room");
    return displaced !== null;
  }

  private round(): void {
    if (this.closed) return;
    const now = this.clock.monotonic();
    this.rounds.run(now);
    this.dialer.pump();
    this.host.everyRound(now);
    this.timer = this.clock.setTimeout(() => this.round(), ROUND_MS);
  }

  /** All known addresses, connected or not. */
  known(): KnownAddress[] {
    return this.book.list();
  }
}
