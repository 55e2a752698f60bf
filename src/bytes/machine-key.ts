/** One key for all addresses of a machine, for limits per machine. */
import ipaddr from "ipaddr.js";

/** Longest key for text that is not an address, characters. */
const MAX_CHARS = 64;

/** A machine with IPv6 has a whole /64 of addresses (RFC 4291 section 2.5.1): they share one key. */
export function machineKey(host: string): string {
  if (!ipaddr.isValid(host)) return host.slice(0, MAX_CHARS);
  const address = ipaddr.process(host);
  return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(":") : address.toString();
}
