/** What all swarms moved since the engine started, those included that were left: swarms count for themselves alone. */

/** Figures of one swarm that only grow while it runs. Bytes. */
export interface Traffic {
  readonly downloadedBytes: number;
  readonly uploadedBytes: number;
  readonly wastedBytes: number;
  readonly failedPieces: number;
}

/** Swarms that can be asked. */
type Running = readonly { status(): Traffic }[];

/** Sums over swarms that run and swarms that were left. */
export class TrafficTotals {
  #departed: Traffic = { downloadedBytes: 0, uploadedBytes: 0, wastedBytes: 0, failedPieces: 0 };

  /** A swarm is left: what it counted stays in the sum. Call when it is in `running` no more. */
  left(swarm: { status(): Traffic }): void {
    this.#departed = sum(this.#departed, swarm.status());
  }

  /** The sum now. */
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
