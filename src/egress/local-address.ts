/** Which addresses are reached directly, whatever the way of the rest. */
import ipaddr from "ipaddr.js";
import { canonicalHost } from "../discovery/addresses.ts";
import type { NetworkPort } from "../ports.ts";

/** Ranges (as ipaddr.js names them) that are this machine or its local network, whoever asks. */
const LOCAL_RANGES: ReadonlySet<string> = new Set(["loopback", "private", "linkLocal", "uniqueLocal"]);

/** Whether a literal address is of this machine or a private network. Addresses that gateways translate are not. */
export function isLocalAddress(host: string, network: Pick<NetworkPort, "interfaces">): boolean {
  const literal = canonicalHost(host);
  if (literal === null) return false;
  if (LOCAL_RANGES.has(ipaddr.parse(literal).range())) return true;
  return network.interfaces().some((own) => canonicalHost(own.host) === literal);
}
