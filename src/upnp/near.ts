/** Which machines are in the networks of this one. */
import ipaddr from "ipaddr.js";
import type { InterfaceAddress, NetworkPort } from "../ports.ts";

/** This machine's addresses in IPv4 networks with other machines. */
export function localNetworks(network: Pick<NetworkPort, "interfaces">): InterfaceAddress[] {
  return network.interfaces().filter(({ family, loopback }) => family === 4 && !loopback);
}

/** Whether `sender` is in one of these networks: a datagram from elsewhere only guessed the port. */
export function isNear(sender: string, networks: readonly InterfaceAddress[]): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(sender)) return false;
  const address = ipaddr.IPv4.parse(sender);
  return networks.some(({ host, prefixLength }) => address.match(ipaddr.IPv4.parse(host), prefixLength));
}

/** One form for each address: an IPv4 address that an IPv6 socket shows as its own kind is IPv4. */
export function plainHost(host: string): string {
  return ipaddr.isValid(host) ? ipaddr.process(host).toString() : host;
}
