/** An announce to a tracker and the tracker's reply, in any protocol. */
import type { SocketAddress } from "../ports.ts";
import { MillraceError } from "../errors.ts";

/** BEP 3 events; "" is a regular announce. */
export type AnnounceEvent = "" | "started" | "stopped" | "completed";

/** One announce. */
export interface Announce {
  readonly infohash: Uint8Array;
  readonly peerId: Uint8Array;
  /** Our listening TCP port. */
  readonly port: number;
  readonly uploadedBytes: number;
  readonly downloadedBytes: number;
  readonly leftBytes: number;
  readonly event: AnnounceEvent;
  /** Peers wanted; 0 with `stopped`. */
  readonly numWant: number;
  /** Lets the tracker recognise us after our address changed (BEP 3 `key`), 32 bits. */
  readonly key: number;
  /** `tracker id` of an earlier reply, which must be sent back. */
  readonly trackerId: Uint8Array | null;
}

/** A tracker's reply. */
export interface AnnounceAnswer {
  readonly peers: readonly SocketAddress[];
  /** Peers given by host name, not looked up. Default none. */
  readonly named?: readonly SocketAddress[];
  /** The tracker's interval, milliseconds; null when it gave none that is usable. */
  readonly intervalMs: number | null;
  readonly minIntervalMs: number | null;
  readonly seeders: number | null;
  readonly leechers: number | null;
  readonly warning: string | null;
  readonly trackerId: Uint8Array | null;
  /** Literal address of the tracker, where it is known. Default null. */
  readonly from?: string | null;
}

/**
 * Something that can announce to one tracker URL. Rejects with `tracker`, `timeout`, `connection_failed` and similar
 * codes. A tracker with an address of each family may reply twice: `late` gets the second reply, and peers whose names
 * were looked up.
 */
export type TrackerAnnouncer = (
  announce: Announce,
  signal: AbortSignal,
  late: (answer: AnnounceAnswer) => void,
) => Promise<AnnounceAnswer>;

/** A refusal by the tracker; `retryInMs` (BEP 31) is Infinity for "never". */
export function trackerFailure(reason: string, retryInMs: number | null = null): MillraceError {
  return new MillraceError("tracker", reason, { detail: { retryInMs } });
}

/** When a refusal allows the next try (BEP 31), milliseconds; null when it does not say. */
export function retryInMs(error: unknown): number | null {
  if (!(error instanceof MillraceError) || error.code !== "tracker") return null;
  const value = error.detail?.["retryInMs"];
  return typeof value === "number" ? value : null;
}
