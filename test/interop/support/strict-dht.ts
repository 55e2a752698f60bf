/**
 * Our DHT node among libtorrent's that take only nodes whose ids fit their addresses (BEP 42), with public addresses in a
 * network of its own: `unshare -n deno run -A strict-dht.ts`. Exits with 0 when all of them know ours, over IPv4 and IPv6.
 */
import { execFileSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../../platform/detect.ts";
import { DhtNode } from "../../../src/discovery/dht-node.ts";
import { fitsAddress } from "../../../src/discovery/dht-node-id.ts";
import { MemoryFiles } from "../../storage/memory-files.ts";
import { start } from "../../support/process.ts";
import { CLIENT_TIMEOUT_MS } from "../peers/clients.ts";

const PEER_PY = fileURLToPath(new URL("../peers/libtorrent_peer.py", import.meta.url));
/** Nothing is sent there: each is an address of loopback here. Ours is the last. */
const NETWORKS = [
  ["52.9.0.1", "53.9.0.1", "54.9.0.1", "55.9.0.1"],
  ["2a02:26f7:77::1", "2a03:26f7:77::1", "2a04:26f7:77::1", "2a05:26f7:77::1"],
] as const;

const ip = (...args: readonly string[]) => execFileSync("ip", args, { stdio: "inherit" });
ip("link", "set", "lo", "up");
for (const host of NETWORKS.flat()) {
  ip("addr", "add", `${host}/${host.includes(":") ? 128 : 32}`, "dev", "lo", ...(host.includes(":") ? ["nodad"] : []));
}
const ports = await loadPorts();
for (const hosts of NETWORKS) {
  const own = hosts.at(-1)!;
  const others = hosts.slice(0, -1).map((host) => host.includes(":") ? `[${host}]` : host);
  const program = start("/usr/bin/python3", [PEER_PY, "strict-dht", ...others]);
  const [, listening] = await program.line(/^READY ([\d ]+)$/, CLIENT_TIMEOUT_MS);
  const bootstrap = listening!.split(" ").map((port, i) => `${others[i]}:${port}`);
  const files = new MemoryFiles(ports.clock);
  const node = await DhtNode.open({ ...ports, files }, { host: own, bootstrap, statePath: "/dht.json" });
  await program.line(/^NODES 3 3 3$/, CLIENT_TIMEOUT_MS);
  await node.close();
  const { id, nodes } = JSON.parse(new TextDecoder().decode(await files.readFile("/dht.json")));
  assert(fitsAddress(Uint8Array.fromHex(id), own), `${id} of ${own}`);
  assertEquals(nodes.length, 3);
  await program.stop();
}
process.exit(0);
