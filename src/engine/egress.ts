/** The ways out of an engine: which part reaches the network through the proxy. */
import { describeProxy, parseProxy } from "../bytes/proxy-url.ts";
import type { EgressFacts } from "../playback/stat.ts";
import type { Ports, ProxyServer } from "../ports.ts";
import { boundPorts } from "../egress/bound-ports.ts";
import { InterfaceWatch } from "../egress/interface-watch.ts";
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
  /** The interface that all is bound to; null: the system chooses. Close it. */
  readonly watch: InterfaceWatch | null;
}

/** Chooses the ways. Throws `config` for a malformed proxy. */
export function createEgress<P extends Ports>(
  machine: P,
  { proxy: text = null, proxyFor = "all", interface: name = null }: Pick<
    EngineOptions,
    "proxy" | "proxyFor" | "interface"
  >,
): Egress<P> {
  const proxied = text === null ? null : { proxy: parseProxy(text), health: new ProxyHealth(machine.log) };
  const watch = name === null ? null : new InterfaceWatch(machine, name);
  const bound = (direct: "local" | "nothing") => watch === null ? machine : boundPorts(machine, watch, direct);
  const [ports, swarmPorts] = [bound("local"), bound("nothing")];
  const ways = { localPorts: machine, proxied, watch };
  if (proxied === null) return { ...ways, ports, swarmPorts };
  const { proxy, health } = proxied;
  if (proxy.kind === "http") health.udpFails(new Error("a proxy of HTTP passes no UDP on"));
  const { tcp, udp, clock } = swarmPorts;
  return {
    ...ways,
    ports: proxyFor === "all" ? proxiedPorts(ports, { ...proxied, direct: "local" }) : ports,
    swarmPorts: proxiedPorts(swarmPorts, {
      ...proxied,
      direct: "nothing",
      ...(proxy.kind === "socks5" && { udp: proxiedUdp({ tcp, udp, clock, proxy, health }) }),
    }),
  };
}

/** What `stat` says of the ways. */
export function egressFacts({ proxied, watch }: Pick<Egress<Ports>, "proxied" | "watch">): EgressFacts {
  return {
    proxy: proxied && {
      server: describeProxy(proxied.proxy),
      trouble: proxied.health.trouble,
      udpTrouble: proxied.health.udpTrouble,
    },
    interface: watch && { name: watch.name, trouble: watch.trouble },
  };
}
