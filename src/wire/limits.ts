/** Bounds on what a peer may make us hold or do. Exceeding one is a protocol violation unless said otherwise. */

/**
 * Largest block that may be requested, bytes, in either direction. BEP 3 speaks of 16 KiB; 128 KiB is what older
 * clients request and most clients still serve.
 */
export const MAX_BLOCK_BYTES = 8 * 16384;

/** Most pieces of a torrent whose metadata is unknown: ten times the largest known torrent; the library assumes the same. */
export const MAX_PIECES = 400_000;

/** Pieces of a live broadcast: their numbers are 31 bits wide. */
export const MAX_LIVE_PIECES = 2 ** 31;

/** Longest message of any id, bytes: checked at the length prefix, before any of it is kept. */
export const MAX_FRAME_BYTES = 1 << 20;

/** Largest `info` fetched or served by ut_metadata: MAX_PIECES hashes of 20 bytes, rounded up to 8 MiB. */
export const MAX_METADATA_BYTES = 8 << 20;

/**
 * Largest extended message (BEP 10). The largest that we ever request is a ut_metadata block of 16 KiB with its
 * dictionary; extended handshakes and peer lists stay under a few KiB.
 */
export const MAX_EXTENDED_BYTES = 64 << 10;

/**
 * Largest extended handshake (BEP 10). Clients send less than 1 KiB; decoding many names costs more than any other
 * message.
 */
export const MAX_HANDSHAKE_BYTES = 8 << 10;

/** Largest message of an unknown id. It is skipped without being kept, so the bound only rejects absurd lengths. */
export const MAX_UNKNOWN_BYTES = MAX_FRAME_BYTES;

/**
 * Most bytes kept while a handshake is unfinished: the longest encrypted one (2 × 96-byte key and 512 bytes of padding,
 * 2 × 20-byte hash, 64 KiB of initial payload) with room for one more socket read.
 */
export const MAX_HANDSHAKE_BUFFER_BYTES = 384 << 10;

/** Unanswered requests that a peer may have, announced as `reqq`, unless the options set another number. */
export const DEFAULT_REQUEST_QUEUE_LIMIT = 512;

/** Queue size assumed for BEP 10 clients that send no `reqq`. */
export const DEFAULT_PEER_REQUEST_QUEUE_LIMIT = 250;

/**
 * Bytes queued for a peer that does not read, above which it is dropped. Blocks stop at the connection's watermark
 * (256 KiB), so only replies to floods and `have` storms get here.
 */
export const MAX_SEND_BACKLOG_BYTES = 4 << 20;

/** Bytes queued above which metadata is refused instead of queued. */
export const METADATA_BACKLOG_BYTES = 512 << 10;

/** Deadline for both handshakes together, ms, counted from the open connection. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Deadline for the key exchange of an outgoing connection, ms. Shorter than the whole, so that the caller can retry
 * in plaintext: peers without encryption often just stay silent.
 */
export const ENCRYPTION_TIMEOUT_MS = 4_000;

/** A metadata fetch that makes no progress for this long has failed, ms. */
export const METADATA_TIMEOUT_MS = 20_000;

/** The whole fetch may take `METADATA_TIMEOUT_MS` plus the time that its size needs at this rate, bytes per second. */
export const METADATA_LEAST_RATE = 8 << 10;

/** Metadata blocks requested at once: some clients refuse more than 64. */
export const METADATA_REQUESTS = 32;

/** Peers in one ut_pex message, sent or read, for each of added and dropped (BEP 11). */
export const PEX_PEERS = 50;

/**
 * Shortest time between two ut_pex messages that we read, ms (BEP 11: at most one per minute; the rest allows for
 * jitter).
 */
export const PEX_INTERVAL_MS = 55_000;
