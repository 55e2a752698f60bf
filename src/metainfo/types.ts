/** The contents of a transport file (BEP 3, BEP 12, BEP 19, BEP 27, BEP 52), checked and normalised. */

/** One file of a torrent. */
export interface MetainfoFile {
  /** Position in the torrent's file list, 0-based; padding files (BEP 47) keep their index and are marked. */
  readonly index: number;
  /** Safe relative path: `/`-separated, no empty, `.` or `..` component, no absolute or drive prefix. */
  readonly path: string;
  /** Last component of `path`. */
  readonly name: string;
  /** The torrent's own path, percent-encoded, when `path` is not that: what a web seed (BEP 19) is asked for. */
  readonly webPath?: string;
  readonly sizeBytes: number;
  /** Offset of the first byte in the torrent's byte space. */
  readonly offset: number;
  readonly padding: boolean;
}

/** The hash tree of a file (BEP 52), whose leaves are SHA-256 of its blocks. */
export interface HashTree {
  /** 32 bytes. */
  readonly root: Uint8Array;
  readonly sizeBytes: number;
  readonly firstPiece: number;
  readonly pieceCount: number;
  /** The nodes that cover a piece each, 32 bytes per piece; null while they are not known, or with a single piece. */
  readonly layer: Uint8Array | null;
}

/** A parsed `info` dictionary of kind VOD. */
export interface Metainfo {
  /** SHA-1 of the bencoded `info`, 20 bytes. Of a torrent of version 2 alone: the first 20 bytes of its SHA-256. */
  readonly infohash: Uint8Array;
  readonly infohashHex: string;
  /** SHA-256 of the bencoded `info`, 32 bytes: of a torrent of version 2, or of both versions. */
  readonly infohashV2?: Uint8Array;
  readonly name: string;
  /** The torrent's own name, percent-encoded, when `name` is not that. */
  readonly webName?: string;
  /** From 1 KiB to 256 MiB. Where it is no multiple of 16 KiB, the last block of every piece is shorter. */
  readonly pieceLengthBytes: number;
  readonly pieceCount: number;
  readonly totalBytes: number;
  /**
   * SHA-1 of piece i at bytes [20·i, 20·i+20). With `shortPieces`: the node of the hash tree that covers piece i, at bytes
   * [32·i, 32·i+32).
   */
  readonly pieceHashes: Uint8Array;
  /** As in `PieceShape`: present in torrents of version 2 alone. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  /** The hash trees of all files that are not empty, with `infohashV2`. */
  readonly trees?: readonly HashTree[];
  readonly files: readonly MetainfoFile[];
  /**
   * True when `info` has a file list, so that `name` is the directory that holds the files (`path` never begins with
   * it). False: one file, whose path is `name`. Web seeds (BEP 19) need the distinction.
   */
  readonly multiFile?: boolean;
  /** BEP 27. */
  readonly isPrivate: boolean;
  /** The bencoded `info`, for ut_metadata. */
  readonly infoBytes: Uint8Array;
  /** Tracker tiers (BEP 12). */
  readonly trackers: readonly (readonly string[])[];
  /** BEP 19 web seeds. */
  readonly webSeeds: readonly string[];
  /** BEP 17 web seeds: scripts that send parts of pieces. Absent: none. */
  readonly httpSeeds?: readonly string[];
  /** DHT nodes named in the file, `host:port`. */
  readonly nodes: readonly string[];
  /** A server of the Internet, or a caller who may name no private address, gave it: the servers in it must be public. */
  readonly isFromPublic?: boolean;
}

/** The contents of a magnet link (BEP 9, BEP 52, BEP 53). */
export interface Magnet {
  /** As in `Metainfo`. */
  readonly infohash: Uint8Array;
  readonly infohashHex: string;
  /** As in `Metainfo`; absent when the link does not name it. */
  readonly infohashV2?: Uint8Array;
  readonly name: string | null;
  readonly trackers: readonly string[];
  /** `x.pe`: peers, `host:port`. */
  readonly peers: readonly string[];
  readonly webSeeds: readonly string[];
  /** `xs` and `as`: http addresses of the transport file. */
  readonly sources?: readonly string[];
  /** Fields that hold no usable address, `tr=…`. */
  readonly unread?: readonly string[];
  /** `so`: file indexes to select, null when absent. */
  readonly selectOnly: readonly number[] | null;
}
