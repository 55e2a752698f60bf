/** Ports for discovery tests over node's modules, which all three runtimes have, with parts replaceable. */
import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { MillraceError } from "../../../src/errors.ts";
import type { FilePort, Logger, NetworkPort, UdpPort, UdpSocket } from "../../../src/ports.ts";
import type { DiscoveryPorts } from "../../../src/discovery/discovery.ts";

const silent: Logger = { log() {}, child: () => silent };

/** UDP over node:dgram. */
export const udp: UdpPort = {
  async bind(options) {
    const group = options.multicastGroup;
    const socket = createSocket({
      type: options.host?.includes(":") ? "udp6" : "udp4",
      reuseAddr: group !== undefined,
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("error", (error: Error & { code?: string }) => {
        const code = error.code === "EADDRINUSE" ? "conflict" : "unavailable";
        reject(new MillraceError(code, error.message, { cause: error }));
      });
      socket.bind(options.port ?? 0, options.host ?? "0.0.0.0", () => resolve());
    });
    socket.on("error", () => {});
    if (group !== undefined) {
      socket.addMembership(group, options.multicastInterface);
      if (options.multicastInterface !== undefined) socket.setMulticastInterface(options.multicastInterface);
      socket.setMulticastLoopback(true);
      socket.setMulticastTTL(1);
    }
    const { address, port } = socket.address();
    let open = true;
    const bound: UdpSocket = {
      address: { host: address, port },
      onMessage(handler) {
        socket.on("message", (data, from) => handler(new Uint8Array(data), { host: from.address, port: from.port }));
      },
      send(data, to) {
        return new Promise((resolve) => {
          if (!open) return resolve();
          socket.send(data, to.port, to.host, () => resolve());
        });
      },
      close() {
        if (open) socket.close();
        open = false;
      },
    };
    return bound;
  },
};

const network: Pick<NetworkPort, "interfaces" | "resolve"> = {
  interfaces: () => [],
  async resolve(host) {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  },
};

const files: Pick<FilePort, "readFile" | "writeFile"> = {
  async readFile(path) {
    try {
      return new Uint8Array(await readFile(path));
    } catch (error) {
      throw new MillraceError("not_found", `no ${path}`, { cause: error });
    }
  },
  async writeFile(path, data) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.tmp`, data);
    await rename(`${path}.tmp`, path);
  },
};

/** Real time. */
const clock: DiscoveryPorts["clock"] = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(fn, delayMs) {
    const timer = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Ports with `parts` in place of the real ones. */
export function testPorts(parts: Partial<DiscoveryPorts> = {}): DiscoveryPorts {
  return {
    clock,
    udp,
    files: files as FilePort,
    network: network as NetworkPort,
    fetch: (...args) => fetch(...args),
    log: silent,
    ...parts,
  };
}

/** Resolves when `condition` holds; rejects after `timeoutMs`. Polls every turn of a 5 ms timer, as no event tells it. */
export async function until(condition: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
