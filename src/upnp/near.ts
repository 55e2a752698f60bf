/** Which machines are in the networks of this one. */
import ipaddr from "ipaddr.js";
import type { InterfaceAddress, NetworkPort } from "../ports.ts";

/** Prefix of a network of IPv6 with other machines; with a longer one, an address stands alone. */
const MOST_PREFIX_BITS = 64;

/** This machine's addresses in IPv4 networks with other machines. */
export function localNetworks(network: Pick<NetworkPort, "interfaces">): InterfaceAddress[] {
  return network.interfaces().filter(({ family, loopback }) => family === 4 && !loopback);
}

/**
 * An IPv6 address of this machine in the network of each interface, a public one if there is one. Addresses of one link don't
 * count: a URL can't name their interface.
 */
export function localNetworks6(network: Pick<NetworkPort, "interfaces">): InterfaceAddress[] {
  const usable = network.interfaces().filter(({ family, loopback, prefixLength, host }) =>
    family === 6 && !loopback && prefixLength <= MOST_PREFIX_BITS && rangeOf(host) !== "linkLocal"
  );
  const isPublic = ({ host }: InterfaceAddress) => Number(rangeOf(host) === "unicast");
  const byName = Map.groupBy(usable, ({ name }) => name);
  return [...byName.values()].map((own) => own.sort((a, b) => isPublic(b) - isPublic(a))[0]!);
}

/** Whether `sender` is in one of these networks: a datagram from elsewhere only guessed the port. */
export function isNear(sender: string, networks: readonly InterfaceAddress[]): boolean {
  const [host, zone] = sender.split("%", 2);
  if (!ipaddr.isValid(host!) || (!host!.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(host!))) return false;
  const address = ipaddr.parse(host!);
  const isOfLink = address.range() === "linkLocal" && address.kind() === "ipv6";
  return networks.some((own) => {
    const ours = ipaddr.parse(own.host);
    if (address.kind() !== ours.kind()) return false;
    // Deno names no interface.
    return isOfLink ? zone === undefined || zone === own.name : address.match(ours, own.prefixLength);
  });
}

/** One form for each address: an IPv4 address that an IPv6 socket shows as its own kind is IPv4. */
export function plainHost(host: string): string {
  return ipaddr.isValid(host) ? ipaddr.process(host).toString() : host;
}

/** An address as URLs have it, and as `URL.hostname` gives it. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function rangeOf(host: string): string {
  return ipaddr.parse(host).range();
}
