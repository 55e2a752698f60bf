/** How near an address is to this machine. The nearer it is, the fewer may make the engine connect to it. */
import ipaddr from "ipaddr.js";
import type { InterfaceAddress, NetworkPort } from "../ports.ts";
import { canonicalHost, embeddedIpv4, isPublicHost } from "./addresses.ts";
import { ExternalAddresses } from "./external-addresses.ts";

/**
 * `own`: this machine, by loopback or by any of its addresses, public ones and those of its router included. `private`: not reachable from the public
 * network. `neighbour`: a public address in a subnet of this machine, which may trust what lies in it. `public`: the rest.
 */
export type Nearness = "own" | "private" | "neighbour" | "public";

/** How long the list of interfaces is believed, ms: one tracker's answer asks for 500 addresses, and reading it takes 0.1 ms. */
const INTERFACES_LIFE_MS = 2_000;

/** How near `host` is to a machine with these `interfaces`; null when it is not a literal address. */
export function nearnessOf(host: string, interfaces: readonly InterfaceAddress[]): Nearness | null {
  const literal = canonicalHost(host);
  if (literal === null) return null;
  const address = ipaddr.parse(literal);
  const range = address.range();
  // Linux connects to itself at the unspecified address.
  if (range === "loopback" || range === "unspecified") return "own";
  const inside = embeddedIpv4(literal);
  if (inside !== null && nearnessOf(inside, interfaces) === "own") return "own";
  let inSubnet = false;
  for (const own of interfaces) {
    const ownLiteral = canonicalHost(own.host);
    if (ownLiteral === null) continue;
    if (ownLiteral === literal) return "own";
    const base = ipaddr.parse(ownLiteral);
    if (base.kind() === address.kind() && isWithin(address, base, own.prefixLength)) inSubnet = true;
  }
  if (!isPublicHost(literal)) return "private";
  return inSubnet ? "neighbour" : "public";
}

/** Tells how near addresses are to the machine as it is connected now. */
export class Surroundings {
  /** Addresses of the router that this machine stands behind, as strangers report them. */
  readonly external = new ExternalAddresses();
  readonly #network: Pick<NetworkPort, "interfaces">;
  readonly #nowMs: () => number;
  #interfaces: readonly InterfaceAddress[] = [];
  #readMs = -Infinity;

  /** `nowMs`: monotonic. */
  constructor(network: Pick<NetworkPort, "interfaces">, nowMs: () => number) {
    this.#network = network;
    this.#nowMs = nowMs;
  }

  /** As `nearnessOf`; the external addresses are this machine's own, since the router sends connections to them back inside. */
  nearness(host: string): Nearness | null {
    const literal = canonicalHost(host);
    if (literal === null) return null;
    if (this.external.has(literal) || this.external.has(embeddedIpv4(literal) ?? "")) return "own";
    const nowMs = this.#nowMs();
    if (nowMs - this.#readMs >= INTERFACES_LIFE_MS) {
      this.#interfaces = this.#network.interfaces();
      this.#readMs = nowMs;
    }
    return nearnessOf(literal, this.#interfaces);
  }
}

/** An interface of a point-to-point link has a prefix of the full length, or none at all: neither is a subnet. */
function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, base: ipaddr.IPv4 | ipaddr.IPv6, prefixLength: number): boolean {
  if (prefixLength < 1) return false;
  return address instanceof ipaddr.IPv4
    ? address.match(base as ipaddr.IPv4, prefixLength)
    : address.match(base as ipaddr.IPv6, prefixLength);
}
