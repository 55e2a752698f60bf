/** What is reported about a live swarm. */
import type { SwarmStatus } from "../../swarm/types.ts";

/**
 * Figures of a live swarm: those of any swarm, and its own. Rates are means over the last 2 s, `peers` are those that
 * speak `live1`, and `havePieces` counts complete pieces in the window.
 */
export interface LiveSwarmStatus extends SwarmStatus {
  /** Substreams that somebody pushes to us, and subscriptions that we serve. */
  readonly parents: number;
  readonly children: number;
  /** Uplink as measured or limited, bytes/s. */
  readonly uplinkBytesPerSecond: number;
}
