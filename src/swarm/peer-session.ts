/**
 * One connected peer: the handshake and state of each side, and the connection between its link and the torrent's data
 * path. Until the metadata is known it only remembers what the peer has.
 */
import { Bitfield } from "../bytes/bitfield.ts";
import type { Clock, SocketAddress, Timer } from "../ports.ts";
import { type PauseReason, Pauses } from "../wire/pauses.ts";
import type { ExtendedHandshake, PeerLink, PeerLinkHandlers } from "../wire/types.ts";
import type { KnownAddress } from "./address-book.ts";
import { EarlyPieces } from "./early-pieces.ts";
import { isServable } from "./layout.ts";
import { RateMeter } from "./rate-meter.ts";
import type { TokenBucket } from "./token-bucket.ts";
import type { Transfer } from "./transfer.ts";
import type { UploadCache } from "./upload-cache.ts";
import { UploadQueue } from "./upload-queue.ts";

/** Requests assumed to fit the peer's queue when it does not say. */
const DEFAULT_QUEUE_LIMIT = 250;

/** A peer that leaves requests unanswered for this long snubs us, ms (BEP 3 anti-snubbing). */
const SNUB_MS = 60_000;

/** A handshake, bytes (BEP 3). */
const HANDSHAKE_BYTES = 68;

/** Round trips of an encrypted handshake: keys, then the handshake itself. */
const ENCRYPTED_TRIPS = 2;

/** A dialled peer answers within two round trips plus this, ms, unless the data sent with our handshake confuses it. */
const ANSWER_MS = 300;

/** What a session asks of its swarm. */
export interface SessionHost {
  readonly clock: Clock;
  readonly transfer: Transfer | null;
  readonly uploads: UploadCache | null;
  readonly uploadBucket: TokenBucket;
  ready(session: PeerSession): void;
  extended(session: PeerSession): void;
  /** It has become interested or lost interest. */
  interestChanged(session: PeerSession): void;
  /** The set of pieces it has changed. */
  piecesChanged(session: PeerSession): void;
  downloaded(session: PeerSession, bytes: number): void;
  uploaded(bytes: number): void;
  metadata(session: PeerSession, infoBytes: Uint8Array): void;
  metadataFailed(session: PeerSession): void;
  peersLearnt(session: PeerSession, added: readonly SocketAddress[]): void;
  dhtNode(address: SocketAddress): void;
  closedSession(session: PeerSession, error: Error | null): void;
}

/** What the peer's handshake said: its id and reserved bits. */
export interface HandshakeInfo {
  readonly peerId: Uint8Array;
  readonly fast: boolean;
  readonly dht: boolean;
  readonly encrypted: boolean;
}

/** A peer of one swarm. */
export class PeerSession implements PeerLinkHandlers {
  /** Its number in the swarm. */
  readonly id: number;
  readonly startedMs: number;
  /** The address it was dialled at; null for incoming peers until they announce their port. */
  address: KnownAddress | null;
  link: PeerLink | null = null;
  info: HandshakeInfo | null = null;
  extensions: ExtendedHandshake | null = null;
  /** What it has; null until the number of pieces is known. */
  pieces: Bitfield | null = null;
  /** Round trip, ms: the time to connect or, when longer, to its handshake; null for incoming peers. */
  rttMs: number | null = null;
  amChoking = true;
  amInterested = false;
  peerChoking = true;
  peerInterested = false;
  unchokedSinceMs = -Infinity;
  /** When payload last went either way, or the session began. */
  usefulMs: number;
  /** Last block received; to detect snubbing. */
  lastBlockMs: number;
  readonly downloadRate: RateMeter;
  readonly uploadRate: RateMeter;
  queue: UploadQueue | null = null;
  /** Fetching its metadata failed, or it has none. */
  metadataUseless = false;
  private readonly swarm: SessionHost;
  private readonly early = new EarlyPieces();
  private readonly pauses = new Pauses();
  /** The pieces that our handshake announced; null when we announced none before the peer replied. */
  told: Bitfield | null = null;
  /** We hung up to dial it again more slowly, because it did not react to the data sent with our handshake. */
  hasteGivenUp = false;
  private answerTimer: Timer | null = null;
  private anticipated = false;
  private joined = false;
  private reportedBytes = 0;
  private isClosed = false;

  constructor(swarm: SessionHost, id: number, address: KnownAddress | null) {
    this.swarm = swarm;
    this.id = id;
    this.address = address;
    const now = swarm.clock.monotonic();
    this.startedMs = now;
    this.usefulMs = now;
    this.lastBlockMs = now;
    this.downloadRate = new RateMeter(now);
    this.uploadRate = new RateMeter(now);
  }

  /** Its host; empty before its link exists. */
  get host(): string {
    return this.link?.remote.host ?? this.address?.address.host ?? "";
  }

  /** Payload was exchanged with it. */
  get isProven(): boolean {
    return this.downloadRate.totalBytes + this.uploadRate.totalBytes > 0;
  }

  get isReady(): boolean {
    return this.info !== null && !this.isClosed;
  }

  get ended(): boolean {
    return this.isClosed;
  }

  /** Silent since its handshake, with which we sent more data: aria2 loses its place when anything follows a handshake. */
  get deaf(): boolean {
    return this.told !== null && this.info !== null && this.link!.counters.receivedBytes <= HANDSHAKE_BYTES;
  }

  get isSeed(): boolean {
    return this.pieces === null ? this.early.all : this.pieces.full;
  }

  get fast(): boolean {
    return this.info?.fast ?? false;
  }

  /** How many requests it queues. */
  get requestQueueLimit(): number {
    return this.extensions?.requestQueueLimit ?? DEFAULT_QUEUE_LIMIT;
  }

  snubbed(nowMs: number): boolean {
    return this.amInterested && !this.peerChoking && nowMs - this.lastBlockMs > SNUB_MS;
  }

  /**
   * For a peer dialled in plaintext: sends what we have, our interest and the first requests together with our
   * handshake, which saves two round trips with a seed that unchokes every interested peer. Call it in the turn that
   * creates the link.
   */
  anticipate(): void {
    const { transfer } = this.swarm;
    const have = transfer?.bank.have;
    this.told = have === undefined ? new Bitfield(0) : new Bitfield(have.size, have.bytes);
    if (this.told.count > 0) this.link!.bitfield(this.told.bytes);
    this.setInterested(true);
    this.answerTimer = this.swarm.clock.setTimeout(() => {
      this.hasteGivenUp = this.link!.counters.receivedBytes === 0;
      if (this.hasteGivenUp) this.drop();
    }, ANSWER_MS + 2 * (this.rttMs ?? 0));
    if (transfer === null) return;
    this.anticipated = true;
    transfer.scheduler.presume(this.id, this.swarm.clock.monotonic(), this.rttMs ?? 0);
    transfer.kick();
  }

  /**
   * The data path exists (or the handshake is done): the peer takes part in it, with the pieces it has reported so far.
   */
  join(): void {
    const { transfer, uploads } = this.swarm;
    if (this.joined || transfer === null || uploads === null || this.info === null || this.isClosed) return;
    this.joined = true;
    const link = this.link!;
    const { scheduler, metainfo } = transfer;
    const now = this.swarm.clock.monotonic();
    link.setPieceCount(metainfo.pieceCount, metainfo);
    link.setMetadata(metainfo.infoBytes);
    this.pieces = new Bitfield(metainfo.pieceCount);
    const { swarm } = this;
    this.queue = new UploadQueue(
      {
        link,
        fast: this.fast,
        sent: (bytes) => {
          const at = swarm.clock.monotonic();
          this.usefulMs = at;
          this.uploadRate.add(bytes, at);
          swarm.uploaded(bytes);
        },
      },
      uploads,
      swarm.uploadBucket,
    );
    scheduler.addPeer(this.id, now, {
      requestQueueLimit: this.requestQueueLimit,
      rttMs: this.rttMs,
      fast: this.fast,
    });
    if (!this.peerChoking) scheduler.unchoked(this.id, now);
    this.early.replay(this);
    transfer.kick();
  }

  /** Reports the bytes of unfinished blocks to the scheduler. */
  reportProgress(nowMs: number): void {
    const total = this.link?.counters.downloadedPayloadBytes ?? 0;
    if (total === this.reportedBytes || !this.joined) return;
    this.swarm.transfer?.scheduler.progress(this.id, total - this.reportedBytes, nowMs);
    this.reportedBytes = total;
  }

  setInterested(value: boolean): void {
    if (this.amInterested === value || this.isClosed) return;
    this.amInterested = value;
    if (value) {
      this.lastBlockMs = this.swarm.clock.monotonic();
      this.link?.interested();
    } else this.link?.uninterested();
  }

  setChoking(value: boolean): void {
    if (this.amChoking === value || this.isClosed) return;
    this.amChoking = value;
    if (value) {
      this.link?.choke();
      this.queue?.refuseAll();
    } else {
      this.unchokedSinceMs = this.swarm.clock.monotonic();
      this.link?.unchoke();
    }
  }

  /** Stops reading from the peer as long as at least one reason holds. */
  setPaused(reason: PauseReason, value: boolean): void {
    this.pauses.set(this.link, reason, value);
  }

  /** Hangs up. */
  drop(error?: Error): void {
    if (this.link === null) this.close(error ?? null);
    else this.link.close(error);
  }

  // Handlers of the link.

  ready(info: HandshakeInfo): void {
    this.info = info;
    if (this.rttMs !== null) {
      // A relay (VPN, proxy, satellite modem) may accept connections on its side of a long line: only the peer's own
      // answer shows how far away it is.
      const trips = info.encrypted ? ENCRYPTED_TRIPS : 1;
      this.rttMs = Math.max(this.rttMs, (this.swarm.clock.monotonic() - this.startedMs) / trips);
    }
    this.swarm.ready(this);
    this.join();
  }

  extended(info: ExtendedHandshake): void {
    this.extensions = info;
    if (this.joined) this.swarm.transfer?.scheduler.setRequestQueueLimit(this.id, info.requestQueueLimit);
    this.swarm.extended(this);
  }

  choke(): void {
    this.peerChoking = true;
    if (!this.joined) return;
    this.swarm.transfer?.scheduler.choked(this.id, this.swarm.clock.monotonic());
    this.swarm.transfer?.sourceChoked(this.id);
    this.swarm.transfer?.kick();
  }

  unchoke(): void {
    this.peerChoking = false;
    this.lastBlockMs = this.swarm.clock.monotonic();
    if (!this.joined) return;
    this.swarm.transfer?.scheduler.unchoked(this.id, this.swarm.clock.monotonic());
    this.swarm.transfer?.kick();
  }

  interested(): void {
    this.peerInterested = true;
    this.swarm.interestChanged(this);
  }

  uninterested(): void {
    this.peerInterested = false;
    this.swarm.interestChanged(this);
  }

  bitfield(bytes: Uint8Array): void {
    if (this.pieces === null) return this.early.bitfield(bytes);
    this.pieces = new Bitfield(this.pieces.size, bytes);
    this.swarm.transfer?.scheduler.peerBitfield(this.id, this.pieces.bytes, this.swarm.clock.monotonic());
    this.swarm.piecesChanged(this);
    this.swarm.transfer?.kick();
  }

  haveAll(): void {
    if (this.pieces === null) {
      this.early.all = true;
      return;
    }
    this.pieces.setAll();
    this.swarm.transfer?.scheduler.peerHasAll(this.id, this.swarm.clock.monotonic());
    this.swarm.piecesChanged(this);
    this.swarm.transfer?.kick();
  }

  haveNone(): void {
    if (this.pieces === null) this.early.none();
  }

  have(piece: number): void {
    if (this.pieces === null) return this.early.have(piece);
    if (!this.pieces.set(piece)) return;
    this.swarm.transfer?.scheduler.peerHas(this.id, piece, this.swarm.clock.monotonic());
    if (this.pieces.full) this.swarm.piecesChanged(this);
    this.swarm.transfer?.kick();
  }

  dontHave(piece: number): void {
    if (this.pieces === null) return this.early.dontHave(piece);
    if (!this.pieces.set(piece, false)) return;
    this.swarm.transfer?.scheduler.peerLacks(this.id, piece, this.swarm.clock.monotonic());
    this.swarm.transfer?.kick();
  }

  request(piece: number, offset: number, length: number): void {
    const { transfer } = this.swarm;
    const fine = transfer !== null && this.queue !== null && !this.amChoking &&
      isServable(transfer.metainfo, piece, offset, length) && transfer.bank.have.has(piece) &&
      this.queue.push(piece, offset, length);
    if (!fine && this.fast) this.link?.reject(piece, offset, length);
  }

  cancel(piece: number, offset: number, length: number): void {
    // BEP 6: a cancelled request still gets a response, the block or a reject.
    if (this.queue?.cancel(piece, offset, length) && this.fast) this.link?.reject(piece, offset, length);
  }

  reject(piece: number, offset: number, _length: number): void {
    const { transfer } = this.swarm;
    if (!this.joined || transfer === null) return;
    if (transfer.sourceRefused(this.id, piece)) return;
    transfer.scheduler.rejected(this.id, piece, offset, this.swarm.clock.monotonic());
    transfer.kick();
  }

  allowedFast(piece: number): void {
    if (this.joined) this.swarm.transfer?.scheduler.allowedFast(this.id, piece, this.swarm.clock.monotonic());
  }

  blockTarget(piece: number, offset: number, length: number): Uint8Array | null {
    return this.swarm.transfer?.blockTarget(this.id, piece, offset, length) ?? null;
  }

  block(piece: number, offset: number, length: number, kept: boolean): void {
    const now = this.swarm.clock.monotonic();
    this.usefulMs = now;
    this.lastBlockMs = now;
    this.downloadRate.add(length, now);
    this.reportProgress(now);
    this.swarm.downloaded(this, length);
    this.swarm.transfer?.blockArrived(this.id, piece, offset, length, kept);
  }

  dhtPort(port: number): void {
    if (this.link !== null) this.swarm.dhtNode({ host: this.link.remote.host, port });
  }

  peers(added: readonly SocketAddress[], _dropped: readonly SocketAddress[]): void {
    this.swarm.peersLearnt(this, added);
  }

  metadata(infoBytes: Uint8Array): void {
    this.swarm.metadata(this, infoBytes);
  }

  metadataFailed(_error: Error): void {
    this.metadataUseless = true;
    this.swarm.metadataFailed(this);
  }

  close(error: Error | null): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.answerTimer?.cancel();
    this.queue?.close();
    if (this.joined || this.anticipated) {
      this.swarm.transfer?.sourceLeft(this.id);
      this.swarm.transfer?.scheduler.removePeer(this.id, this.swarm.clock.monotonic());
    }
    this.swarm.closedSession(this, error);
  }
}
