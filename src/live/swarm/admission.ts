/**
 * Keeps one network from surrounding a peer (eclipse): half of the places are for other networks, and some for peers
 * that we chose ourselves.
 */

import { subnetOf } from "../node/neighbour/subnet.ts";

/**
 * Share of the places that neighbours of one IPv4 /24 or IPv6 /48 can take. A household, a campus or a carrier's NAT is one
 * subnet, and its members are each other's best neighbours; an attacker who surrounds us from one gets no more than this.
 */
const SUBNET_SHARE = 0.5;
/** Neighbours of one subnet that we dial: half of those we look for, so that the others come from other networks. */
const SUBNET_DIALS = 10;
/** Places that only connections opened by us can take. */
export const OUTGOING_PEERS = 4;

/** Counts neighbours by subnet and direction. */
export class PeerAdmission {
  readonly #limit: number;
  readonly #subnetLimit: number;
  readonly #subnets = new Map<string, number>();
  readonly #dialled = new Map<string, number>();
  #incoming = 0;
  #total = 0;

  /** `limit`: neighbours in all, more than four. */
  constructor(limit: number) {
    this.#limit = limit;
    this.#subnetLimit = Math.max(2, Math.floor(SUBNET_SHARE * limit));
  }

  /** Neighbours that we chose. */
  get outgoing(): number {
    return this.#total - this.#incoming;
  }

  /** Places left for incoming connections, ignoring subnets. */
  get incomingRoom(): number {
    return Math.min(this.#limit - this.#total, this.#limit - OUTGOING_PEERS - this.#incoming);
  }

  /** A subnet that has room for fewer than `places` further neighbours, and that room; null when each has more. */
  crowdedSubnet(places: number): { readonly subnet: string; readonly room: number } | null {
    for (const [subnet, count] of this.#subnets) {
      const room = this.#subnetLimit - count;
      if (room < places) return { subnet, room };
    }
    return null;
  }

  /** Whether the host is in this subnet. */
  isOf(host: string, subnet: string): boolean {
    return subnetOf(host) === subnet;
  }

  /** True when there is a place for a neighbour. */
  allows(host: string, incoming: boolean): boolean {
    const subnet = subnetOf(host);
    if (this.#total >= this.#limit || at(this.#subnets, subnet) >= this.#subnetLimit) return false;
    return incoming ? this.incomingRoom > 0 : at(this.#dialled, subnet) < SUBNET_DIALS;
  }

  /** Takes a place for a neighbour; false when there is none for it. */
  take(host: string, incoming: boolean): boolean {
    if (!this.allows(host, incoming)) return false;
    this.#count(host, incoming, 1);
    return true;
  }

  /** Returns the place of a neighbour that `take` let in. */
  release(host: string, incoming: boolean): void {
    this.#count(host, incoming, -1);
  }

  #count(host: string, incoming: boolean, change: 1 | -1): void {
    const subnet = subnetOf(host);
    add(this.#subnets, subnet, change);
    if (incoming) this.#incoming += change;
    else add(this.#dialled, subnet, change);
    this.#total += change;
  }
}

/** Neighbours of `subnet`; those of this machine and its local network are not counted. */
function at(counts: ReadonlyMap<string, number>, subnet: string | null): number {
  return subnet === null ? 0 : counts.get(subnet) ?? 0;
}

function add(counts: Map<string, number>, subnet: string | null, change: 1 | -1): void {
  if (subnet === null) return;
  const count = at(counts, subnet) + change;
  if (count > 0) counts.set(subnet, count);
  else counts.delete(subnet);
}
