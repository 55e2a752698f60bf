/**
 * Hole punching between the peers of a torrent (BEP 55). A peer that cannot be dialled may be behind a NAT, and so may we: then a
 * neighbour of both has the two dial each other by uTP at the same moment, which opens both NATs.
 */
import { Allowance } from "../../bytes/allowance.ts";
import type { SocketAddress } from "../../ports.ts";
import { HOLE_PUNCH, HOLE_PUNCH_ERROR, type HolePunchMessage } from "../../wire/hole-punch.ts";
import { addressKey } from "./address.ts";
import type { KnownAddress } from "./address-book.ts";
import type { Neighbour } from "./neighbour.ts";

/** Addresses for which we remember who named them; the oldest gives way. */
const MAX_NAMED = 500;

/** Peers that are brought together, and that we dial because a neighbour says so: per second, and at once. */
const MEETINGS_PER_S = 1;
const MEETINGS_AT_ONCE = 20;

/** An address is asked for again after this at the earliest, ms. */
const ASK_AGAIN_MS = 60_000;

/** The swarm (`Peers`). */
export interface MeetingSwarm {
  now(): number;
  members(): Iterable<Neighbour>;
  /** Dials a peer that dials us now, if `introducer` may name it. */
  meet(address: SocketAddress, introducer: Neighbour): void;
}

/** The neighbour that named an address, and when we asked it to bring us together. */
interface Named {
  readonly by: Neighbour;
  askedMs: number;
}

/** The meetings of one swarm, in all three parts: who asks, who is asked for, and who brings them together. */
export class Rendezvous {
  readonly #swarm: MeetingSwarm;
  readonly #named = new Map<string, Named>();
  readonly #meetings: Allowance;

  constructor(swarm: MeetingSwarm) {
    this.#swarm = swarm;
    this.#meetings = new Allowance(MEETINGS_PER_S, MEETINGS_AT_ONCE, swarm.now());
  }

  /** A neighbour named a peer (BEP 11), so it may be a neighbour of both. */
  named(by: Neighbour, address: SocketAddress): void {
    if (!offers(by)) return;
    const key = addressKey(address);
    const askedMs = this.#named.get(key)?.askedMs ?? -Infinity;
    this.#named.delete(key);
    if (this.#named.size >= MAX_NAMED) this.#named.delete(this.#named.keys().next().value!);
    this.#named.set(key, { by, askedMs });
  }

  /** A dial failed. */
  unreached({ key, address }: Pick<KnownAddress, "key" | "address">): void {
    const named = this.#named.get(key);
    const nowMs = this.#swarm.now();
    if (named === undefined || !named.by.isReady || nowMs - named.askedMs < ASK_AGAIN_MS) return;
    named.askedMs = nowMs;
    send(named.by, "rendezvous", address);
  }

  /** A message of a neighbour. */
  message(from: Neighbour, { type, address }: HolePunchMessage): void {
    if (type === "error" || !this.#meetings.take(1, () => this.#swarm.now())) return;
    if (type === "connect") return this.#swarm.meet(address, from);
    const wanted = [...this.#swarm.members()].find((member) => isAt(member, address));
    if (wanted === undefined) send(from, "error", address, HOLE_PUNCH_ERROR.notConnected);
    else if (wanted === from) send(from, "error", address, HOLE_PUNCH_ERROR.noSelf);
    else if (!offers(wanted)) send(from, "error", address, HOLE_PUNCH_ERROR.noSupport);
    else {
      send(wanted, "connect", from.link!.remote);
      send(from, "connect", wanted.link!.remote);
    }
  }
}

function offers(neighbour: Neighbour): boolean {
  return neighbour.extensions?.extensions.includes(HOLE_PUNCH) ?? false;
}

function isAt({ link, address }: Neighbour, wanted: SocketAddress): boolean {
  const key = addressKey(wanted);
  return address?.key === key || (link !== null && addressKey(link.remote) === key);
}

function send(to: Neighbour, type: HolePunchMessage["type"], address: SocketAddress, error: number = 0): void {
  to.link?.sendHolePunch({ type, address, error });
}
