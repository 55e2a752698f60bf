/** Adds up the traffic of all swarms since the engine started, including swarms that were left: each counts only its own. */

/** Counters of one swarm, bytes; they only grow while it runs. */
export interface Traffic {
  readonly downloadedBytes: number;
  readonly uploadedBytes: number;
  readonly wastedBytes: number;
  readonly failedPieces: number;
}

/** Running swarms. */
type Running = readonly { status(): Traffic }[];

/** Sums over running swarms and those that were left. */
export class TrafficTotals {
  #departed: Traffic = { downloadedBytes: 0, uploadedBytes: 0, wastedBytes: 0, failedPieces: 0 };

  /** Keeps the counts of a swarm that was left in the sum. To be called when it is no longer in `running`. */
  left(swarm: { status(): Traffic }): void {
    this.#departed = sum(this.#departed, swarm.status());
  }

  /** The current sum. */
  now(running: Running): Traffic {
    return running.reduce<Traffic>((total, swarm) => sum(total, swarm.status()), this.#departed);
  }
}

function sum(a: Traffic, b: Traffic): Traffic {
  return {
    downloadedBytes: a.downloadedBytes + b.downloadedBytes,
    uploadedBytes: a.uploadedBytes + b.uploadedBytes,
    wastedBytes: a.wastedBytes + b.wastedBytes,
    failedPieces: a.failedPieces + b.failedPieces,
  };
}
