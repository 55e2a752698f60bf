/**
 * One connected peer: the handshake and state of each side, and the connection between its link and the torrent's data
 * path. Until the metadata is known it only remembers what the peer has.
 */
import { Bitfield } from "../../bytes/bitfield.ts";
import type { Timer } from "../../ports.ts";
import type { HashRequest } from "../../wire/hash-messages.ts";
import type { ExtendedHandshake, PeerLinkHandlers, TorrentHandlers } from "../../wire/types.ts";
import type { KnownAddress } from "../neighbours/address-book.ts";
import { EarlyPieces } from "./early-pieces.ts";
import type { HashExchange } from "../hashes/hash-exchange.ts";
import { isServable } from "../data/layout.ts";
import type { MetadataFetch } from "../metadata/metadata-fetch.ts";
import { MetadataRest } from "../metadata/metadata-rest.ts";
import { type HandshakeInfo, Neighbour, type NeighbourSwarm } from "../neighbours/neighbour.ts";
import { RateMeter } from "../rate-meter.ts";
import type { TokenBucket } from "../token-bucket.ts";
import type { Transfer } from "../data/transfer.ts";
import type { UploadCache } from "../upload/upload-cache.ts";
import { type UploadingPeer, UploadQueue } from "../upload/upload-queue.ts";

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

/** A bitfield comes right after the handshake or never, ms. */
const SILENCE_MS = 2_000;

/** The torrent that peers belong to (`TorrentSwarm`). */
export interface Torrent {
  readonly infohash: Uint8Array;
  /** BEP 27. */
  readonly isPrivate: boolean;
  readonly transfer: Transfer | null;
  readonly uploads: UploadCache | null;
  /** Whether there is something to download. Interest is then sent right after the handshake, to save a round trip. */
  readonly eager: boolean;
  readonly fetcher: MetadataFetch<PeerSession>;
  readonly hashes: HashExchange<PeerSession>;
  /** A peer sent the metadata: the bytes match the infohash. */
  learnMetadata(session: PeerSession, infoBytes: Uint8Array): Promise<void>;
  /** Called every second. */
  everyRound(nowMs: number): void;
  /** Asks all that know peers for some, if any are wanted. */
  needPeers(): void;
}

/** All peers of the torrent (`Peers`). */
export interface PeerSwarm extends NeighbourSwarm {
  readonly torrent: Torrent;
  readonly uploadBucket: TokenBucket;
  /** Called when the peer becomes interested or loses interest. */
  interestChanged(): void;
  /** The set of pieces it has changed. */
  piecesChanged(session: PeerSession): void;
}

/** A peer of one torrent. */
export class PeerSession extends Neighbour<PeerSwarm> implements PeerLinkHandlers, TorrentHandlers, UploadingPeer {
  readonly torrent: TorrentHandlers = this;
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
  readonly #torrent: Torrent;
  readonly #early = new EarlyPieces();
  /** The pieces that our handshake announced; null when we announced none before the peer replied. */
  told: Bitfield | null = null;
  /** We hung up to dial it again more slowly, because it did not react to the data sent with our handshake. */
  hasteGivenUp = false;
  #answerTimer: Timer | null = null;
  readonly #metadataRest: MetadataRest;
  #anticipated = false;
  #joined = false;
  /** True once the peer has said which pieces it has. */
  #hasSaid = false;
  #reportedBytes = 0;

  constructor(swarm: PeerSwarm, id: number, host: string, address: KnownAddress | null) {
    super(swarm, id, host, address);
    this.#torrent = swarm.torrent;
    this.usefulMs = this.lastBlockMs = this.startedMs;
    this.downloadRate = new RateMeter(this.startedMs);
    this.uploadRate = new RateMeter(this.startedMs);
    this.#metadataRest = new MetadataRest(swarm.clock, () => this.#torrent.fetcher.pump());
  }

  /** Fetching its metadata failed a moment ago, or it lied. */
  get metadataUseless(): boolean {
    return this.#metadataRest.isUseless;
  }

  /** Payload was exchanged with it. */
  get isProven(): boolean {
    return this.downloadRate.totalBytes + this.uploadRate.totalBytes > 0;
  }

  /** Silent since its handshake, with which we sent more data: aria2 loses its place when anything follows a handshake. */
  get deaf(): boolean {
    return this.told !== null && this.info !== null && this.link!.counters.receivedBytes <= HANDSHAKE_BYTES;
  }

  get isSeed(): boolean {
    return this.pieces === null ? this.#early.all : this.pieces.full;
  }

  get fast(): boolean {
    return this.info?.fast ?? false;
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
    const { transfer } = this.#torrent;
    const have = transfer?.bank.have;
    this.told = have === undefined ? new Bitfield(0) : new Bitfield(have.size, have.bytes);
    if (this.told.count > 0) this.link!.bitfield(this.told.bytes);
    this.setInterested(true);
    this.#answerTimer = this.swarm.clock.setTimeout(() => {
      this.hasteGivenUp = this.link!.counters.receivedBytes === 0;
      if (this.hasteGivenUp) this.drop();
    }, ANSWER_MS + 2 * (this.rttMs ?? 0));
    if (transfer === null) return;
    this.#anticipated = true;
    transfer.scheduler.presume(this.id, this.swarm.clock.monotonic(), this.rttMs ?? 0);
    transfer.kick();
  }

  /**
   * The data path exists (or the handshake is done): the peer takes part in it, with the pieces it has reported so far.
   */
  join(): void {
    const { transfer, uploads } = this.#torrent;
    if (this.#joined || transfer === null || uploads === null || this.info === null || this.isClosed) return;
    this.#joined = true;
    const link = this.link!;
    const { scheduler, metainfo } = transfer;
    const now = this.swarm.clock.monotonic();
    link.setPieceCount(metainfo.pieceCount, metainfo);
    link.setMetadata(metainfo.infoBytes);
    this.pieces = new Bitfield(metainfo.pieceCount);
    this.queue = new UploadQueue(this, link, uploads, this.swarm.uploadBucket);
    scheduler.addPeer(this.id, now, {
      requestQueueLimit: this.extensions?.requestQueueLimit ?? DEFAULT_QUEUE_LIMIT,
      rttMs: this.rttMs,
      fast: this.fast,
      interested: this.amInterested,
    });
    if (!this.peerChoking) scheduler.unchoked(this.id, now);
    this.#early.replay(this);
    transfer.kick();
  }

  uploaded(bytes: number): void {
    this.usefulMs = this.swarm.clock.monotonic();
    this.uploadRate.add(bytes, this.usefulMs);
    this.swarm.uploaded(bytes);
  }

  /** Reports the bytes of unfinished blocks to the scheduler. */
  reportProgress(nowMs: number): void {
    const total = this.link?.counters.downloadedPayloadBytes ?? 0;
    if (total === this.#reportedBytes || !this.#joined) return;
    this.#torrent.transfer?.scheduler.progress(this.id, total - this.#reportedBytes, nowMs);
    this.#reportedBytes = total;
  }

  /**
   * Takes back our early interest in a peer that has said nothing about its pieces: without BEP 6 that means that it has
   * none. A seed in super-seeding mode offers pieces only to peers that are not interested. Call it every second.
   */
  judgeSilence(nowMs: number): void {
    if (this.#hasSaid || !this.amInterested || this.info === null || nowMs - this.startedMs < SILENCE_MS) return;
    this.haveNone();
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

  // Handlers of the link.
  override ready(info: HandshakeInfo): void {
    if (this.rttMs !== null) {
      // A relay (VPN, proxy, satellite modem) may accept connections on its side of a long line: only the peer's own
      // answer shows how far away it is.
      const trips = info.encrypted ? ENCRYPTED_TRIPS : 1;
      this.rttMs = Math.max(this.rttMs, (this.swarm.clock.monotonic() - this.startedMs) / trips);
    }
    super.ready(info);
    this.join();
  }

  override extended(info: ExtendedHandshake): void {
    super.extended(info);
    if (this.#joined) this.#torrent.transfer?.scheduler.setRequestQueueLimit(this.id, info.requestQueueLimit);
    // A second handshake says that it has the metadata by now (BEP 10).
    if (!this.#metadataRest.end()) this.#torrent.fetcher.pump();
  }

  choke(): void {
    this.peerChoking = true;
    if (!this.#joined) return;
    this.#torrent.transfer?.scheduler.choked(this.id, this.swarm.clock.monotonic());
    this.#torrent.transfer?.sourceChoked(this.id);
    this.#torrent.transfer?.kick();
  }

  unchoke(): void {
    this.peerChoking = false;
    this.lastBlockMs = this.swarm.clock.monotonic();
    if (!this.#joined) return;
    this.#torrent.transfer?.scheduler.unchoked(this.id, this.swarm.clock.monotonic());
    this.#torrent.transfer?.kick();
  }

  interested(): void {
    this.peerInterested = true;
    this.swarm.interestChanged();
  }

  uninterested(): void {
    this.peerInterested = false;
    this.swarm.interestChanged();
  }

  bitfield(bytes: Uint8Array): void {
    this.#hasSaid = true;
    if (this.pieces === null) {
      if (bytes.every((byte) => byte === 0)) this.setInterested(false);
      return this.#early.bitfield(bytes);
    }
    this.pieces = new Bitfield(this.pieces.size, bytes);
    this.#torrent.transfer?.scheduler.peerBitfield(this.id, this.pieces.bytes, this.swarm.clock.monotonic());
    this.swarm.piecesChanged(this);
    this.#torrent.transfer?.kick();
  }

  haveAll(): void {
    this.#hasSaid = true;
    if (this.pieces === null) {
      this.#early.all = true;
      return;
    }
    this.pieces.setAll();
    this.#torrent.transfer?.scheduler.peerHasAll(this.id, this.swarm.clock.monotonic());
    this.swarm.piecesChanged(this);
    this.#torrent.transfer?.kick();
  }

  haveNone(): void {
    this.#hasSaid = true;
    if (this.pieces !== null) return this.bitfield(new Uint8Array(Math.ceil(this.pieces.size / 8)));
    this.#early.none();
    this.setInterested(false);
  }

  have(piece: number): void {
    this.#hasSaid = true;
    if (this.pieces === null) {
      if (this.#torrent.eager) this.setInterested(true);
      return this.#early.have(piece);
    }
    if (!this.pieces.set(piece)) return;
    this.#torrent.transfer?.scheduler.peerHas(this.id, piece, this.swarm.clock.monotonic());
    if (this.pieces.full) this.swarm.piecesChanged(this);
    this.#torrent.transfer?.kick();
  }

  dontHave(piece: number): void {
    if (this.pieces === null) return this.#early.dontHave(piece);
    if (!this.pieces.set(piece, false)) return;
    this.#torrent.transfer?.scheduler.peerLacks(this.id, piece, this.swarm.clock.monotonic());
    this.#torrent.transfer?.kick();
  }

  request(piece: number, offset: number, length: number): void {
    const { transfer } = this.#torrent;
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
    const { transfer } = this.#torrent;
    if (!this.#joined || transfer === null) return;
    if (transfer.sourceRefused(this.id, piece)) return;
    transfer.scheduler.rejected(this.id, piece, offset, this.swarm.clock.monotonic());
    transfer.kick();
  }

  allowedFast(piece: number): void {
    if (this.pieces === null) this.#early.allowedFast(piece);
    else if (piece < this.pieces.size) {
      this.#torrent.transfer?.scheduler.allowedFast(this.id, piece, this.swarm.clock.monotonic());
    }
  }

  suggest(piece: number): void {
    if (this.pieces === null) this.#early.suggest(piece);
    else if (piece < this.pieces.size) this.#torrent.transfer?.scheduler.suggested(this.id, piece);
  }

  blockTarget(piece: number, offset: number, length: number): Uint8Array | null {
    return this.#torrent.transfer?.blockTarget(this.id, piece, offset, length) ?? null;
  }

  block(piece: number, offset: number, length: number, kept: boolean): void {
    const now = this.swarm.clock.monotonic();
    this.usefulMs = now;
    this.lastBlockMs = now;
    this.downloadRate.add(length, now);
    this.reportProgress(now);
    this.swarm.downloaded(this, length);
    this.#torrent.transfer?.blockArrived(this.id, piece, offset, length, kept);
  }

  metadata(infoBytes: Uint8Array): void {
    void this.#torrent.learnMetadata(this, infoBytes);
  }

  metadataFailed(error: Error): void {
    this.#metadataRest.failed(error);
    this.#torrent.fetcher.pump();
  }

  hashRequest(request: HashRequest): void {
    this.#torrent.hashes.requested(this, request);
  }

  hashes(request: HashRequest, hashes: Uint8Array): void {
    this.#torrent.hashes.arrived(this, request, hashes);
  }

  hashReject(request: HashRequest): void {
    this.#torrent.hashes.refused(this, request);
  }

  protected left(): void {
    this.#answerTimer?.cancel();
    this.#metadataRest.close();
    this.queue?.close();
    if (this.#joined || this.#anticipated) {
      this.#torrent.transfer?.sourceLeft(this.id);
      this.#torrent.transfer?.scheduler.removePeer(this.id, this.swarm.clock.monotonic());
    }
  }
}
