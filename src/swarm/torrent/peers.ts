/** All peers of one torrent. */
import { machineKey } from "../../bytes/machine-key.ts";
import { isNameOfV2 } from "../../metainfo/hash-trees.ts";
import type { SocketAddress, TcpConnection } from "../../ports.ts";
import type { HolePunchMessage } from "../../wire/hole-punch.ts";
import type { LinkSettings } from "../../wire/options.ts";
import { hostKey } from "../neighbours/address.ts";
import { AddressBook, type KnownAddress } from "../neighbours/address-book.ts";
import type { SwarmContext } from "../context.ts";
import { Departed } from "../data/departed.ts";
import type { Suspect } from "../data/evidence.ts";
import { introduce } from "./introduction.ts";
import type { MetadataPeers } from "../metadata/metadata-fetch.ts";
import { Neighbourhood } from "../neighbours/neighbourhood.ts";
import { Rendezvous } from "../neighbours/rendezvous.ts";
import { PeerRounds, type RoundPeers } from "./peer-rounds.ts";
import { PeerSession, type PeerSwarm, type Torrent } from "./peer-session.ts";
import { displacedBy } from "../neighbours/places.ts";
import type { TokenBucket } from "../token-bucket.ts";

/** Incoming connections per address and swarm: several machines may share a router, but none needs more. */
const MAX_INCOMING_PER_HOST = 16;

/** Delay of a peer's first PEX message, ms: long enough to know some peers, short enough to help newcomers. */
const PEX_FIRST_MS = 5_000;

/** The peers of one torrent. */
export class Peers extends Neighbourhood<PeerSession, SwarmContext>
  implements PeerSwarm, RoundPeers, MetadataPeers<PeerSession> {
  readonly book = new AddressBook();
  readonly torrent: Torrent;
  readonly uploadBucket: TokenBucket;
  readonly #rounds: PeerRounds;
  readonly #departed = new Departed();
  readonly #rendezvous: Rendezvous;
  #isWanted = true;

  constructor(context: SwarmContext, torrent: Torrent) {
    super(context, torrent.infohash, PEX_FIRST_MS, context.usesUtp ? context.utp : null);
    this.torrent = torrent;
    this.uploadBucket = context.uploadBucket;
    this.#rendezvous = new Rendezvous(this);
    this.#rounds = new PeerRounds(this, context.uploadSlots, this.now());
  }

  get isPrivate(): boolean {
    return this.torrent.isPrivate;
  }

  get isSeeding(): boolean {
    return this.torrent.transfer?.complete ?? false;
  }

  get isEager(): boolean {
    return this.torrent.eager;
  }

  search(): void {
    this.torrent.needPeers();
  }

  get isCrowded(): boolean {
    return this.room() <= 0 && this.book.next(this.now(), (host) => this.isBanned(host)) !== null;
  }

  /** A piece of a complete torrent was lost: seeds that we disconnected are needed again. */
  wakeSeeds(): void {
    if (this.book.wakeSeeds(this.now())) this.pump();
  }

  /** The suspect for a source. */
  suspect(source: number): Suspect | undefined {
    const session = this.get(source);
    if (session === undefined) return this.#departed.get(source);
    return { source, host: hostKey(session.host), peerIdHex: session.peerIdHex ?? "" };
  }

  /** Bans a peer that sent corrupt data, and ends its connections. */
  convict({ host, peerIdHex }: Suspect): void {
    this.note(host, peerIdHex, "lie", "it sent corrupt data");
  }

  /** The data path exists now: all peers join it and learn what we have. */
  joinAll(): void {
    const { have } = this.torrent.transfer!.bank;
    for (const session of this.members()) {
      session.join();
      for (let piece = 0; piece < have.size; piece++) if (have.has(piece)) session.link?.have(piece);
    }
  }

  /**
   * Sends every peer but seeds that we have the piece. Also those that have it: a seed in super-seeding mode names the
   * next piece when it hears that the last one arrived.
   */
  broadcastHave(piece: number): void {
    for (const session of this.members()) if (!session.isSeed) session.link?.have(piece);
  }

  /** Sends every peer that we lost the piece (BEP 54). */
  broadcastLost(piece: number): void {
    for (const session of this.members()) session.link?.dontHave(piece);
  }

  /** Whether peers are wanted (default true). While false, none is dialled, accepted or kept. */
  setWanted(value: boolean): void {
    this.#isWanted = value;
    if (value) this.pump();
    else this.dropAll("no peers are wanted");
  }

  interestChanged(): void {
    this.#rounds.fillSlots();
  }

  piecesChanged(session: PeerSession): void {
    if (session.isSeed && this.isSeeding) session.part("both_seeds");
  }

  connected(entry: KnownAddress, connection: TcpConnection, rttMs: number): void {
    const session = this.join(entry, connection);
    session.rttMs = rttMs;
    if (!this.encrypts(entry) && !entry.patient && this.torrent.eager) session.anticipate();
  }

  override peersLearnt(session: PeerSession, added: readonly SocketAddress[]): void {
    for (const address of this.tellsPeers ? added : []) this.#rendezvous.named(session, address);
    super.peersLearnt(session, added);
  }

  unreached(entry: KnownAddress): void {
    if (!this.isClosed && this.tellsPeers) this.#rendezvous.unreached(entry);
  }

  holePunch(session: PeerSession, message: HolePunchMessage): void {
    if (this.tellsPeers) this.#rendezvous.message(session, message);
  }

  meet(address: SocketAddress, introducer: PeerSession): void {
    if (!this.rule.allows(address, "pex", introducer.host)) return;
    this.book.add(address, "pex");
    const entry = this.book.get(address);
    if (entry?.state !== "idle") return;
    Object.assign(entry, { dialsUs: true, retryAtMs: this.now() });
    this.pump();
  }

  protected create(id: number, host: string, address: KnownAddress | null): PeerSession {
    return new PeerSession(this, id, host, address);
  }

  protected wanted(): number {
    return this.#isWanted ? this.context.maxPeersPerSwarm - this.count : 0;
  }

  protected makePlace(host: string): boolean {
    if (!this.#isWanted) return false;
    const sameHost = [...this.sessions].filter((s) => s.incoming && machineKey(s.host) === machineKey(host));
    if (sameHost.length >= MAX_INCOMING_PER_HOST) return false;
    if (this.room() > 0) return true;
    const displaced = displacedBy(this.sessions, host);
    displaced?.part("makes_room");
    return displaced !== null;
  }

  protected override settings(): LinkSettings {
    const { infohash, transfer } = this.torrent;
    const v2 = transfer !== null && isNameOfV2(infohash, transfer.metainfo);
    const meets = this.tellsPeers && this.context.usesUtp;
    return {
      ...super.settings(),
      meets,
      uploadOnly: this.isSeeding,
      infoBytes: transfer?.metainfo.infoBytes ?? null,
      v2,
    };
  }

  protected override greet(session: PeerSession): void {
    introduce(session, this.torrent.transfer);
    this.torrent.hashes.pump();
    if (this.torrent.eager) session.setInterested(true);
  }

  protected override settle(session: PeerSession, entry: KnownAddress, error: Error | null): void {
    // Two seeds have no use for each other, no matter which side hung up first.
    if (session.isSeed && this.isSeeding) this.book.rest(entry, this.now(), true);
    else if (session.isResting) super.settle(session, entry, error);
    else if (session.deaf || session.hasteGivenUp) this.book.slower(entry, this.now());
    else if (this.torrent.transfer === null && session.info !== null) this.book.endedEarly(entry, this.now());
    else super.settle(session, entry, error);
  }

  protected left(session: PeerSession): void {
    if (session.downloadRate.totalBytes > 0) {
      const { id: source, host, peerIdHex } = session;
      this.#departed.remember({ source, host: hostKey(host), peerIdHex: peerIdHex ?? "" });
    }
    this.#rounds.left(session);
    this.torrent.fetcher.pump();
    this.torrent.hashes.pump();
  }

  protected round(nowMs: number): void {
    this.#rounds.run(nowMs);
    this.exchangePeers(nowMs);
    this.torrent.everyRound(nowMs);
  }
}
