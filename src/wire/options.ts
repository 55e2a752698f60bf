import type { Clock, SocketAddress } from "../ports.ts";
import type { LiveOffer, PeerLink, PeerLinkHandlers } from "./types.ts";

/**
 * Message stream encryption. `off`: plaintext only. `accept`: outgoing in plaintext, incoming as the far end chooses.
 * `prefer`: outgoing tries encryption first; if the far end does not accept it, the link closes with an error for which
 * `encryptionRefused` is true, and the caller connects again with `accept`. `require`: all of every link is encrypted (RC4), or
 * the link closes with `denied`.
 */
export type EncryptionMode = "off" | "accept" | "prefer" | "require";

/** Our side of a link, as announced to the peer. */
export interface LinkSettings {
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  /** 20 bytes, see `createPeerId`. */
  readonly peerId: Uint8Array;
  /** BEP 6. Default true. */
  readonly fast?: boolean;
  /** BEP 52: the torrent has version 2. Default false. */
  readonly v2?: boolean;
  /** BEP 5: we run a DHT node (announce its port with `sendDhtPort`). Default false. */
  readonly dht?: boolean;
  /** ut_metadata (BEP 9). Default true. */
  readonly metadata?: boolean;
  /** ut_pex (BEP 11). Default true; false for private torrents (BEP 27). */
  readonly pex?: boolean;
  /** ut_holepunch (BEP 55). Default false. */
  readonly meets?: boolean;
  /** How many unanswered requests the peer may have, announced as `reqq`. Default 512. */
  readonly requestQueueLimit?: number;
  /** `v`. Default "millrace 0.1.0". */
  readonly clientName?: string;
  /** `p`: the port on which we accept connections. Default null: none. */
  readonly listenPort?: number | null;
  /** `upload_only` (BEP 21). Default false. */
  readonly uploadOnly?: boolean;
  /**
   * As `PeerLink.setMetadata`, in time for the first extended handshake: while aria2 needs the metadata, it hangs up on
   * and bans a peer whose first extended handshake has no `metadata_size`. Default null: not known.
   */
  readonly infoBytes?: Uint8Array | null;
  /**
   * The torrent is a live broadcast: `live1` is offered, pieces have 31-bit numbers, blocks may come unrequested.
   * Default null: plain BitTorrent.
   */
  readonly live?: LiveOffer | null;
}

/** Settings for links in both directions. */
export interface LinkEnvironment {
  readonly clock: Clock;
  /** Default `accept`. */
  readonly encryption?: EncryptionMode;
  /** Deadline for all handshakes together, ms. Default 10 000. */
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
  /** Takes the link, whose handshake is under way, and returns its handlers; `ready` or `close` follows. */
  attach(link: PeerLink): PeerLinkHandlers;
}

/** Options of `acceptPeer`. */
export interface AcceptPeerOptions extends LinkEnvironment {
  /** Infohashes (hex) of all torrents here: an encrypted handshake names its torrent only by a salted hash. */
  candidates(): Iterable<string>;
  /** The torrent that the peer named, or null to hang up. */
  lookup(infohashHex: string, remote: SocketAddress): AcceptTarget | null;
  /** The connection ended before its torrent was known, so there were no handlers to call. */
  failed?(error: Error, remote: SocketAddress): void;
}

/** Finds the torrent of a link. */
export interface LinkOwner {
  candidates(): Iterable<string>;
  /** The settings and handlers for a torrent, or null to hang up. */
  resolve(link: PeerLink, infohashHex: string): { settings: LinkSettings; handlers: PeerLinkHandlers } | null;
  /** The link closed before `resolve` returned. */
  orphaned(error: Error): void;
}

/** How the library is to encrypt (`ControlWire`). */
export function encryptionOf(mode: EncryptionMode = "accept", isIncoming: boolean): 0 | 1 | 2 {
  if (mode === "require") return 2;
  return mode === "prefer" || (mode === "accept" && isIncoming) ? 1 : 0;
}
