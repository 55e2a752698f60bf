/** Determines how near an address is to this machine. The nearer it is, the fewer callers may make the engine connect to it. */
import ipaddr from "ipaddr.js";
import type { InterfaceAddress, NetworkPort } from "../ports.ts";
import { canonicalHost, embeddedIpv4, isPublicHost } from "./addresses.ts";
import { ExternalAddresses } from "./external-addresses.ts";

/**
 * `own`: this machine, by loopback or any of its addresses, including public ones and its router's. `private`: not
 * reachable from the public network. `neighbour`: a public address in a subnet of this machine, where hosts may trust
 * each other. `public`: the rest.
 */
export type Nearness = "own" | "private" | "neighbour" | "public";

/**
 * How long the list of interfaces is cached, ms: one tracker reply needs it for 500 addresses, and reading it takes 0.1
 * ms.
 */
const INTERFACES_LIFE_MS = 2_000;

/** Networks that belong to one household, campus or carrier more often than not. */
const HOUSEHOLD_BITS = { ipv4: 24, ipv6: 48 } as const;

/** Returns how near `host` is to a machine with these `interfaces`; null when it is not a literal address. */
export function nearnessOf(host: string, interfaces: readonly InterfaceAddress[]): Nearness | null {
  const literal = canonicalHost(host);
  if (literal === null) return null;
  const address = ipaddr.parse(literal);
  const range = address.range();
  // On Linux, connecting to the unspecified address reaches this machine.
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

/** Judges how near addresses are to the machine with its present interfaces. */
export class NetworkSurroundings {
  /** Addresses of the router in front of this machine, as strangers report them. */
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

  /** As `nearnessOf`; external addresses count as this machine's, since the router sends connections to them back inside. */
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

  /**
   * True when the host is in our own network: on this machine, in a subnet of it, at a private address, or public in the /24
   * (/48) of the address under which strangers see us.
   */
  isNear(host: string): boolean {
    const nearness = this.nearness(host);
    if (nearness !== "public") return nearness !== null;
    const address = ipaddr.parse(canonicalHost(host)!);
    return this.external.believed.some((own) => {
      const base = ipaddr.parse(own);
      return base.kind() === address.kind() && isWithin(address, base, HOUSEHOLD_BITS[base.kind()]);
    });
  }
}

/** True when the address lies in the subnet. A point-to-point link has a full-length prefix or none: neither is a subnet. */
function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, base: ipaddr.IPv4 | ipaddr.IPv6, prefixLength: number): boolean {
  if (prefixLength < 1) return false;
  return address instanceof ipaddr.IPv4
    ? address.match(base as ipaddr.IPv4, prefixLength)
    : address.match(base as ipaddr.IPv6, prefixLength);
}
