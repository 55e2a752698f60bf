/**
 * Which clients of an HTTP server send no more. Bun's sockets either close at once when the client closes its side, or do not
 * report it at all; so the kernel's table of connections is asked.
 */
import { readFile } from "node:fs/promises";
import process from "node:process";
import type { EndedSockets } from "../shared/http-connections.ts";

/** Only Linux has such a table; null elsewhere. */
export const endedSockets: EndedSockets | null = process.platform !== "linux" ? null : async (sockets) => {
  const open = new Set((await Promise.all(["tcp", "tcp6"].map(establishedPorts))).flat());
  return sockets.filter(({ localPort = 0, remotePort = 0 }) => !open.has(localPort * 65536 + remotePort));
};

/** The ports, as `local * 65536 + remote`, of all connections that both sides hold open. */
async function establishedPorts(family: string): Promise<number[]> {
  let table: string;
  try {
    table = await readFile(`/proc/self/net/${family}`, "latin1");
  } catch (error) {
    // A kernel without IPv6 has no such table. Without the other one nobody counts as gone.
    if (family === "tcp6") return [];
    throw error;
  }
  const rows = table.matchAll(/^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) 01 /gm);
  return [...rows].map(([, local, remote]) => parseInt(local + remote!, 16));
}
