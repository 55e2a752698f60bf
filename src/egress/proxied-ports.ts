/** The machine's ports with a proxy in between: whoever has them reaches nothing beside it. */
import { describeProxy } from "../bytes/proxy-url.ts";
import { canonicalHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { FetchOptions, NetworkPort, Ports, ProxyServer, UdpPort } from "../ports.ts";
import { isProxyFault } from "./handshake.ts";
import { isLocalAddress } from "./local-address.ts";
import { connectProxied } from "./proxied-tcp.ts";
import type { ProxyHealth } from "./proxy-health.ts";

/** What is sent through a proxy. */
export interface ProxiedOptions {
  readonly proxy: ProxyServer;
  readonly health: ProxyHealth;
  /**
   * "nothing": all goes through the proxy, whatever the address. "local": HTTP to literal addresses of this machine and of
   * private networks is sent directly.
   */
  readonly direct: "nothing" | "local";
  /** Datagrams; default: none can be sent. */
  readonly udp?: UdpPort;
}

/** `ports` through a proxy: TCP that is dialled, HTTP, datagrams. Listening and files are untouched. */
export function proxiedPorts<P extends Ports>(ports: P, options: ProxiedOptions): P {
  const { proxy, health } = options;
  const parts = { tcp: ports.tcp, clock: ports.clock, proxy, health };
  const isDirect = (host: string) => options.direct === "local" && isLocalAddress(host, ports.network);
  const { fetch } = ports;
  return {
    ...ports,
    tcp: {
      connect: (target, { signal }) => connectProxied(parts, target, signal),
      listen: (at, onConnection) => ports.tcp.listen(at, onConnection),
    },
    udp: options.udp ?? noUdp(proxy),
    // It would open sockets of its own.
    pages: null,
    network: remoteNames(ports.network),
    httpClient: {
      open: (request) =>
        isDirect(request.address)
          ? ports.httpClient.open(request)
          : watched(health, ports.httpClient.open({ ...request, proxy })),
    },
    fetch: (input: Parameters<typeof globalThis.fetch>[0], init: FetchOptions = {}) => {
      const host = new URL(input instanceof Request ? input.url : String(input)).hostname.replace(/^\[|\]$/g, "");
      if (isDirect(host)) return fetch(input, init);
      return watched(health, fetch(input, { ...init, proxy } as FetchOptions));
    },
  };
}

/** `answer`, from which `health` learns. */
async function watched<T>(health: ProxyHealth, answer: Promise<T>): Promise<T> {
  try {
    const answered = await answer;
    health.works();
    return answered;
  } catch (error) {
    if (isProxyFault(error)) health.fails(error as MillraceError);
    throw error;
  }
}

/** Sockets for datagrams that do not open: nothing may go beside the proxy. */
export function noUdp(proxy: ProxyServer): UdpPort {
  const refused = new MillraceError("unavailable", `the proxy ${describeProxy(proxy)} passes no UDP on`);
  return { bind: () => Promise.reject(refused) };
}

/** The network, with names that nobody looks up here. */
function remoteNames(network: NetworkPort): NetworkPort {
  return {
    interfaces: () => network.interfaces(),
    hostName: () => network.hostName?.() ?? "",
    gateways: (family) => network.gateways?.(family) ?? Promise.resolve([]),
    namesAreRemote: true,
    resolve(host) {
      if (canonicalHost(host) !== null) return Promise.resolve([host]);
      if (/(?:^|\.)localhost\.?$/i.test(host)) return Promise.resolve(["127.0.0.1", "::1"]);
      return Promise.reject(
        new MillraceError("unavailable", `${host} is not looked up here: only the proxy may know that it is wanted`),
      );
    },
  };
}
