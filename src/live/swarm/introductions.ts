/**
 * Brings together neighbours that nobody can dial, as the member between them (BEP 55 calls it the relay). It finds out
 * at which UDP address each of two is seen, and notifies both at the same moment.
 */
import { deadline } from "../../bytes/deadline.ts";
import { leadTo } from "../../bytes/guarded-clock.ts";
import type { Clock, SocketAddress } from "../../ports.ts";
import { hostKey } from "../../swarm/neighbours/address.ts";
import type { Reach } from "../../swarm/neighbours/reachability.ts";
import { newToken, type UtpEndpoint } from "../../utp/utp-endpoint.ts";
import { encodePunchMessage } from "../punch-messages.ts";
import type { LivePeerSession } from "./live-session.ts";

/** Introductions under way at once. */
const MAX_RUNNING = 16;
/**
 * A neighbour's datagram must arrive within this, ms, time for the third of three included; otherwise the introduction
 * is over.
 */
const PROBE_TIMEOUT_MS = 2_000;
/** A neighbour whose datagram did not arrive this often has no UDP, and is no longer introduced. */
const MAX_UNSEEN = 2;
/** After this many introductions without any datagram our own port receives none. No more are tried for a while. */
const DEAF_AFTER = 4;
const DEAF_MS = 10 * 60_000;

/** The swarm whose members are introduced (`LivePeers`). */
export interface IntroducingSwarm {
  readonly clock: Clock;
  readonly utp: Pick<UtpEndpoint, "expect">;
  /** UDP port at which others reach this member. Rejects when there is none. */
  utpPort(): Promise<number>;
  /** Whether others can connect to this member. */
  reach(): Reach;
}

interface Seeker {
  /** Neighbours that it was brought together with. */
  readonly met: Set<LivePeerSession>;
  isBusy: boolean;
  unseen: number;
}

/** The introductions of one swarm. */
export class Introductions {
  readonly #swarm: IntroducingSwarm;
  readonly #seekers = new Map<LivePeerSession, Seeker>();
  readonly #ending = new AbortController();
  #running = 0;
  #silent = 0;
  #deafUntilMs = -Infinity;

  constructor(swarm: IntroducingSwarm) {
    this.#swarm = swarm;
  }

  /** A neighbour wants to meet others, or has enough of them. */
  sought(session: LivePeerSession, isWanted: boolean): void {
    if (!isWanted) this.#seekers.delete(session);
    else if (!this.#seekers.has(session)) this.#seekers.set(session, { met: new Set(), isBusy: false, unseen: 0 });
  }

  /** A connection ended. */
  left(session: LivePeerSession): void {
    this.#seekers.delete(session);
    for (const { met } of this.#seekers.values()) met.delete(session);
  }

  /** Begins introductions that are possible. Call it when somebody seeks, and about every second. */
  arrange(): void {
    if (this.#swarm.reach() === "closed" || this.#swarm.clock.monotonic() < this.#deafUntilMs) return;
    const free = [...this.#seekers].filter(([, { isBusy, unseen }]) => !isBusy && unseen < MAX_UNSEEN);
    // Members that met the fewest come first.
    free.sort(([, a], [, b]) => a.met.size - b.met.size);
    for (const [a, seekerA] of free) {
      if (this.#running >= MAX_RUNNING) return;
      if (seekerA.isBusy) continue;
      const match = free.find(([b, { isBusy }]) => {
        return b !== a && !isBusy && !seekerA.met.has(b) && hostOf(a) !== hostOf(b);
      });
      if (match !== undefined) leadTo(this.#swarm.clock, this.#introduce([a, seekerA], match));
    }
  }

  close(): void {
    this.#ending.abort();
    this.#seekers.clear();
  }

  async #introduce(...pair: [LivePeerSession, Seeker][]): Promise<void> {
    const [[a, seekerA], [b, seekerB]] = pair as [[LivePeerSession, Seeker], [LivePeerSession, Seeker]];
    seekerA.isBusy = seekerB.isBusy = true;
    this.#running++;
    const limit = deadline(this.#swarm.clock, PROBE_TIMEOUT_MS, this.#ending.signal);
    try {
      const port = await this.#swarm.utpPort().catch(() => null);
      if (port === null) return void (this.#deafUntilMs = this.#swarm.clock.monotonic() + DEAF_MS);
      const [seenA, seenB] = await Promise.all([a, b].map((session) => this.#probe(session, port, limit.signal)));
      this.#judge([[seekerA, seenA!], [seekerB, seenB!]]);
      if (seenA == null || seenB == null || !a.isReady || !b.isReady) return;
      seekerA.met.add(b);
      seekerB.met.add(a);
      const token = newToken();
      const tell = (session: LivePeerSession, other: LivePeerSession, address: SocketAddress, isInitiator: boolean) => {
        const { peerId } = other.info!;
        session.link!.sendLive(encodePunchMessage({ type: "punch", token, isInitiator, peerId, address }));
      };
      tell(a, b, seenB, true);
      tell(b, a, seenA, false);
    } finally {
      limit.cancel();
      this.#running--;
      seekerA.isBusy = seekerB.isBusy = false;
    }
  }

  /**
   * The address from which the neighbour's datagrams come; null when none comes. They must come from the host of its
   * connection, so that it can name no other.
   */
  async #probe(session: LivePeerSession, port: number, signal: AbortSignal): Promise<SocketAddress | null> {
    const { utp } = this.#swarm;
    const token = newToken();
    let stop: (() => void) | null = null;
    try {
      return await new Promise<SocketAddress | null>((resolve) => {
        stop = utp.expect(token, (from) => {
          if (hostKey(from.host) === hostOf(session)) resolve({ host: hostKey(from.host), port: from.port });
        });
        if (stop === null || signal.aborted || !session.isReady) return resolve(null);
        signal.addEventListener("abort", () => resolve(null), { once: true });
        session.link!.sendLive(encodePunchMessage({ type: "probe", token, port }));
      });
    } finally {
      (stop as (() => void) | null)?.();
    }
  }

  #judge(results: readonly [Seeker, SocketAddress | null][]): void {
    const isSeen = results.some(([, seen]) => seen !== null);
    this.#silent = isSeen ? 0 : this.#silent + 1;
    if (this.#silent >= DEAF_AFTER) {
      this.#silent = 0;
      this.#deafUntilMs = this.#swarm.clock.monotonic() + DEAF_MS;
    }
    // When neither sent anything, the fault may be ours.
    if (isSeen) { for (const [seeker, seen] of results) seeker.unseen = seen === null ? seeker.unseen + 1 : 0; }
  }
}

function hostOf(session: LivePeerSession): string {
  return hostKey(session.link!.remote.host);
}
