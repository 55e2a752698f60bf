/** The ways out of an engine: which part reaches the network through the proxy. */
import { describeProxy, parseProxy } from "../bytes/proxy-url.ts";
import type { ProxyFacts } from "../playback/stat.ts";
import type { Ports, ProxyServer } from "../ports.ts";
import { proxiedPorts } from "../egress/proxied-ports.ts";
import { proxiedUdp } from "../egress/proxied-udp.ts";
import { ProxyHealth } from "../egress/proxy-health.ts";
import type { EngineOptions } from "./options.ts";

/** A proxy that is used. */
export interface Proxied {
  readonly proxy: ProxyServer;
  readonly health: ProxyHealth;
}

/** The machine's ports for each part of an engine. */
export interface Egress<P extends Ports> {
  /** For what callers name: lists, guides, transport files, channels. */
  readonly ports: P;
  /** For peers, trackers and web seeds: with a proxy nothing goes beside it, whatever the address. */
  readonly swarmPorts: P;
  /** For players and televisions of the local network: never through a proxy. */
  readonly localPorts: P;
  /** Null: there is no proxy. */
  readonly proxied: Proxied | null;
}

/** Chooses the ways. Throws `config` for a malformed proxy. */
export function createEgress<P extends Ports>(
  machine: P,
  { proxy: text = null, proxyFor = "all" }: Pick<EngineOptions, "proxy" | "proxyFor">,
): Egress<P> {
  if (text === null) return { ports: machine, swarmPorts: machine, localPorts: machine, proxied: null };
  const proxy = parseProxy(text);
  const health = new ProxyHealth(machine.log);
  if (proxy.kind === "http") health.udpFails(new Error("a proxy of HTTP passes no UDP on"));
  const through = { proxy, health };
  return {
    ports: proxyFor === "all" ? proxiedPorts(machine, { ...through, direct: "local" }) : machine,
    swarmPorts: proxiedPorts(machine, {
      ...through,
      direct: "nothing",
      ...(proxy.kind === "socks5" && {
        udp: proxiedUdp({ tcp: machine.tcp, udp: machine.udp, clock: machine.clock, proxy, health }),
      }),
    }),
    localPorts: machine,
    proxied: through,
  };
}

/** What `stat` says of the proxy. */
export function proxyFacts({ proxy, health }: Proxied): ProxyFacts {
  return { server: describeProxy(proxy), trouble: health.trouble, udpTrouble: health.udpTrouble };
}
