/** Places that few hosts must not fill: when all are taken, those who hold the most and have shown the least give way. */
import { networkOf } from "../discovery/addresses.ts";

/** Who holds a place. */
export interface Holder {
  readonly host: string;
  /** It shook hands, or exchanged payload: whatever shows that it is worth its place. */
  readonly isProven: boolean;
}

/**
 * Who gives way to a newcomer: the first unproven holder of the network that has the most of them (see `networkOf`), as long
 * as the newcomer's network stays behind that one. Null when nobody has to: twenty viewers behind one router are as good as
 * twenty elsewhere, once they are proven.
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
