/**
 * Which members of one live swarm can be connected to. Members find that out about themselves with each other's help.
 * Members behind NAT hear at once of newcomers that they can dial, since no newcomer can dial them. They are also
 * brought together with each other.
 */
import { deadline } from "../../bytes/deadline.ts";
import { leadTo } from "../../bytes/guarded-clock.ts";
import type { SocketAddress, Timer } from "../../ports.ts";
import { hostKey } from "../../swarm/neighbours/address.ts";
import type { SwarmContext } from "../../swarm/context.ts";
import type { Reach } from "../../swarm/neighbours/reachability.ts";
import type { UtpEndpoint } from "../../utp/utp-endpoint.ts";
import { encodeReachMessage, MAX_TOLD_PEERS, type ReachMessage } from "../reach-messages.ts";
import type { PunchMessage } from "../punch-messages.ts";
import { subnetOf } from "../node/neighbour/subnet.ts";
import { HolePunching, type PunchingSwarm } from "./hole-punching.ts";
import { type IntroducingSwarm, Introductions } from "./introductions.ts";
import type { LivePeerSession } from "./live-session.ts";

/** Time from a newcomer's arrival to the report about it, ms: others may come with it. */
const GATHER_MS = 100;
/**
 * At most one PEERS per second to one member, and from one member; from a member this many may come at once after a
 * pause.
 */
const TELL_INTERVAL_MS = 1_000;
const TOLD_BURST = 4;
/** Addresses remembered as reported to one member; beyond that they may be reported again. */
const MAX_REMEMBERED = 256;
/** Connections that we open at once to help others; and the time for each, ms. */
const MAX_HELPED = 4;
const HELP_TIMEOUT_MS = 3_000;

/** The swarm whose members help each other (`LivePeers`). */
export interface ReachSwarm extends PunchingSwarm, IntroducingSwarm {
  readonly utp: UtpEndpoint;
  /** False in private swarms (BEP 27), and where peers are not exchanged: then no member hears of others. */
  readonly tellsPeers: boolean;
  /** The member at `source` says that a member can be connected to there. */
  learnReachable(address: SocketAddress, source: string): void;
}

interface Partner {
  readonly told: Set<string>;
  toldMs: number;
  /** Messages that it may send now, and the monotonic ms at which that was computed. */
  credit: number;
  creditMs: number;
  /** The neighbour has asked for help once. */
  helped: boolean;
}

/** The exchange of one swarm. */
export class ReachExchange {
  readonly #context: SwarmContext;
  readonly #swarm: ReachSwarm;
  readonly #partners = new Map<LivePeerSession, Partner>();
  readonly #ending = new AbortController();
  #timer: Timer | null = null;
  #own: Reach;
  #helping = 0;
  readonly #introductions: Introductions;
  readonly #punching: HolePunching;

  constructor(context: SwarmContext, swarm: ReachSwarm) {
    this.#context = context;
    this.#swarm = swarm;
    this.#own = swarm.reach();
    this.#introductions = new Introductions(swarm);
    this.#punching = new HolePunching(swarm);
  }

  /** A member joined. */
  joined(session: LivePeerSession): void {
    const nowMs = this.#swarm.clock.monotonic();
    this.#partners.set(session, {
      told: new Set(),
      toldMs: -Infinity,
      credit: TOLD_BURST,
      creditMs: nowMs,
      helped: false,
    });
    if (this.#swarm.tellsPeers) this.#punching.joined(session);
    this.#gather();
  }

  /** A connection ended. */
  left(session: LivePeerSession): void {
    this.#partners.delete(session);
    this.#introductions.left(session);
    this.#punching.left(session);
  }

  /** A member says something. */
  message(session: LivePeerSession, message: ReachMessage | PunchMessage): void {
    const partner = this.#partners.get(session);
    if (partner === undefined) return;
    if (message.type === "reach") {
      // About members that we dialled ourselves we know better.
      if (session.incoming && message.state !== session.reach) {
        session.reach = message.state;
        this.#gather();
      }
      if (message.asks) leadTo(this.#swarm.clock, this.#help(session, partner));
    } else if (!this.#swarm.tellsPeers) return;
    else if (message.type === "seek") {
      this.#introductions.sought(session, message.isWanted);
      this.#gather();
    } else if (message.type !== "peers") this.#punching.message(session, message);
    else if (this.#mayTell(partner)) {
      for (const address of message.addresses) this.#swarm.learnReachable(address, session.host);
    }
  }

  /** Call it about every second. */
  round(): void {
    const state = this.#swarm.reach();
    if (state !== this.#own) {
      this.#own = state;
      for (const session of this.#partners.keys()) {
        session.link?.sendLive(encodeReachMessage({ type: "reach", state, asks: false }));
      }
    }
    if (state === "unknown") this.#askForHelp();
    this.#tell();
    if (!this.#swarm.tellsPeers) return;
    this.#introductions.arrange();
    this.#punching.seek();
  }

  close(): void {
    this.#timer?.cancel();
    this.#ending.abort();
    this.#introductions.close();
    this.#punching.close();
    this.#partners.clear();
  }

  #mayTell(partner: Partner): boolean {
    const nowMs = this.#swarm.clock.monotonic();
    partner.credit = Math.min(TOLD_BURST, partner.credit + (nowMs - partner.creditMs) / TELL_INTERVAL_MS);
    partner.creditMs = nowMs;
    if (partner.credit < 1) return false;
    partner.credit--;
    return true;
  }

  #gather(): void {
    this.#timer ??= this.#swarm.clock.setTimeout(() => {
      this.#timer = null;
      this.#tell();
      this.#introductions.arrange();
    }, GATHER_MS);
  }

  /** Reports members that can be connected to, the latest first, to all that may need them. */
  #tell(): void {
    if (!this.#swarm.tellsPeers) return;
    const nowMs = this.#swarm.clock.monotonic();
    const open = [...this.#partners.keys()].reverse().filter(({ reach, address }) =>
      reach === "open" && address !== null
    );
    for (const [session, partner] of this.#partners) {
      if (session.reach === "open" || nowMs - partner.toldMs < TELL_INTERVAL_MS) continue;
      const addresses: SocketAddress[] = [];
      for (const other of open) {
        const { key, address } = other.address!;
        if (other === session || partner.told.has(key) || addresses.length === MAX_TOLD_PEERS) continue;
        if (partner.told.size >= MAX_REMEMBERED) partner.told.clear();
        partner.told.add(key);
        addresses.push(address);
      }
      if (addresses.length === 0) continue;
      partner.toldMs = nowMs;
      session.link?.sendLive(encodeReachMessage({ type: "peers", addresses }));
    }
  }

  #askForHelp(): void {
    const { reachability } = this.#context;
    for (const session of this.#partners.keys()) {
      // An incoming connection has answered the question, unless it is from our own network.
      if (session.incoming) continue;
      const network = subnetOf(session.host) ?? hostKey(session.host);
      if (!reachability.wantsHelp(network, session.host)) continue;
      reachability.asked(network);
      session.link!.sendLive(encodeReachMessage({ type: "reach", state: "unknown", asks: true }));
    }
  }

  /**
   * Connects to the member that asks, at the address at which we see it, so that nobody can have us connect to others.
   */
  async #help(session: LivePeerSession, partner: Partner): Promise<void> {
    const port = session.extensions?.listenPort ?? null;
    const { ports, slots } = this.#context;
    if (partner.helped || port === null || this.#helping >= MAX_HELPED) return;
    const address = { host: hostKey(session.link!.remote.host), port };
    if (!this.#swarm.rule.allows(address, "incoming", null) || !slots.tryTake()) return;
    partner.helped = true;
    this.#helping++;
    const limit = deadline(ports.clock, HELP_TIMEOUT_MS, this.#ending.signal);
    try {
      (await ports.tcp.connect(address, { signal: limit.signal })).abort();
      session.reach = "open";
      this.#gather();
    } catch {
      // The member that asked sees that nobody came.
    } finally {
      limit.cancel();
      slots.release();
      this.#helping--;
    }
  }
}
