/** A peer connection as the swarm sees it: BEP 3, 6, 9, 10, 11 over one TCP connection, plain or encrypted. */
import type { HolePunchMessage } from "./hole-punch.ts";
import type { PieceSizes } from "../bytes/piece-shape.ts";
import type { SocketAddress } from "../ports.ts";
import type { HashRequest } from "./hash-messages.ts";

/** Size of a block as requested on the wire, bytes (BEP 3; most peers refuse larger ones). */
export const BLOCK_BYTES = 16384;

/** Facts that a member of a live swarm states about itself in the BEP 10 handshake. */
export interface LiveOffer {
  readonly role: "source" | "viewer";
  /** Its uplink, bytes per second; null when unknown. */
  readonly upBytesPerS: number | null;
  /** Its wall clock when it sent this, Unix ms, in whole seconds; absent when it sent none. */
  readonly clockMs?: number;
  /** The peer understands the message BUNDLE. Default false. */
  readonly takesBundles?: boolean;
  /** True when others can connect to its port; absent when it does not know. */
  readonly isOpen?: boolean | undefined;
  /** The connection is a second one between two members, and belongs to the one over which the receiver sent this: 8 bytes. */
  readonly joins?: Uint8Array;
}

/** The far end's BEP 10 handshake. */
export interface ExtendedHandshake {
  readonly client: string | null;
  /** Requests it queues before dropping; default 250. */
  readonly requestQueueLimit: number;
  readonly metadataBytes: number | null;
  readonly uploadOnly: boolean;
  readonly listenPort: number | null;
  /** Our address as the far end sees it. */
  readonly yourIp: string | null;
  /** Extension names it offers. */
  readonly extensions: readonly string[];
  /** Its role in a live swarm; null when it offers no `live1`. */
  readonly live: LiveOffer | null;
}

/** Called by a link, in the order of arrival; never re-entrantly from a method of the link. */
export interface PeerLinkHandlers {
  /** Takes what only peers of torrents say; null in a live swarm, where the link drops that. */
  readonly torrent: TorrentHandlers | null;
  /** Both handshakes are done. `peerId` is 20 bytes. */
  ready(info: { peerId: Uint8Array; fast: boolean; dht: boolean; encrypted: boolean }): void;
  extended(info: ExtendedHandshake): void;
  /**
   * The far end requests a block (1 byte to 128 KiB) while we do not choke it. At most `requestQueueLimit` stay
   * unanswered; the link itself rejects more than that, requests while we choke, and repeated ones.
   */
  request(piece: number, offset: number, length: number): void;
  /** An unanswered request is withdrawn; the link has rejected it if BEP 6 requires that. Forget it. */
  cancel(piece: number, offset: number, length: number): void;
  /** The far end cancels a block that it did not request: in a live swarm, one that would be sent unrequested. */
  unwanted?(piece: number, offset: number, length: number): void;
  /** BEP 6. */
  reject(piece: number, offset: number, length: number): void;
  /**
   * Returns the place for the payload of an arriving block: a view of exactly `length` bytes, or null to discard it.
   * Called when the header has arrived; the payload is copied in as it arrives.
   */
  blockTarget(piece: number, offset: number, length: number): Uint8Array | null;
  /** The block is complete in its target (or was discarded: `kept` false). */
  block(piece: number, offset: number, length: number, kept: boolean): void;
  /** UDP port of the far end's DHT node (BEP 5). */
  dhtPort(port: number): void;
  /** ut_pex. */
  peers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void;
  /** BEP 55; only with `LinkSettings.meets`. */
  holePunch?(message: HolePunchMessage): void;
  /** A `live1` message, which the receiver may keep; only with `LinkSettings.live`. */
  live?(message: Uint8Array): void;
  /** Last call. `error` is a MillraceError; `protocol_violation` when the peer broke a rule (see `offenceOf`). */
  close(error: Error | null): void;
}

/** What peers of torrents say besides: which pieces they have, whether they serve us, the metadata and its hashes. */
export interface TorrentHandlers {
  choke(): void;
  unchoke(): void;
  interested(): void;
  uninterested(): void;
  /** Pieces that the far end has; `bytes` may be longer or shorter than the torrent, and have spare bits set. */
  bitfield(bytes: Uint8Array): void;
  haveAll(): void;
  haveNone(): void;
  have(piece: number): void;
  /** BEP 54: the far end has lost a piece. */
  dontHave?(piece: number): void;
  allowedFast(piece: number): void;
  /** BEP 6: the far end could send this piece at little cost. */
  suggest?(piece: number): void;
  /** ut_metadata delivered the whole `info` and its SHA-1, or the beginning of its SHA-256, is the infohash. */
  metadata(infoBytes: Uint8Array): void;
  /** ut_metadata of this peer failed (refused, garbage, hash mismatch): it is not asked again. */
  metadataFailed(error: Error): void;
  /** BEP 52: the far end asks for hashes. Answer with `sendHash`. */
  hashRequest?(request: HashRequest): void;
  /** BEP 52: hashes arrived, asked for or not; the nodes, then those of the way to the root. */
  hashes?(request: HashRequest, hashes: Uint8Array): void;
  /** BEP 52: the far end does not have the hashes that we asked for. */
  hashReject?(request: HashRequest): void;
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
  /** When the last byte was received, monotonic ms. */
  readonly lastReceivedMs: number;
  /** Voids all unanswered requests of the far end: the link rejects them (BEP 6) or drops them (BEP 3). */
  choke(): void;
  unchoke(): void;
  interested(): void;
  uninterested(): void;
  bitfield(bytes: Uint8Array): void;
  /** Without BEP 6 sends a full bitfield once the piece count is set, and nothing before that. */
  haveAll(): void;
  /** Sends nothing without BEP 6. */
  haveNone(): void;
  have(piece: number): void;
  /** BEP 54: we no longer have it; sends nothing when the far end does not support that. */
  dontHave(piece: number): void;
  request(piece: number, offset: number, length: number): void;
  cancel(piece: number, offset: number, length: number): void;
  /** Rejects an unanswered request; does nothing otherwise. */
  reject(piece: number, offset: number, length: number): void;
  /**
   * Sends a block that was requested and neither cancelled nor choked since (otherwise it drops the block and returns
   * true); takes ownership of `data`. False when over the write watermark: wait for `onDrain`.
   */
  piece(piece: number, offset: number, data: Uint8Array): boolean;
  /**
   * The same for adjacent blocks of one piece from `offset` on, whose messages stand one after the other in `messages`
   * (`piece-messages.ts`). That memory must not change before `writtenBytes` reaches the `sentBytes` counted after this call.
   */
  pieces(piece: number, offset: number, messages: Uint8Array): boolean;
  /**
   * Sends a block of any 31-bit number, even unrequested: only with `LinkSettings.live`. Ownership and return value as
   * for `piece`.
   */
  push(piece: number, offset: number, data: Uint8Array): boolean;
  /** Sends a message about hashes (BEP 52), one of `HashMessageId`. */
  sendHash(id: number, request: HashRequest, hashes?: Uint8Array): void;
  /** Sends a message of BEP 55; does nothing unless both ends offer it. */
  sendHolePunch(message: HolePunchMessage): void;
  /** Sends a `live1` message; does nothing unless both ends offer it. */
  sendLive(message: Uint8Array): void;
  /** Bytes queued for sending. */
  readonly bufferedBytes: number;
  /** Least number of the `counters.sentBytes` that have left our memory; Infinity once the link is closed. */
  readonly writtenBytes: number;
  onDrain: (() => void) | null;
  /** Stops reading from the socket (download rate limit) until `resume`. */
  pause(): void;
  resume(): void;
  /** ut_pex, at most once per minute (BEP 11), which the link does not enforce. */
  sendPeers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void;
  /** Sends our DHT port to the peer. */
  sendDhtPort(port: number): void;
  /** Requests the metadata by ut_metadata if the peer offers it. */
  fetchMetadata(): void;
  /** Cancels what `fetchMetadata` began, without a report; it may be called again. */
  cancelMetadata(): void;
  /** Bytes that have arrived of the metadata being fetched; 0 when none is. */
  readonly metadataBytes: number;
  /** Serves the metadata by ut_metadata from now on. */
  setMetadata(infoBytes: Uint8Array): void;
  /**
   * Number of pieces, once known: messages that name a piece beyond it are ignored, blocks of one are a protocol
   * violation. With `shape`, so are blocks outside their piece, and requests for such are rejected.
   */
  setPieceCount(count: number, shape?: PieceSizes): void;
  keepAlive(): void;
  close(error?: Error): void;
}
