/** The running swarms of an engine, of torrents and of broadcasts: each is shared by the leases on it, and kept for a while after the last. */
import { MillraceError } from "../errors.ts";
import type { Clock, Timer } from "../ports.ts";
import type { PeerLinkHandlers } from "../wire/types.ts";
import type { AddressBook } from "./neighbours/address-book.ts";
import type { Neighbour } from "./neighbours/neighbour.ts";
import type { Neighbourhood } from "./neighbours/neighbourhood.ts";

/** Swarms at once. Each costs connections, announces and memory; sessions share them. */
const MAX_SWARMS = 256;

/** Keeps a swarm running; when the last lease is released the swarm lingers, then closes. */
export interface Lease<Swarm> {
  /** Another one once `LeasedSwarms.merge` was called with it. */
  readonly swarm: Swarm;
  /** Ends this lease; calling it again does nothing. `atOnce`: the swarm does not linger. Default false. */
  release(options?: { readonly atOnce?: boolean }): void;
}

/** A swarm of any kind, as the others of its engine see it. */
export interface LeasedSwarm {
  /** 40 hex digits; two swarms never have the same. */
  readonly infohashHex: string;
  /** Another infohash of the same torrent (BEP 52). */
  readonly otherInfohashHex?: string | null;
  readonly peers: Pick<Neighbourhood<Neighbour & PeerLinkHandlers>, "admit" | "count" | "pump"> & {
    readonly book: Pick<AddressBook, "list">;
  };
  /** How long it is worth keeping after its last lease, ms, from 0 to `longestMs`. */
  lingerMs(longestMs: number): number;
  /** `reason`: why it ends before its time. */
  close(reason?: MillraceError): Promise<void>;
}

interface Entry {
  readonly swarm: LeasedSwarm;
  readonly left: () => void;
  leases: number;
  linger: Timer | null;
  /** That of the swarm that took this one over. */
  successor: Entry | null;
}

/** The table of running swarms. */
export class LeasedSwarms {
  readonly #clock: Clock;
  readonly #lingerMs: number;
  readonly #entries = new Map<string, Entry>();
  /** Swarms being closed. */
  readonly #closing = new Map<string, Promise<void>>();
  #isClosed = false;

  /** `lingerMs`: the longest that a swarm stays after its last lease. */
  constructor(clock: Clock, lingerMs: number) {
    this.#clock = clock;
    this.#lingerMs = lingerMs;
  }

  list(): readonly LeasedSwarm[] {
    return [...this.#entries.values()].map(({ swarm }) => swarm);
  }

  /** The swarm of an infohash, by either of its names. */
  get(infohashHex: string): LeasedSwarm | undefined {
    const entry = this.#entries.get(infohashHex);
    return entry === undefined ? this.list().find((swarm) => swarm.otherInfohashHex === infohashHex) : entry.swarm;
  }

  isLeased({ infohashHex }: LeasedSwarm): boolean {
    return (this.#entries.get(infohashHex)?.leases ?? 0) > 0;
  }

  /** Call it before making a swarm. Ends a lingering one if necessary; throws `too_busy` when all are in use, or `closed`. */
  makeRoom(): void {
    if (this.#isClosed) throw new MillraceError("closed", "the engine is closing");
    if (this.#entries.size < MAX_SWARMS) return;
    const idle = this.list().find((swarm) => !this.isLeased(swarm));
    if (idle === undefined) throw new MillraceError("too_busy", "too many torrents at once");
    void this.leave(idle);
  }

  /**
   * Adds a swarm. Another one of its infohash ends, whatever leases there are. `left` is called when this one is closing:
   * it is no longer in the table, and its figures are final.
   */
  add(swarm: LeasedSwarm, left: () => void): void {
    const before = this.get(swarm.infohashHex);
    if (before !== undefined) void this.leave(before);
    this.#entries.set(swarm.infohashHex, { swarm, left, leases: 0, linger: null, successor: null });
  }

  /**
   * Takes a lease on a swarm of the table. `released` is called when it ends, with the number of those that remain on the
   * swarm.
   */
  lease<S extends LeasedSwarm>(swarm: S, released: (remaining: number, swarm: S) => void = () => {}): Lease<S> {
    let held = this.#entries.get(swarm.infohashHex)!;
    held.leases++;
    held.linger?.cancel();
    const current = () => {
      while (held.successor !== null) held = held.successor;
      return held;
    };
    let isReleased = false;
    const release: Lease<S>["release"] = ({ atOnce = false } = {}) => {
      if (isReleased) return;
      isReleased = true;
      const entry = current();
      const own = entry.swarm as S;
      released(--entry.leases, own);
      if (entry.leases > 0 || this.get(own.infohashHex) !== own) return;
      const lingerMs = atOnce ? 0 : own.lingerMs(this.#lingerMs);
      if (lingerMs === 0) void this.leave(own);
      else entry.linger = this.#clock.setTimeout(() => void this.leave(own), lingerMs);
    };
    return {
      get swarm() {
        return current().swarm as S;
      },
      release,
    };
  }

  /** `swarm` is the same torrent as `into`, of its kind: its leases are leases of that one from now on, and it closes. */
  merge(swarm: LeasedSwarm, into: LeasedSwarm): Promise<void> {
    const [entry, successor] = [swarm, into].map(({ infohashHex }) => this.#entries.get(infohashHex)!);
    entry!.successor = successor!;
    successor!.leases += entry!.leases;
    if (entry!.leases > 0) successor!.linger?.cancel();
    return this.leave(swarm);
  }

  /**
   * Closes a swarm, whatever leases there are; resolves when it is closed. `reason`: the message for those who use it,
   * instead of "closed".
   */
  leave(swarm: LeasedSwarm, reason?: MillraceError): Promise<void> {
    const { infohashHex } = swarm;
    const entry = this.#entries.get(infohashHex);
    if (entry?.swarm !== swarm) return this.closed(infohashHex);
    this.#entries.delete(infohashHex);
    entry.linger?.cancel();
    entry.left();
    // Others of that infohash may be closing, too: it was joined and left again while they were.
    const before = this.#closing.get(infohashHex);
    const job = Promise.all([before, swarm.close(reason)]).then(() => {}).finally(() => {
      if (this.#closing.get(infohashHex) === job) this.#closing.delete(infohashHex);
    });
    this.#closing.set(infohashHex, job);
    for (const other of this.list()) other.peers.pump();
    return job;
  }

  /** Resolves when the swarms of that infohash that were left are closed; at once when none is closing. */
  async closed(infohashHex: string): Promise<void> {
    await this.#closing.get(infohashHex);
  }

  /** Leaves every swarm; resolves when all are closed. None is added any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const swarm of this.list()) void this.leave(swarm);
    await Promise.all(this.#closing.values());
  }
}
