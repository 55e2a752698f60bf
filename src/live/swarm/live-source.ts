/** A broadcast that is being received, as playback sees it; implemented by the code that talks to its peers. */
import type { DiscoverySourceStatus } from "../../discovery/types.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { ServerScope } from "../../discovery/types.ts";
import type { Magnet } from "../../metainfo/types.ts";
import type { MemberFigures } from "./member-figures.ts";
import type { Lease } from "../../swarm/leases.ts";
import { POLICY } from "../node/policy.ts";
import type { FeedPiece, LiveFeed } from "../node/stream/feed.ts";

/** What `stat` reports about the swarm. Rates are means over the last 2 s. */
export interface LiveStatus {
  /** Peers with a finished handshake. */
  readonly peers: number;
  readonly downloadBytesPerSecond: number;
  readonly uploadBytesPerSecond: number;
  /** Verified payload since the swarm was joined. */
  readonly downloadedBytes: number;
  readonly uploadedBytes: number;
  /** The latest problem a user should know of, else null. */
  readonly message: string | null;
  /** Absent: it looks for no peers. */
  readonly sources?: readonly DiscoverySourceStatus[];
}

/** What playback reads, in order. */
export type PlaybackFeed = Pick<LiveFeed, "started" | "position" | "ended" | "skippedPieces" | "take">;

/** A piece as playback gets it. */
export type SuppliedPiece = FeedPiece;

/** A new reader begins this far behind the edge, so that late pieces do not make it wait at once. */
export const START_BEHIND_MS = POLICY.startBufferMs;

/** Where playback finds the pieces of a broadcast. A feed itself requests nothing from the network. */
export interface LiveSupply {
  /** The edge of the broadcast is known. */
  readonly joined: boolean;
  /** Age of the newest piece that any peer has, ms; null: there is none. */
  readonly behindMs: number | null;
  /** Number of the newest piece whose header has come; null: none has, or this supply does not know of pieces in advance. */
  readonly newestSeq: number | null;
  /** Whole pieces have arrived. */
  readonly hasPieces: boolean;
  /** Capture time between the first and the last of the whole pieces that have arrived without a hole, ms. */
  readonly heldMs: number;
  /** The whole pieces before `seq` without a hole, in order, back to the capture time `leastMs` (Unix ms). */
  piecesBefore(seq: number, leastMs: number): SuppliedPiece[];
  openFeed(): PlaybackFeed;
  closeFeed(feed: PlaybackFeed): void;
}

/** Which of the addresses of a channel plays that comes by HTTP. */
export interface ChannelFacts {
  /** Place of the present address among `count`, from 0. */
  readonly index: number;
  readonly count: number;
  /** Item of the library that it belongs to; null: none. */
  readonly item: number | null;
  /** Without what is secret in it. */
  readonly address: string;
  /** Data of it comes. */
  readonly isPlaying: boolean;
  /** How often another address, or the same again, had to continue. */
  readonly changes: number;
  /** Why the one before was left, or this one does not play yet; null: it plays since the start. */
  readonly reason: string | null;
  /** What a radio says that it plays; null: it says nothing. */
  readonly title: string | null;
}

/** One broadcast, or a channel that comes by HTTP. */
export interface LiveSource {
  readonly metainfo: Pick<LiveMetainfo, "infohashHex" | "name">;
  /** Its pieces. */
  readonly supply: LiveSupply;
  /** Only of a channel that comes by HTTP. */
  readonly channel?: ChannelFacts;
  /** Aborted when the swarm is left, with the reason. */
  readonly ending: AbortSignal;
  status(): LiveStatus;
  /** Members that we are connected to, at most as many as a picture shows. */
  members(): readonly MemberFigures[];
  /**
   * Calls `listener` after a piece was completed, in no particular order. Returns a function that stops it. Conditions
   * that depend on time alone (a piece that is missing when it is due) have to be watched by the reader of the feed.
   */
  onPiece(listener: () => void): () => void;
}

/** What to join. */
export interface LiveTarget {
  readonly metainfo: LiveMetainfo;
  /** Further trackers and peers. */
  readonly magnet?: Magnet;
  /** Scope of the trackers that either names. Default "any". */
  readonly servers?: ServerScope;
}

/** The broadcasts of an engine. */
export interface LiveSwarms {
  /** Joins, or shares what is joined already. Throws `closed`, or `too_busy`. */
  acquire(target: LiveTarget): Lease<LiveSource>;
  /** The broadcast of an infohash (40 hex) if it is joined, or sent by this engine, else null. */
  running(infohashHex: string): LiveMetainfo | null;
}
