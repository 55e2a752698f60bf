/** The addresses under which strangers see this machine when it is behind a router. */
import ipaddr from "ipaddr.js";
import { canonicalHost, isPublicHost } from "./addresses.ts";

/**
 * Networks that must report the same address before it is believed: one liar, or a host with two addresses, is not
 * enough.
 */
const WITNESSES = 3;
/** Reported addresses that are remembered; a router has one or two, liars may report more. */
const MAX_REPORTED = 16;
/** Bits of a reporter's address that count: addresses that share them may well belong to one party. */
const WITNESS_BITS = { ipv4: 16, ipv6: 32 } as const;

/** Collects what others report: peers, for the whole engine; nodes of the DHT, for its ids alone. */
export class ExternalAddresses {
  /** By reported address, the networks of its reporters. Least recently reported first. */
  readonly #reports = new Map<string, Set<string>>();

  /** True when `host`, in the form of `canonicalHost`, is believed to be ours. */
  has(host: string): boolean {
    return (this.#reports.get(host)?.size ?? 0) >= WITNESSES;
  }

  /** Addresses believed to be ours. */
  get believed(): readonly string[] {
    return [...this.#reports.keys()].filter((host) => this.has(host));
  }

  /**
   * Notes that `reporter`, a literal address, sees us as `host`. Believed once reporters of three networks said so.
   * Only public addresses count on either side: inside a network, others see us by another address.
   */
  report(host: string, reporter: string): void {
    if (!isPublicHost(host) || !isPublicHost(reporter)) return;
    const key = canonicalHost(host)!;
    const witnesses = this.#reports.get(key) ?? new Set();
    // Reported again: it moves to the end, so that it is remembered longer than the others.
    this.#reports.delete(key);
    this.#reports.set(key, witnesses);
    if (witnesses.size < WITNESSES) witnesses.add(networkOf(reporter));
    if (this.#reports.size <= MAX_REPORTED) return;
    const [first] = [...this.#reports].find(([, { size }]) => size < WITNESSES) ?? [...this.#reports][0]!;
    this.#reports.delete(first);
  }
}

function networkOf(reporter: string): string {
  const address = ipaddr.parse(canonicalHost(reporter)!);
  return address.toByteArray().slice(0, WITNESS_BITS[address.kind()] / 8).join(".");
}
