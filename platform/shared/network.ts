/** What the machine knows about its network, from node:os and its name servers. */
import fs from "node:fs/promises";
import os from "node:os";
import type { InterfaceAddress, NetworkPort } from "../../src/ports.ts";
import { createResolver } from "./resolver.ts";

/** Linux lists its IPv4 routes here; other systems have no such file, and Android does not show it. */
const LINUX_ROUTES = "/proc/net/route";

/** Routers of the default routes in `LINUX_ROUTES`: columns destination, gateway, …, mask; addresses in reverse byte order. */
export function gatewaysOf(routes: string): string[] {
  const found = routes.split("\n").flatMap((line) => {
    const [, destination, gateway = "", , , , , mask] = line.split(/\s+/);
    if (destination !== "00000000" || mask !== "00000000" || !/^[0-9A-F]{8}$/i.test(gateway)) return [];
    const bytes = gateway.match(/../g)!.reverse().map((pair) => parseInt(pair, 16));
    return bytes.every((byte) => byte === 0) ? [] : [bytes.join(".")];
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

  async gateways() {
    try {
      return gatewaysOf(await fs.readFile(LINUX_ROUTES, "utf8"));
    } catch {
      return [];
    }
  },

  resolve: createResolver(),
};
