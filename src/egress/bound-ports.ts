/** The machine's ports from one interface alone: whoever has them sends nothing by another. */
import { canonicalHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { FetchOptions, NetworkPort, Ports, ProxyServer, Route } from "../ports.ts";
import { boundTcp } from "./bound-tcp.ts";
import { boundUdp } from "./bound-udp.ts";
import type { InterfaceWatch } from "./interface-watch.ts";
import { isLocalAddress } from "./local-address.ts";

/** `ports` bound to the interface. `direct` as in `ProxiedOptions`. */
export function boundPorts<P extends Ports>(ports: P, watch: InterfaceWatch, direct: "nothing" | "local"): P {
  const network = boundNetwork(ports.network, watch);
  const isDirect = (host: string) => direct === "local" && isLocalAddress(host, ports.network);
  const { fetch } = ports;
  const addressOf = async (host: string, signal: AbortSignal): Promise<string> =>
    canonicalHost(host) !== null ? host : (await network.resolve(host, { signal }))[0]!;
  /** The way to `host`; with a proxy that to the proxy, whose name must not be looked up from elsewhere. */
  const routeTo = async (host: string, proxy: ProxyServer | undefined, signal: AbortSignal): Promise<Route> => {
    const first = await addressOf(proxy?.host ?? host, signal);
    return { ...(proxy && { proxy: { ...proxy, host: first } }), localAddress: watch.addressFor(first) };
  };
  return {
    ...ports,
    tcp: boundTcp({ tcp: ports.tcp, network, watch }),
    udp: boundUdp(ports.udp, watch),
    // It would open sockets of its own.
    pages: null,
    network,
    httpClient: {
      open: async (request) => {
        const isDirectly = request.proxy === undefined && isDirect(request.address);
        const route = isDirectly ? {} : await routeTo(request.address, request.proxy, request.signal);
        return await ports.httpClient.open({ ...request, ...route });
      },
    },
    fetch: async (input: Parameters<typeof globalThis.fetch>[0], init: FetchOptions = {}) => {
      const host = new URL(input instanceof Request ? input.url : String(input)).hostname.replace(/^\[|\]$/g, "");
      if (init.proxy === undefined && isDirect(host)) return await fetch(input, init);
      const signal = init.signal ?? new AbortController().signal;
      return await fetch(input, { ...init, ...await routeTo(host, init.proxy, signal) } as FetchOptions);
    },
  };
}

/** Lookups from the interface, of the addresses that can be reached from it. */
function boundNetwork(network: NetworkPort, watch: InterfaceWatch): NetworkPort {
  return {
    ...network,
    interfaces: () => network.interfaces(),
    async resolve(host, options) {
      const { ipv4, ipv6 } = watch.addresses();
      const localAddresses = [ipv4, ipv6].filter((address) => address !== null);
      if (localAddresses.length === 0) throw new MillraceError("unavailable", watch.trouble ?? "the interface is away");
      // A query under way is repeated after a while, by whatever way there is then.
      const ending = new AbortController();
      const stop = watch.onChange(() => ending.abort(new MillraceError("unavailable", "the interface has changed")));
      const signal = AbortSignal.any([options.signal, ending.signal]);
      const found = await network.resolve(host, { ...options, signal, localAddresses }).finally(stop);
      const usable = found.filter((address) => (address.includes(":") ? ipv6 : ipv4) !== null);
      if (usable.length === 0) {
        throw new MillraceError("not_found", `${host} has no address that the interface reaches`);
      }
      return usable;
    },
  };
}
