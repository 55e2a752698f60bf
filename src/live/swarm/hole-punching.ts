/**
 * How a member that nobody can dial meets others like it: it asks open neighbours to introduce it, shows them its UDP address,
 * and connects over uTP at the moment that they name.
 */
import { deadline } from "../../bytes/deadline.ts";
import { leadTo } from "../../bytes/guarded-clock.ts";
import type { Clock, TcpConnection, Timer } from "../../ports.ts";
import { hostKey } from "../../swarm/neighbours/address.ts";
import type { SwarmDialRule } from "../../swarm/neighbours/dial-rule.ts";
import type { Reach } from "../../swarm/neighbours/reachability.ts";
import type { UtpEndpoint } from "../../utp/utp-endpoint.ts";
import { encodePunchMessage, type PunchMessage } from "../punch-messages.ts";
import type { LivePeerSession } from "./live-session.ts";

/** A member with this many neighbours looks for no more. It would find more, but each costs control messages. */
const ENOUGH_NEIGHBOURS = 12;
/** When the token is shown to an introducer, ms after its PROBE: two of three may be lost. */
const SHOW_AT_MS = [0, 300, 900];
/** A PUNCH follows its PROBE within this, ms. */
const PROBE_VALID_MS = 5_000;
/** Attempts at once, and the time for each, ms. */
const MAX_ATTEMPTS = 4;
const ATTEMPT_MS = 4_000;
/** PROBEs that one neighbour may send: this many at once, then one per second. */
const PROBE_BURST = 4;
const PROBE_INTERVAL_MS = 1_000;
/**
 * This many failures in a row mean a NAT that can't be punched (one port per destination). Then none is tried for this
 * long, ms.
 */
const FUTILE_AFTER = 6;
const FUTILE_MS = 10 * 60_000;

/** The swarm whose member punches holes (`LivePeers`). */
export interface PunchingSwarm {
  readonly clock: Clock;
  readonly utp: Pick<UtpEndpoint, "show" | "punch">;
  /** Decides where datagrams may go. */
  readonly rule: Pick<SwarmDialRule, "allows">;
  /** Connections, those being made included. */
  readonly count: number;
  /** Whether others can connect to this member. */
  reach(): Reach;
  /** Whether there is room for this member, and it is not a neighbour yet. */
  wants(host: string, peerId: Uint8Array): boolean;
  /** A connection is open. It must be `open`ed in the same turn. */
  met(connection: TcpConnection, isInitiator: boolean): void;
}

interface Introducer {
  /** Whether the neighbour knows that we seek. */
  isAsked: boolean;
  credit: number;
  creditMs: number;
  /** PROBEs whose PUNCH may come, as the time of each. */
  readonly probedMs: number[];
}

/** Hole punching of one swarm. */
export class HolePunching {
  readonly #swarm: PunchingSwarm;
  readonly #introducers = new Map<LivePeerSession, Introducer>();
  readonly #timers = new Set<Timer>();
  readonly #ending = new AbortController();
  #attempts = 0;
  #failures = 0;
  #futileUntilMs = -Infinity;

  constructor(swarm: PunchingSwarm) {
    this.#swarm = swarm;
  }

  /** A member joined. */
  joined(session: LivePeerSession): void {
    const creditMs = this.#swarm.clock.monotonic();
    this.#introducers.set(session, { isAsked: false, credit: PROBE_BURST, creditMs, probedMs: [] });
    this.seek();
  }

  /** A connection ended. */
  left(session: LivePeerSession): void {
    this.#introducers.delete(session);
  }

  /** Announces to open neighbours whether others are wanted. Call it about every second. */
  seek(): void {
    const swarm = this.#swarm;
    const isWanted = swarm.reach() !== "open" && swarm.count < ENOUGH_NEIGHBOURS &&
      swarm.clock.monotonic() >= this.#futileUntilMs;
    for (const [session, introducer] of this.#introducers) {
      if (introducer.isAsked === isWanted || (isWanted && session.reach !== "open")) continue;
      introducer.isAsked = isWanted;
      session.link?.sendLive(encodePunchMessage({ type: "seek", isWanted }));
    }
  }

  /** An introducer says something. Messages that were not asked for are ignored. */
  message(session: LivePeerSession, message: PunchMessage): void {
    const introducer = this.#introducers.get(session);
    if (introducer === undefined) return;
    if (message.type === "probe") this.#show(session, introducer, message.token, message.port);
    else if (message.type === "punch") leadTo(this.#swarm.clock, this.#punch(session, introducer, message));
  }

  close(): void {
    this.#ending.abort();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#introducers.clear();
  }

  #show(session: LivePeerSession, introducer: Introducer, token: Uint8Array, port: number): void {
    const { clock, rule, utp } = this.#swarm;
    const nowMs = clock.monotonic();
    const address = { host: hostKey(session.link!.remote.host), port };
    const earnedMs = nowMs - introducer.creditMs;
    introducer.credit = Math.min(PROBE_BURST, introducer.credit + earnedMs / PROBE_INTERVAL_MS);
    introducer.creditMs = nowMs;
    if (!introducer.isAsked || introducer.credit < 1 || !rule.allows(address, "pex", address.host)) return;
    introducer.credit--;
    introducer.probedMs.push(nowMs);
    if (introducer.probedMs.length > PROBE_BURST) introducer.probedMs.shift();
    for (const delayMs of SHOW_AT_MS) {
      const timer = clock.setTimeout(() => {
        this.#timers.delete(timer);
        utp.show(token, address).catch(() => {}); // without UDP there is nothing to show
      }, delayMs);
      this.#timers.add(timer);
    }
  }

  async #punch(
    session: LivePeerSession,
    introducer: Introducer,
    { token, isInitiator, peerId, address }: Extract<PunchMessage, { type: "punch" }>,
  ): Promise<void> {
    const { clock, rule, utp } = this.#swarm;
    const probedMs = introducer.probedMs.shift();
    if (probedMs === undefined || clock.monotonic() - probedMs > PROBE_VALID_MS) return;
    if (this.#attempts >= MAX_ATTEMPTS || !rule.allows(address, "pex", session.host)) return;
    if (!this.#swarm.wants(address.host, peerId)) return;
    this.#attempts++;
    const limit = deadline(clock, ATTEMPT_MS, this.#ending.signal);
    try {
      const connection = await utp.punch({ token, isInitiator, address, signal: limit.signal });
      this.#failures = 0;
      if (this.#ending.signal.aborted) connection.abort();
      else this.#swarm.met(connection, isInitiator);
    } catch {
      if (++this.#failures >= FUTILE_AFTER) {
        this.#failures = 0;
        this.#futileUntilMs = clock.monotonic() + FUTILE_MS;
      }
    } finally {
      limit.cancel();
      this.#attempts--;
    }
  }
}
