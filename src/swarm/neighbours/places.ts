/** Shares places fairly: when all are taken, the networks with the most unproven holders give way. */
import { networkOf } from "../../discovery/addresses.ts";

/** The holder of a place. */
export interface Holder {
  readonly host: string;
  /** True once it finished its handshake, exchanged payload or otherwise showed that it is worth its place. */
  readonly isProven: boolean;
}

/**
 * Picks the holder that gives way to a newcomer: the first unproven one of the network with the most unproven holders
 * (see `networkOf`), if the newcomer's network would still have fewer. Null when none has to. Once proven, twenty
 * viewers that share a router are as good as twenty elsewhere.
 */
export function displacedBy<T extends Holder>(holders: Iterable<T>, newcomer: string): T | null {
  const networks = new Map<string, { first: T; count: number }>();
  for (const holder of holders) {
    if (holder.isProven) continue;
    const key = networkOf(holder.host);
    const network = networks.get(key);
    if (network === undefined) networks.set(key, { first: holder, count: 1 });
    else network.count++;
  }
  let largest: { first: T; count: number } | null = null;
  for (const network of networks.values()) if (network.count > (largest?.count ?? 0)) largest = network;
  const own = networks.get(networkOf(newcomer))?.count ?? 0;
  return largest !== null && own + 1 < largest.count ? largest.first : null;
}
