/** The leecher of `download.ts`: TORRENT DIRECTORY HOST:PORT disk|ram. Prints one line of JSON when everything is stored. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createDiskCache } from "../../src/storage/disk-cache.ts";
import { createRamCache } from "../../src/storage/ram-cache.ts";
import { createSwarmManager } from "../../src/swarm/manager.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { createPeerId } from "../../src/wire/mod.ts";

const [torrent, directory, address, kind] = process.argv.slice(2) as [string, string, string, string];
const ports = await loadPorts({ log: { level: "warn" } });
const metainfo = await parseTransportFile(new Uint8Array(readFileSync(torrent)));
const { clock, files, log } = ports;
const cache = kind === "ram"
  ? createRamCache({ limitBytes: 0, clock })
  : await createDiskCache({ files, directory, clock, log });
const manager = await createSwarmManager(ports, { cache, peerId: createPeerId(), peerPort: null });
const cpuBefore = process.cpuUsage();
const startedMs = performance.now();
const { swarm } = manager.acquire({ metainfo });
const [host, port] = address.split(":") as [string, string];
swarm.addPeer({ host, port: Number(port) });
let peak = 0;
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().rss);
}, 50);
const forever = new AbortController().signal;
await swarm.metadata(forever);
swarm.setDownloadAll(true);
await swarm.completed(forever);
await manager.close();
await cache.close();
const seconds = (performance.now() - startedMs) / 1000;
const cpu = process.cpuUsage(cpuBefore);
clearInterval(watch);
console.log(JSON.stringify({ seconds, cpuSeconds: (cpu.user + cpu.system) / 1e6, peakMB: peak / 1e6 }));
