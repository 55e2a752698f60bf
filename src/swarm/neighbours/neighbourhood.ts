/** The neighbours of one swarm, of a torrent or a broadcast: from address to connection to session, and how each ends. */
import { faultFields, guarded } from "../../bytes/guarded-clock.ts";
import type { PeerOrigin, ServerScope } from "../../discovery/types.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { Clock, SocketAddress, TcpConnection, Timer } from "../../ports.ts";
import type { AcceptTarget, EncryptionMode, LinkSettings } from "../../wire/options.ts";
import { type Offence, offenceOf } from "../../wire/offence.ts";
import type { PeerLink, PeerLinkHandlers } from "../../wire/types.ts";
import { hostKey, samePeerId } from "./address.ts";
import type { AddressBook, KnownAddress } from "./address-book.ts";
import { Comeback, type ReturningSwarm } from "./comeback.ts";
import type { NeighbourhoodContext } from "./neighbourhood-context.ts";
import { SwarmDialRule } from "./dial-rule.ts";
import { Dialer, type DialingSwarm } from "./dialer.ts";
import { redundantOf } from "./link-ends.ts";
import type { Neighbour, NeighbourSwarm } from "./neighbour.ts";
import { PexRounds } from "./pex-rounds.ts";
import { RateMeter } from "../rate-meter.ts";
import { type Connects, Transports } from "./transports.ts";

/** How often neighbours are examined, ms. */
const ROUND_MS = 1_000;

/**
 * Dials, accepts, bans and ends the neighbours of a swarm. What it leaves to its two kinds (`Peers`, `LivePeers`): what a
 * session is, how many are wanted, who gets a place, and what is done about them every second.
 */
export abstract class Neighbourhood<
  Session extends Neighbour & PeerLinkHandlers,
  Context extends NeighbourhoodContext = NeighbourhoodContext,
> implements NeighbourSwarm, DialingSwarm, ReturningSwarm {
  abstract readonly book: AddressBook;
  readonly clock: Clock;
  readonly rule: SwarmDialRule;
  readonly downloadRate: RateMeter;
  readonly uploadRate: RateMeter;
  protected readonly context: Context;
  protected isClosed = false;
  readonly #infohash: Uint8Array;
  readonly #sessions = new Map<number, Session>();
  readonly #dialer: Dialer;
  readonly #pex: PexRounds;
  #nextId = 1;
  #timer: Timer;
  #isCongested = false;
  readonly #comeback: Comeback;

  /** `pexFirstMs`: age at which a neighbour first hears of others; `utp`: opens connections besides TCP. */
  constructor(context: Context, infohash: Uint8Array, pexFirstMs: number, utp: Connects | null) {
    this.context = context;
    this.clock = context.ports.clock;
    this.rule = new SwarmDialRule(context.dialRule);
    this.downloadRate = new RateMeter(this.now());
    this.uploadRate = new RateMeter(this.now());
    this.#infohash = infohash;
    this.#dialer = new Dialer(this, new Transports(this.clock, context.ports.tcp, utp), context.slots);
    this.#pex = new PexRounds(pexFirstMs);
    this.#comeback = new Comeback(this);
    this.#timer = this.clock.setTimeout(() => this.#everyRound(), ROUND_MS);
  }

  /** BEP 27: peers come from trackers alone. */
  protected abstract readonly isPrivate: boolean;

  /** How many more neighbours are wanted, without a look at the engine's limit. */
  protected abstract wanted(): number;

  /** Whether an incoming connection from this host gets a place; another neighbour may give way to it. */
  protected abstract makePlace(host: string): boolean;

  protected abstract create(id: number, host: string, address: KnownAddress | null): Session;

  /** Called every second. */
  protected abstract round(nowMs: number): void;

  /** A connection is open; call `join`. */
  abstract connected(entry: KnownAddress, connection: TcpConnection, rttMs: number): void;

  /** All connections, including those still in their handshake. */
  get sessions(): Iterable<Session> {
    return this.#sessions.values();
  }

  get count(): number {
    return this.#sessions.size;
  }

  get(id: number): Session | undefined {
    return this.#sessions.get(id);
  }

  /** A number for a source that is not a peer (a web seed). */
  takeId(): number {
    return this.#nextId++;
  }

  /** Neighbours that take part in the swarm. */
  *members(): Iterable<Session> {
    for (const session of this.sessions) if (session.isMember) yield session;
  }

  get memberCount(): number {
    return [...this.members()].length;
  }

  /** Monotonic ms. */
  now(): number {
    return this.clock.monotonic();
  }

  /** A caller of this scope joined: what sources reported that no earlier caller might use is dialled. */
  joinedBy(scope: ServerScope): void {
    for (const { address, origin, source } of this.rule.joinedBy(scope)) this.learn(address, origin, source);
  }

  /**
   * Learns a literal address and dials it when the rule allows it and there is room. `source` and `scope` as in `NamedPeer`;
   * by default the scope is the swarm's, and the address is kept for later callers.
   */
  learn(address: SocketAddress, origin: PeerOrigin, source: string | null, scope?: ServerScope): void {
    if (this.rule.allows(address, origin, source, scope)) this.adopt(address, origin);
    else if (scope === undefined) this.rule.keep({ address, origin, source });
  }

  /** As `learn`, for sources that serve other swarms, too: an exception ends this swarm, and does not reach them. */
  found(...peer: Parameters<Neighbourhood<Session>["learn"]>): void {
    guarded(() => this.learn(...peer), (error) => this.failed(error))();
  }

  /** As `learn`, for an address that the rule need not be asked about. */
  adopt(address: SocketAddress, origin: PeerOrigin): void {
    if (this.isClosed) return;
    if (this.book.add(address, origin) || this.book.endRest(address, origin, this.now())) this.pump();
  }

  /** Dials if there is room. */
  pump(): void {
    this.#dialer.pump();
  }

  /** Takes an incoming link; null when there is no room for it. */
  admit({ host }: SocketAddress): AcceptTarget | null {
    return this.mayAdmit(host) ? { ...this.settings(), attach: (link) => this.accept(link) } : null;
  }

  /** Stops reading from all, or resumes. */
  setCongested(value: boolean): void {
    this.#isCongested = value;
    for (const session of this.sessions) session.setPaused(2, value);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#timer.cancel();
    this.#comeback.close();
    this.#dialer.close();
    this.dropAll("the swarm was closed");
  }

  // DialingSwarm

  room(): number {
    return this.isClosed ? 0 : Math.min(this.wanted(), this.context.globalRoom());
  }

  skips(host: string): boolean {
    return this.isBanned(host);
  }

  // ReturningSwarm

  abstract readonly isEager: boolean;
  abstract search(): void;

  // NeighbourSwarm

  ready(session: Session): void {
    const { peerId, dht } = session.info!;
    if (this.context.bans.hasPeer(session.host, session.peerIdHex!, this.now())) {
      return session.drop(new MillraceError("denied", "banned"));
    }
    for (const other of this.sessions) {
      if (other === session || !other.isReady || !samePeerId(other.info!.peerId, peerId)) continue;
      const loser = this.redundant(other, session);
      loser?.drop(new MillraceError("conflict", "connected twice to one peer"));
      if (loser === session) return;
    }
    if (session.address !== null) Object.assign(session.address, { failures: 0, hasWorked: true });
    this.#comeback.joined();
    this.greet(session);
    const dhtPort = this.context.discovery?.dhtPort ?? null;
    // 0: through a proxy, where nobody can ask us.
    if (dht && dhtPort !== null && dhtPort !== 0 && !this.isPrivate) session.link!.sendDhtPort(dhtPort);
    if (this.#isCongested) session.setPaused(2, true);
  }

  extended(session: Session): void {
    const { yourIp } = session.extensions!;
    if (yourIp !== null) this.context.externalAddresses.report(yourIp, session.host);
    const port = session.listenPort;
    if (session.address !== null || port === null) return;
    const address = { host: hostKey(session.host), port };
    if (this.rule.allows(address, "incoming", null)) this.book.add(address, "incoming");
    const entry = this.book.get(address);
    if (entry?.state !== "idle") return;
    entry.state = "connected";
    entry.hasWorked = true;
    session.address = entry;
  }

  downloaded(session: Session, bytes: number): void {
    this.downloadRate.add(bytes, this.now());
    const { downloadBucket } = this.context;
    downloadBucket.spend(bytes);
    if (downloadBucket.open) return;
    session.setPaused(1, true);
    downloadBucket.whenOpen(guarded(() => session.setPaused(1, false), (error) => this.failed(error)));
  }

  uploaded(bytes: number): void {
    this.uploadRate.add(bytes, this.now());
  }

  peersLearnt(session: Session, added: readonly SocketAddress[]): void {
    if (!this.tellsPeers) return;
    for (const address of added) this.learn(address, "pex", session.host);
  }

  dhtNode(address: SocketAddress): void {
    if (this.isPrivate) return;
    if (this.rule.allows(address, "incoming", null)) this.context.discovery?.addDhtNode(address);
  }

  failed(error: unknown): void {
    this.context.failed(error);
  }

  ended(session: Session, error: Error | null): void {
    if (!this.#sessions.delete(session.id)) return;
    // What one peer can trigger costs the link to it, and no swarm.
    if (hasCode(error, "internal")) {
      const fields = { host: session.host, ...faultFields(error.cause) };
      this.context.ports.log.log("error", "a fault of the engine ended the connection to a peer", fields);
    }
    this.#pex.left(session);
    const offence = session.info === null ? null : offenceOf(error);
    if (offence !== null) this.note(session.host, session.peerIdHex!, offence, error!.message);
    if (session.address !== null) this.settle(session, session.address, error);
    this.left(session);
    if (this.isClosed) return;
    if (session.info !== null) this.#comeback.lost(session);
    this.pump();
  }

  /** Peer exchange is on, and this is no private swarm (BEP 27). */
  get tellsPeers(): boolean {
    return this.context.pex && !this.isPrivate;
  }

  /** Introduces members to each other where a message is due. */
  protected exchangePeers(nowMs: number): void {
    if (this.tellsPeers) this.#pex.run([...this.members()], nowMs);
  }

  /** Begins a session; `address`: where it was dialled, null for an incoming one. Set its link in the same turn. */
  protected open(host: string, address: KnownAddress | null): Session {
    const session = this.create(this.#nextId++, host, address);
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Begins a session on a link that came in. */
  protected accept(link: PeerLink): Session {
    const session = this.open(link.remote.host, null);
    session.link = link;
    return session;
  }

  /** Begins a session on a connection that was dialled. */
  protected join(entry: KnownAddress, connection: TcpConnection): Session {
    entry.state = "connected";
    const session = this.open(connection.remote.host, entry);
    this.shake(session, connection, this.encrypts(entry));
    return session;
  }

  /** Sends our handshake. */
  protected shake(
    session: Session,
    connection: TcpConnection,
    isEncrypted: boolean,
    settings = this.settings(),
  ): void {
    session.link = this.context.connectPeer(connection, {
      ...settings,
      clock: this.clock,
      encryption: this.context.encryption === "require" ? "require" : isEncrypted ? "prefer" : "accept",
      handlers: session,
    });
  }

  /** Whether a connection to this address begins encrypted. */
  protected encrypts(entry: KnownAddress): boolean {
    const { encryption } = this.context;
    return encryption === "require" || (encryption !== "off" && entry.flipEncryption !== (encryption === "prefer"));
  }

  /** What our handshake says. */
  protected settings(): LinkSettings {
    return {
      infohash: this.#infohash,
      peerId: this.context.peerId,
      dht: this.context.discovery?.dhtPort != null && !this.isPrivate,
      pex: this.tellsPeers,
      listenPort: this.context.listenPort(),
    };
  }

  /** Which of two connections with one peer id ends; null: neither. */
  protected redundant(older: Session, newer: Session): Session | null {
    return redundantOf(older, newer, this.context.peerId);
  }

  /** Sends the first messages after the handshake. */
  protected greet(_session: Session): void {}

  /** A connection is over and its address settled. */
  protected abstract left(session: Session): void;

  /** Notes in the book how the connection to `entry` ended. */
  protected settle(session: Session, entry: KnownAddress, error: Error | null): void {
    const nowMs = this.now();
    const isGreeted = session.info !== null;
    if (session.isResting) this.book.rest(entry, nowMs, false);
    // During a handshake, `conflict` means that our own peer id answered.
    else if (hasCode(error, "conflict") && !isGreeted) entry.state = "self";
    else if (isGreeted && (hasCode(error, "denied") || offenceOf(error) !== null)) this.book.failed(entry, nowMs);
    else if (isGreeted) this.book.ended(entry, nowMs);
    else if (mayFlip(this.context.encryption) && !entry.flipEncryption) this.book.flip(entry, nowMs);
    else {
      entry.flipEncryption = false;
      // It takes connections and hangs up, by either handshake: perhaps it is served the other way only.
      entry.transport = entry.transport === "tcp" ? "utp" : "tcp";
      this.book.failed(entry, nowMs);
    }
  }

  /** A peer did something wrong: counts it, and ends the connections that it may cost. */
  protected note(host: string, peerIdHex: string, offence: Offence, reason: string): void {
    const { bans, ports: { log } } = this.context;
    const nowMs = this.now();
    const banned = bans.note(host, peerIdHex, offence, nowMs);
    log.log("info", "a peer broke the protocol", { host, offence, reason, banned });
    if (banned === "none") return;
    for (const session of [...this.sessions]) {
      const id = session.peerIdHex;
      const isOut = id === null ? bans.hasAddress(session.host, nowMs) : bans.hasPeer(session.host, id, nowMs);
      if (isOut) session.drop(new MillraceError("denied", "banned"));
    }
  }

  /** Whether no peer at this address may connect. */
  protected isBanned(host: string): boolean {
    return this.context.bans.hasAddress(host, this.now());
  }

  /** Whether an incoming connection from this host may come. */
  protected mayAdmit(host: string): boolean {
    return !this.isClosed && !this.isBanned(host) && this.makePlace(host);
  }

  protected dropAll(reason: string): void {
    for (const session of [...this.sessions]) session.drop(new MillraceError("closed", reason));
  }

  #everyRound(): void {
    if (this.isClosed) return;
    this.#comeback.round(this.now());
    this.round(this.now());
    this.pump();
    this.#timer = this.clock.setTimeout(() => this.#everyRound(), ROUND_MS);
  }
}

/** Whether a peer that hung up in its handshake is tried again the other way. */
function mayFlip(encryption: EncryptionMode): boolean {
  return encryption === "accept" || encryption === "prefer";
}
