/** A peer connection as the swarm sees it: BEP 3, 6, 9, 10, 11 over one TCP connection, plain or encrypted. */
import type { SocketAddress } from "../ports.ts";

/** Size of a block as requested on the wire, bytes (BEP 3; larger ones are refused by most peers). */
export const BLOCK_BYTES = 16384;

/** What a member of a live swarm says of itself in the BEP 10 handshake. */
export interface LiveOffer {
  readonly role: "source" | "viewer";
  /** Its uplink, bytes a second; null when it isn't told. */
  readonly upBytesPerS: number | null;
  /** Its wall clock when it said so, Unix ms, in whole seconds; absent when it isn't told. */
  readonly clockMs?: number;
}

/** What the far end said in the BEP 10 handshake. */
export interface ExtendedHandshake {
  readonly client: string | null;
  /** Requests it queues before dropping; default 250. */
  readonly requestQueueLimit: number;
  readonly metadataBytes: number | null;
  readonly uploadOnly: boolean;
  readonly listenPort: number | null;
  /** Our address as it sees it. */
  readonly yourIp: string | null;
  /** Extension names it offers. */
  readonly extensions: readonly string[];
  /** Its part in a live swarm; null when it offers no `live1`. */
  readonly live: LiveOffer | null;
}

/** Sizes of a torrent, to check blocks against. */
export interface PieceShape {
  readonly pieceLengthBytes: number;
  readonly totalBytes: number;
}

/** Called by a link, in the order of arrival; never re-entrantly from a method of the link. */
export interface PeerLinkHandlers {
  /** Both handshakes are done. `peerId` is 20 bytes. */
  ready(info: { peerId: Uint8Array; fast: boolean; dht: boolean; encrypted: boolean }): void;
  extended(info: ExtendedHandshake): void;
  choke(): void;
  unchoke(): void;
  interested(): void;
  uninterested(): void;
  /** Pieces the far end has; `bytes` may be longer or shorter than the torrent when the metadata is unknown. */
  bitfield(bytes: Uint8Array): void;
  haveAll(): void;
  haveNone(): void;
  have(piece: number): void;
  /** BEP 54: the far end has lost a piece. */
  dontHave?(piece: number): void;
  /**
   * The far end asks for a block (1 byte to 128 KiB) while we do not choke it. At most `requestQueueLimit` wait for an
   * answer; the link itself refuses the excess, what comes while we choke, and a block asked for again.
   */
  request(piece: number, offset: number, length: number): void;
  /** A request that awaited an answer is withdrawn; the link has rejected it where BEP 6 asks for that. Forget it. */
  cancel(piece: number, offset: number, length: number): void;
  /** The far end withdraws what it has not asked for: in a live swarm, a block that it would be sent unasked. */
  unwanted?(piece: number, offset: number, length: number): void;
  /** BEP 6. */
  reject(piece: number, offset: number, length: number): void;
  allowedFast(piece: number): void;
  /**
   * Where the payload of an arriving block goes: a view of exactly `length` bytes, or null to discard it. Called when
   * the header has arrived; the payload is copied in as it arrives.
   */
  blockTarget(piece: number, offset: number, length: number): Uint8Array | null;
  /** The block is complete in its target (or was discarded: `kept` false). */
  block(piece: number, offset: number, length: number, kept: boolean): void;
  /** UDP port of its DHT node (BEP 5). */
  dhtPort(port: number): void;
  /** ut_pex. */
  peers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void;
  /** ut_metadata delivered the whole `info` and its SHA-1 is the infohash. */
  metadata(infoBytes: Uint8Array): void;
  /** ut_metadata of this peer failed (refused, garbage, hash mismatch): it is not asked again. */
  metadataFailed(error: Error): void;
  /** A `live1` message, the receiver's to keep; only with `LinkSettings.live`. */
  live?(message: Uint8Array): void;
  /** Last call. `error` is a MillraceError; `protocol_violation` when the peer broke a rule (ban it). */
  close(error: Error | null): void;
}

/** One connected peer. Methods are cheap and never throw; after close they do nothing. */
export interface PeerLink {
  readonly remote: SocketAddress;
  readonly incoming: boolean;
  /** Payload bytes of blocks received and sent, and all bytes, since the start. */
  readonly counters: {
    readonly downloadedPayloadBytes: number;
    readonly uploadedPayloadBytes: number;
    readonly receivedBytes: number;
    readonly sentBytes: number;
  };
  /** Monotonic ms of the last byte received. */
  readonly lastReceivedMs: number;
  /** All requests of the far end that await an answer are gone: the link rejects them (BEP 6) or lets them drop (BEP 3). */
  choke(): void;
  unchoke(): void;
  interested(): void;
  uninterested(): void;
  bitfield(bytes: Uint8Array): void;
  /** Without BEP 6, once the piece count is set, a full bitfield; before that nothing. */
  haveAll(): void;
  /** Without BEP 6 nothing. */
  haveNone(): void;
  have(piece: number): void;
  /** BEP 54: we have it no longer; nothing when the far end does not speak of that. */
  dontHave(piece: number): void;
  request(piece: number, offset: number, length: number): void;
  cancel(piece: number, offset: number, length: number): void;
  /** Refuses a request that awaits an answer; else nothing. */
  reject(piece: number, offset: number, length: number): void;
  /**
   * Sends a block that was requested and neither cancelled nor choked away since (else it is dropped and the answer is
   * true); takes ownership of `data`. False when over the write watermark: wait for `onDrain`.
   */
  piece(piece: number, offset: number, data: Uint8Array): boolean;
  /**
   * Sends a block that nobody need have asked for, of any 31-bit number: only with `LinkSettings.live`. Ownership and
   * answer as for `piece`.
   */
  push(piece: number, offset: number, data: Uint8Array): boolean;
  /** Sends a `live1` message; nothing when either end does not offer it. */
  sendLive(message: Uint8Array): void;
  /** Bytes queued for sending. */
  readonly bufferedBytes: number;
  onDrain: (() => void) | null;
  /** Stops reading from the socket (download rate limit) and goes on. */
  pause(): void;
  resume(): void;
  /** ut_pex, at most once a minute as BEP 11 says; the link does not enforce it. */
  sendPeers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void;
  /** Tells the peer our DHT port. */
  sendDhtPort(port: number): void;
  /** Asks for the metadata by ut_metadata (when the peer offers it). */
  fetchMetadata(): void;
  /** Gives up what `fetchMetadata` began, without a report; it may be asked for again. */
  cancelMetadata(): void;
  /** Bytes of the metadata being fetched that have arrived; 0 when none is. */
  readonly metadataBytes: number;
  /** Serves the metadata by ut_metadata from now on. */
  setMetadata(infoBytes: Uint8Array): void;
  /**
   * Number of pieces, once known: messages naming pieces beyond it, also earlier ones, are protocol violations. With
   * `shape`, blocks outside their piece are too.
   */
  setPieceCount(count: number, shape?: PieceShape): void;
  keepAlive(): void;
  close(error?: Error): void;
}
