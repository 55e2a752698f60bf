/** What a router is asked for, and what it gives. */

/** A port of ours that others should reach. */
export interface PortToMap {
  readonly protocol: "tcp" | "udp";
  /** Our port, 1–65535; asked for outside as well. */
  readonly port: number;
}

/** A port that a router passes on to us. */
export interface MappedPort {
  readonly externalPort: number;
  /** The router's address outside, canonical; null where it does not say. */
  readonly externalHost: string | null;
  /** How long it holds, ms; Infinity: until it is removed. */
  readonly lifetimeMs: number;
}

/** By which protocol a router was asked. */
export type MappingProtocol = "PCP" | "NAT-PMP" | "UPnP";

/** A router that maps ports. */
export interface Gateway {
  readonly protocol: MappingProtocol;
  readonly host: string;
  /** Asks for a port, or renews it. Rejects with `unavailable` when it refuses, `timeout`, or the signal's reason. */
  map(wanted: PortToMap, signal: AbortSignal): Promise<MappedPort>;
  /** Gives a port back. Rejects as `map`. */
  unmap(wanted: PortToMap, mapped: MappedPort, signal: AbortSignal): Promise<void>;
}

/** How long a port is asked for: a machine that vanishes leaves it open no longer, s. RFC 6886 (3.3) recommends two hours. */
export const LIFETIME_S = 7200;
