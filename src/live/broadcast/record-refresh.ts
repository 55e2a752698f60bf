/** Keeps the transport records of broadcasts in the DHT, whose nodes forget items after two hours (BEP 44). */
import { deadline } from "../../bytes/deadline.ts";
import type { Discovery } from "../../discovery/types.ts";
import type { Clock, Logger, Timer } from "../../ports.ts";
import { transportRecordOf } from "../../metainfo/content-id.ts";
import type { LiveSwarm } from "../swarm/live-swarm.ts";

/** Time between two refreshes, ms. */
const REFRESH_MS = 3_600_000;
/** A broadcaster whose record found no node tries again after this, ms. */
const RETRY_MS = 60_000;
/** Time for one record to reach the DHT, ms. */
const PUT_TIMEOUT_MS = 30_000;
/**
 * Viewers that refresh a record in an hour, on average: enough that one of them remains after the broadcaster has gone.
 */
const HELPERS = 3;

/** What it works with. */
export interface RecordRefreshParts {
  readonly discovery: Pick<Discovery, "putImmutable" | "dhtPort">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Puts the records of watched broadcasts into the DHT, and renews them. */
export class RecordRefresh {
  readonly #parts: RecordRefreshParts;
  readonly #timers = new Map<LiveSwarm, Timer>();
  readonly #closing = new AbortController();

  constructor(parts: RecordRefreshParts) {
    this.#parts = parts;
  }

  /** Keeps the record of `swarm` in the DHT until `forget`. That of a private broadcast stays out of the DHT (BEP 27). */
  watch(swarm: LiveSwarm): void {
    if (swarm.metainfo.isPrivate || this.#parts.discovery.dhtPort === null) return;
    // A viewer has just found the record, so it is there. The first refresh falls anywhere in the hour.
    if (swarm.role === "source") this.#put(swarm);
    else this.#later(swarm, REFRESH_MS * this.#parts.random());
  }

  /** The swarm was left. */
  forget(swarm: LiveSwarm): void {
    this.#timers.get(swarm)?.cancel();
    this.#timers.delete(swarm);
  }

  close(): void {
    this.#closing.abort();
    for (const swarm of [...this.#timers.keys()]) this.forget(swarm);
  }

  #due(swarm: LiveSwarm): void {
    const chance = swarm.role === "source" ? 1 : HELPERS / swarm.estimatedMembers;
    if (this.#parts.random() < chance) this.#put(swarm);
    else this.#later(swarm, REFRESH_MS);
  }

  #later(swarm: LiveSwarm, delayMs: number): void {
    if (this.#closing.signal.aborted) return;
    this.#timers.get(swarm)?.cancel();
    this.#timers.set(swarm, this.#parts.clock.setTimeout(() => this.#due(swarm), delayMs));
  }

  #put(swarm: LiveSwarm): void {
    const { clock, discovery, log } = this.#parts;
    this.#later(swarm, REFRESH_MS);
    const late = deadline(clock, PUT_TIMEOUT_MS, this.#closing.signal);
    discovery.putImmutable(transportRecordOf(swarm.metainfo), late.signal)
      .catch((error) => {
        const fields = { infohash: swarm.metainfo.infohashHex, error: String(error) };
        log.log("debug", "a transport record was not stored in the DHT", fields);
        if (swarm.role === "source" && this.#timers.has(swarm)) this.#later(swarm, RETRY_MS);
      })
      .finally(() => late.cancel());
  }
}
