/**
 * A seeder for any leecher, to measure uploads: TORRENT DIRECTORY. Prints its port, seeds until stdin ends, then prints
 * one line of JSON.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createSeedCache } from "../../src/storage/seed-cache.ts";
import { createSwarmManager } from "../../src/swarm/manager.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { createPeerId } from "../../src/wire/mod.ts";

const [torrent, directory] = process.argv.slice(2) as [string, string];
const ports = await loadPorts({ log: { level: "warn" } });
const metainfo = await parseTransportFile(new Uint8Array(readFileSync(torrent)));
const { clock, files, log } = ports;
const cache = createSeedCache({ files, directory, clock, log });
const manager = await createSwarmManager(ports, { cache, peerId: createPeerId(), peerHost: "127.0.0.1" });
const { swarm } = manager.acquire({ metainfo });
const forever = new AbortController().signal;
await swarm.completed(forever);
let peak = 0;
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().rss);
}, 50);
const cpuBefore = process.cpuUsage();
console.log(manager.peerAddress!.port);
await new Promise<void>((resolve) => process.stdin.on("end", resolve).resume());
const cpu = process.cpuUsage(cpuBefore);
clearInterval(watch);
const { uploadedBytes } = swarm.status();
await manager.close();
await cache.close();
console.log(JSON.stringify({ cpuSeconds: (cpu.user + cpu.system) / 1e6, peakMB: peak / 1e6, uploadedBytes }));
