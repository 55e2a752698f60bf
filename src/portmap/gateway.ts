/** Types shared by the protocols: what a router is asked for, and what it grants. */

/** A port of ours that others should reach. */
export interface PortToMap {
  readonly protocol: "tcp" | "udp";
  /** Our port, 1–65535; the same number is requested outside. */
  readonly port: number;
}

/** A port that a router passes on to us. */
export interface MappedPort {
  readonly externalPort: number;
  /** The router's external address, canonical; null when it does not report it. */
  readonly externalHost: string | null;
  /** Lifetime of the mapping, ms; Infinity: until it is removed. */
  readonly lifetimeMs: number;
}

/** Protocol by which a router maps ports. */
export type MappingProtocol = "PCP" | "NAT-PMP" | "UPnP";

/** A router that maps ports. */
export interface Gateway {
  readonly protocol: MappingProtocol;
  readonly host: string;
  /** Maps a port, or renews its mapping. Rejects with `unavailable` when the router refuses, `timeout`, or the signal's reason. */
  map(wanted: PortToMap, signal: AbortSignal): Promise<MappedPort>;
  /** Removes a mapping. Rejects as `map`. */
  unmap(wanted: PortToMap, mapped: MappedPort, signal: AbortSignal): Promise<void>;
}

/** Requested lifetime of a mapping, s: the port of a machine that vanishes stays open no longer. RFC 6886 (3.3) recommends two hours. */
export const LIFETIME_S = 7200;

/** A mapping is renewed after half its lifetime (RFC 6887 section 11.2.1), but within these bounds, ms: routers forget mappings when they restart. */
const LEAST_RENEWAL_MS = 60_000;
const MOST_RENEWAL_MS = 15 * 60_000;

/** When to renew mappings, the first of which ends in `lifetimeMs`, ms from now. */
export function renewalMs(lifetimeMs: number): number {
  return Math.min(MOST_RENEWAL_MS, Math.max(LEAST_RENEWAL_MS, lifetimeMs / 2));
}

/** Pause before routers are asked again after a failure, ms: the machine may have moved. */
export const RETRY_MS = 10 * 60_000;

/** Mappings are given back within this when the engine ends, ms. */
export const CLOSE_MS = 1500;
