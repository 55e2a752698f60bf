/** The address at which peers reach us. */
import type { UdpPort } from "../ports.ts";

/** Every address of the machine, of both families. */
const BOTH = "::";

/** Every IPv4 address. */
const IPV4 = "0.0.0.0";

/** How the engine reaches others, as far as this decides where it listens. */
export interface PeerHostChoice {
  /** Address that the user names; null: none. */
  readonly named: string | null;
  /** Whether neither a proxy nor one interface alone was chosen. */
  readonly isFree: boolean;
}

/**
 * Returns the address that the user names. Without one it is `::`, where peers arrive over IPv4 and IPv6; or `0.0.0.0` on a
 * machine without IPv6, and where an interface or a proxy was chosen: an interface has one address for UDP, most often of
 * IPv4, and a proxy lets nobody in.
 */
export async function peerHostFor({ named, isFree }: PeerHostChoice, udp: UdpPort): Promise<string> {
  return named ?? (isFree && await opensIpv6(udp) ? BOTH : IPV4);
}

/** Binds a port for a moment: the list of interfaces does not say whether sockets of IPv6 may be opened. */
async function opensIpv6(udp: UdpPort): Promise<boolean> {
  try {
    (await udp.bind({ host: BOTH })).close();
    return true;
  } catch {
    return false;
  }
}
