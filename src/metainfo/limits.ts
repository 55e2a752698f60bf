/** Bounds on the contents of a transport file. Each is far above honest use and low enough to be harmless. */

/** Largest transport file, bytes: 500,000 pieces need 10 MB. */
export const MAX_TRANSPORT_FILE_BYTES = 16 * 1024 * 1024;

/** The block that peers request (BEP 3), bytes, and the smallest piece that we make. */
export const PIECE_LENGTH_STEP_BYTES = 16 * 1024;

/** Smallest piece, bytes: old creators went down to this. */
export const MIN_PIECE_LENGTH_BYTES = 1024;

/**
 * Largest piece, bytes: pieces are assembled and hashed in memory, and up to four at once are under way however large
 * they are, 1 GiB of these. Some creators go up to it; nothing of a piece can be played before all of it is downloaded.
 */
export const MAX_PIECE_LENGTH_BYTES = 256 * 1024 * 1024;

/**
 * Most pieces of a torrent of version 2: its `info` states lengths alone, so a few bytes could claim any number. Of version
 * 1 the size of the file is the bound. Peers may announce as many.
 */
export const MAX_PIECES = 400_000;

/** Most files; the largest honest torrents have some tens of thousands. */
export const MAX_FILES = 100_000;

/** Longest name or path component, bytes of UTF-8: the limit of Windows and macOS, 255 UTF-16 units, takes up to this. */
export const MAX_COMPONENT_BYTES = 765;

/** Longest path, bytes of UTF-8: Linux's PATH_MAX. */
export const MAX_PATH_BYTES = 4096;

/** Deepest path, components. */
export const MAX_PATH_COMPONENTS = 64;

/** Most trackers, web seeds or nodes kept, per list; the rest is ignored. */
export const MAX_URLS = 100;

/** Longest URL kept, in bytes of UTF-8 and in characters alike. */
export const MAX_URL_LENGTH = 2048;

/** Longest magnet link, characters. */
export const MAX_MAGNET_LENGTH = 64 * 1024;

/** Largest transport record, bytes: what BEP 44 stores. */
export const MAX_RECORD_BYTES = 1000;
