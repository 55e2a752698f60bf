/** How the members of a simulated broadcast find one another: by a tracker, and by what their neighbours tell. */
import type { EventWheel } from "./event-wheel.ts";
import { connect, punch, SET_UP_TRIPS, type SimHost } from "./live-network.ts";
import { oneWayMs } from "./regions.ts";

/** Neighbours that a member looks for, and most that it has; the source has as many as in `LivePeers`. */
export const NEIGHBOURS = 20;
const MAX_LINKS = 30;
export const SOURCE_LINKS = 80;
/** How long a dial in vain keeps others from being tried, and how long a member gathers news of newcomers, ms. */
const DOUBTFUL_MS = 1200;
const GATHER_MS = 100;
/** Neighbours with which a member seeks no further introductions; one takes so many one-way trips: PROBE, token, PUNCH, and uTP's handshake. */
const ENOUGH_NEIGHBOURS = 12;
const PUNCH_TRIPS = 5;

/** What a meeting needs of the run. */
export interface MeetingHost {
  readonly queue: EventWheel;
  readonly random: () => number;
  readonly source: SimHost;
  viewers(): readonly { readonly host: SimHost }[];
  /** The source is gone. */
  isAway(): boolean;
  /** Least and most one-way latency of a connection between members that live in no region, ms. */
  readonly latencyMs: readonly [number, number];
  /** There are members that nobody can connect to. */
  readonly hasClosed: boolean;
  /** Most connections of the source. */
  readonly sourceLinks: number;
}

/** The ways of one run. */
export class Meeting {
  readonly #run: MeetingHost;

  constructor(run: MeetingHost) {
    this.#run = run;
  }

  /** A one-way latency for a new connection between `a` and `b`, ms. */
  latencyMs({ options: { region: from } }: SimHost, { options: { region: to } }: SimHost): number {
    const { latencyMs: [least, most], random } = this.#run;
    if (from !== undefined && to !== undefined) return oneWayMs(from, to, random);
    return least + (most - least) * random();
  }

  /**
   * Finds neighbours as a tracker would: at random. Those that nobody can connect to are dialled in vain for a while. Liars
   * dial the source first: that is where they do most harm.
   */
  meet(host: SimHost): void {
    const { queue, random, source } = this.#run;
    const viewers = this.#run.viewers();
    const isAway = this.#run.isAway();
    if (host.options.liar !== undefined && !isAway && this.#hasRoom(source)) {
      connect(queue, host, source, this.latencyMs(host, source));
    }
    for (let tries = 0; tries < 3 * NEIGHBOURS && host.links.size + host.dialing < NEIGHBOURS; tries++) {
      const pick = Math.floor(random() * (viewers.length + 1));
      const other = pick === viewers.length ? source : viewers[pick]!.host;
      if (other === host || host.links.has(other) || (other === source && isAway)) continue;
      if (other.options.isClosed === true) {
        host.dialing++;
        queue.after(DOUBTFUL_MS, () => host.dialing--);
      } else this.#dial(host, other);
    }
  }

  /** True when `host` takes another connection, be it in the place of one of no use. */
  #hasRoom(host: SimHost): boolean {
    return host.links.size < (host === this.#run.source ? this.#run.sourceLinks : MAX_LINKS) || host.makeRoom();
  }

  #dial(host: SimHost, other: SimHost): void {
    if (!this.#hasRoom(other)) return;
    const latencyMs = this.latencyMs(host, other);
    if (!connect(this.#run.queue, host, other, latencyMs)) return;
    if (host.options.isPunchable === true) this.#introduce(host, other, latencyMs);
    if (host.options.isClosed === true) return;
    if (this.#run.hasClosed) this.#tell(host, other, latencyMs);
  }

  /** `by` brings a newcomer together with one after the other of its neighbours that nobody can connect to either. */
  #introduce(newcomer: SimHost, by: SimHost, latencyMs: number): void {
    const { queue } = this.#run;
    let delayMs = SET_UP_TRIPS * latencyMs + GATHER_MS;
    for (const [neighbour, link] of [...by.links].reverse()) {
      if (neighbour === newcomer || neighbour.options.isPunchable !== true) continue;
      delayMs += PUNCH_TRIPS * Math.max(latencyMs, link.latencyMs);
      queue.after(delayMs, () => {
        const seeks = [newcomer, neighbour].every((host) => host.alive && host.links.size < ENOUGH_NEIGHBOURS);
        if (seeks) punch(queue, newcomer, neighbour, this.latencyMs(newcomer, neighbour));
      });
    }
  }

  /** `by` tells those of its neighbours that nobody can connect to of a newcomer, and they dial it: PEERS. */
  #tell(newcomer: SimHost, by: SimHost, latencyMs: number): void {
    for (const [neighbour, link] of by.links) {
      if (neighbour.options.isClosed !== true) continue;
      this.#run.queue.after(SET_UP_TRIPS * latencyMs + GATHER_MS + link.latencyMs, () => {
        if (newcomer.alive && neighbour.links.size < NEIGHBOURS) this.#dial(neighbour, newcomer);
      });
    }
  }
}
