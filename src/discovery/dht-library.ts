/** What bittorrent-dht is given, and what it gives: it ships no types. */
import type { SocketAddress } from "../ports.ts";

/** Limits of the library's tables: infohash lookups, items and peers stored for others, and how long peers are kept. */
export const LIBRARY_LIMITS = { maxTables: 200, maxValues: 500, maxPeers: 5_000, maxAge: 30 * 60_000 } as const;

/** Nodes per reply (BEP 5). */
export const ANSWERED_NODES = 8;

/** Peers per reply: as many as fit one datagram with room for the rest (BEP 5: 8 bytes each). */
export const ANSWERED_PEERS = 50;

/** A node that replied, as the library describes it. */
export interface LibrarySender {
  readonly address?: string;
  readonly host?: string;
}

/** A node of its table. */
export interface LibraryContact {
  readonly id: Uint8Array;
  readonly host: string;
  readonly port: number;
}

/** A reply as the library decodes it: its byte strings are Buffers. */
export interface LibraryReply {
  readonly r?: unknown;
}

/** Gets the reply to a query, or why there is none, and its address. */
export type Asked = (error: { code?: unknown } | null, reply: LibraryReply | null, from: SocketAddress) => void;
