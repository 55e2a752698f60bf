/** What a simulated broadcast is given, and what comes out of it. */
import type { LiarKind } from "./lies.ts";
import type { SentMessages } from "./sent-messages.ts";
import type { PacketLossOptions } from "./tcp-stream.ts";

/** A run. */
export interface LiveScenario {
  readonly name: string;
  readonly viewers: number;
  readonly seed?: number;
  /** Viewers there at the start. Default 10. */
  readonly first?: number;
  /** The others come evenly over this time, s, from `arriveFromS` (default 2) on. */
  readonly arriveS: number;
  readonly arriveFromS?: number;
  readonly durationS: number;
  /** Bytes a second. Default 250,000: 2 Mb/s. */
  readonly bytesPerS?: number;
  /** Time between random access points, ms. Default 1000. */
  readonly groupMs?: number;
  /** Share that leaves, and is replaced, each minute. */
  readonly churnPerMinute?: number;
  readonly poisoners?: number;
  /** Share of viewers that send nothing; the others then have 2 and 4 × bitrate. */
  readonly zeroUpload?: number;
  /** Viewers' lines take all at once, so that no uplink is ever measured: as between processes of one machine. */
  readonly unmeasured?: boolean;
  /** Share of viewers that nobody can connect to, and whether the source is so. Default 0, false. */
  readonly closedShare?: number;
  /** Share of those whose NATs can be punched. Default 0. */
  readonly punchableShare?: number;
  readonly closedSource?: boolean;
  /** Up-links of viewers in the order of their coming, again from the first after the last, bytes/s; instead of the usual mix. */
  readonly uplinks?: readonly number[];
  /** As in `HostOptions`. */
  readonly routerMs?: number;
  /** Members live in four parts of the world, the source in one of them. Default: anywhere, see `latencyMs`. */
  readonly hasRegions?: boolean;
  /** The source's line, and the limit that its user states, if any, bytes/s. Default for both: twice the bitrate. */
  readonly sourceLine?: { readonly bytesPerS: number; readonly limitBytesPerS?: number };
  /** Uplinks of viewers in shares of what they would be. Default 1. */
  readonly uplinkFactor?: number;
  /** As in `HostOptions`, the source's too. */
  readonly loss?: number;
  readonly packetLoss?: PacketLossOptions;
  /** Least and most one-way latency of a connection, ms. Default 10 and 50. */
  readonly latencyMs?: readonly [number, number];
  /** A share of the viewers vanishes at `atS` without closing a connection. */
  readonly silentDeath?: { readonly atS: number; readonly share: number };
  /** A share of the viewers, at least one, lies; none of the first ten. */
  readonly liars?: { readonly kind: LiarKind; readonly share: number };
  /** Most connections of the source. Default 80. */
  readonly sourceLinks?: number;
  /** Announced bitrate in shares of the true one. Default 1. */
  readonly toldShare?: number;
  /** The stream begins with this many seconds of a slate: `SLATE_BYTES_PER_S`. */
  readonly slateS?: number;
  /** Wall clocks of viewers are wrong by up to this, ms, either way. Default 0. */
  readonly clocksWrongMs?: number;
  /** The source is gone in [from, to), s. */
  readonly outageS?: readonly [number, number];
  /** Digest all messages. Default false. */
  readonly keepsLog?: boolean;
}

/** What came out. */
export interface LiveResult {
  readonly name: string;
  readonly viewers: number;
  readonly joined: number;
  /** Viewers that have not begun to play, though they have been there for ten seconds. */
  readonly never: number;
  /** How far a player that always plays at normal speed is behind the capture, s. */
  readonly lagP50S: number;
  readonly lagP95S: number;
  /** How far the newest that players were given is behind the capture, s: what they can catch up to. */
  readonly givenLagP50S: number;
  readonly givenLagP95S: number;
  readonly continuity: number;
  readonly viewerShare: number;
  readonly duplicateShare: number;
  readonly joinP50S: number;
  readonly joinP95S: number;
  /** What a viewer sends beside payload: messages and bytes per second, and the bytes by kind, the largest first. */
  readonly messagesPerS: number;
  readonly controlBytesPerS: number;
  readonly controlShares: SentMessages["shares"];
  readonly badBytesDelivered: number;
  readonly recoveryP95S: number | null;
  /** Longest standstill of those who stay after the silent death of others, s; null without one. */
  readonly gapP95S: number | null;
  /** Continuity of those who stay, in the minute after the silent death of others, and from then on; null without one. */
  readonly aftermathContinuity: number | null;
  readonly laterContinuity: number | null;
  readonly shed: number;
  /** Digest of all messages, 16 hex digits; null when none was asked for. */
  readonly logHex: string | null;
  /** How long viewers were there, all together, s. */
  readonly viewerSeconds: number;
}
