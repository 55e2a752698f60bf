/** What the machine knows of its network, from node:os and node:dns. */
import dns from "node:dns";
import net from "node:net";
import os from "node:os";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { InterfaceAddress, NetworkPort } from "../../src/ports.ts";

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

  resolve(host, { signal }) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      if (net.isIP(host) !== 0) return resolve([host]);
      const abort = () => reject(abortError(signal));
      signal.addEventListener("abort", abort, { once: true });
      dns.lookup(host, { all: true, order: "verbatim" }, (cause, addresses) => {
        signal.removeEventListener("abort", abort);
        if (!cause && addresses.length > 0) return resolve(addresses.map(({ address }) => address));
        reject(new MillraceError("not_found", `no address is known for ${host}`, { cause }));
      });
    });
  },
};
