import type { Clock, SocketAddress } from "../ports.ts";
import type { LiveOffer, PeerLink, PeerLinkHandlers } from "./types.ts";

/**
 * Message stream encryption. `off`: plaintext only. `accept`: outgoing in plaintext, incoming as the far end likes.
 * `prefer`: outgoing tries encryption first; when the far end does not carry it the link closes with an error for which
 * `encryptionRefused` is true, and the caller connects again with `accept`.
 */
export type EncryptionMode = "off" | "accept" | "prefer";

/** What a link says of us and offers. */
export interface LinkSettings {
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  /** 20 bytes, see `createPeerId`. */
  readonly peerId: Uint8Array;
  /** BEP 6. Default true. */
  readonly fast?: boolean;
  /** BEP 5: we run a DHT node (tell its port with `sendDhtPort`). Default false. */
  readonly dht?: boolean;
  /** ut_metadata (BEP 9). Default true. */
  readonly metadata?: boolean;
  /** ut_pex (BEP 11). Default true; false for private torrents (BEP 27). */
  readonly pex?: boolean;
  /** Requests of the peer that may await an answer, told as `reqq`. Default 512. */
  readonly requestQueueLimit?: number;
  /** `v`. Default "millrace 0.1.0". */
  readonly clientName?: string;
  /** `p`: where we accept connections. Default null: nowhere. */
  readonly listenPort?: number | null;
  /** `upload_only` (BEP 21). Default false. */
  readonly uploadOnly?: boolean;
  /**
   * As `PeerLink.setMetadata`, in time for the first extended handshake: aria2 hangs up on, and bans, a peer whose first
   * one names no `metadata_size` while it needs the metadata. Default null: not known.
   */
  readonly infoBytes?: Uint8Array | null;
  /**
   * The torrent is a live broadcast: `live1` is offered, pieces have 31-bit numbers, their blocks may come unasked.
   * Default null: plain BitTorrent.
   */
  readonly live?: LiveOffer | null;
}

/** What both directions share. */
export interface LinkEnvironment {
  readonly clock: Clock;
  /** Default `accept`. */
  readonly encryption?: EncryptionMode;
  /** For all handshakes together, ms. Default 10 000. */
  readonly handshakeTimeoutMs?: number;
  /** Closes the link, at any time. */
  readonly signal?: AbortSignal;
}

/** Options of `connectPeer`. */
export interface ConnectPeerOptions extends LinkSettings, LinkEnvironment {
  readonly handlers: PeerLinkHandlers;
}

/** A torrent that an incoming peer may join. */
export interface AcceptTarget extends LinkSettings {
  /** Takes the link, whose handshake is under way, and answers its handlers; `ready` or `close` follows. */
  attach(link: PeerLink): PeerLinkHandlers;
}

/** Options of `acceptPeer`. */
export interface AcceptPeerOptions extends LinkEnvironment {
  /** Infohashes (hex) of all torrents here: an encrypted handshake names its torrent only by a salted hash. */
  candidates(): Iterable<string>;
  /** The torrent that the peer named, or null to hang up. */
  lookup(infohashHex: string, remote: SocketAddress): AcceptTarget | null;
  /** The connection ended before a torrent was known, so that no handlers could be told. */
  failed?(error: Error, remote: SocketAddress): void;
}
