/** What the machine knows about its network, from node:os and its name servers. */
import fs from "node:fs/promises";
import os from "node:os";
import { canonicalHost } from "../../src/discovery/addresses.ts";
import type { InterfaceAddress, NetworkPort } from "../../src/ports.ts";
import { createResolver } from "./resolver.ts";

/** Linux lists its routes here; other systems have no such files, and Android does not show them. */
const LINUX_ROUTES = { 4: "/proc/net/route", 6: "/proc/net/ipv6_route" };

/** Routers of the default routes of IPv4: columns destination, gateway, …, mask; addresses in reverse byte order. */
export function gatewaysOf(routes: string): string[] {
  const found = routes.split("\n").flatMap((line) => {
    const [, destination, gateway = "", , , , , mask] = line.split(/\s+/);
    if (destination !== "00000000" || mask !== "00000000" || !/^[0-9A-F]{8}$/i.test(gateway)) return [];
    const bytes = gateway.match(/../g)!.reverse().map((pair) => parseInt(pair, 16));
    return bytes.every((byte) => byte === 0) ? [] : [bytes.join(".")];
  });
  return [...new Set(found)];
}

/**
 * Routers of the default routes of IPv6, with their interfaces: columns destination, prefix length, source, its length,
 * next hop, metric, two counters, flags, interface; addresses in 32 hexadecimal digits.
 */
export function ipv6GatewaysOf(routes: string): string[] {
  const found = routes.split("\n").flatMap((line) => {
    const [destination, length, , , nextHop = "", , , , , name] = line.trim().split(/\s+/);
    if (!/^0{32}$/.test(destination ?? "") || length !== "00" || !/^[0-9a-f]{32}$/i.test(nextHop)) return [];
    const host = canonicalHost(nextHop.match(/.{4}/g)!.join(":"));
    return host === null || host === "::" || name === undefined ? [] : [`${host}%${name}`];
  });
  return [...new Set(found)];
}

/** The network of this machine. */
export const network: NetworkPort = {
  interfaces() {
    const found: InterfaceAddress[] = [];
    for (const [name, addresses] of Object.entries(os.networkInterfaces())) {
      for (const { address, family, cidr, internal } of addresses ?? []) {
        const isV4 = String(family).endsWith("4");
        const prefixLength = cidr === null ? (isV4 ? 32 : 128) : Number(cidr.slice(cidr.indexOf("/") + 1));
        found.push({ name, host: address, prefixLength, family: isV4 ? 4 : 6, loopback: internal });
      }
    }
    return found;
  },

  hostName() {
    try {
      return os.hostname();
    } catch {
      // Deno needs a permission for it.
      return "";
    }
  },

  async gateways(family) {
    try {
      const routes = await fs.readFile(LINUX_ROUTES[family], "utf8");
      return family === 4 ? gatewaysOf(routes) : ipv6GatewaysOf(routes);
    } catch {
      return [];
    }
  },

  resolve: createResolver(),
};
