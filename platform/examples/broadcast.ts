/**
 * Broadcasts a file over and over: `node platform/examples/broadcast.ts talk.ts`. Everyone who has the magnet link, or the content id where
 * the DHT connects, plays it in any engine.
 */
import path from "node:path";
import process from "node:process";
import { Readable } from "node:stream";
import { loadPorts } from "../detect.ts";
import { createEngine, openSource } from "../../src/mod.ts";

/** Keeps the example on this machine. Without these the engine finds peers by itself. */
const QUIET = { dht: false, lsd: false, portMapping: false, playerDiscovery: false, peerPort: 0 };

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: broadcast.ts FILE");

const ports = await loadPorts();
const engine = await createEngine(ports, QUIET);
const ending = new AbortController();
const source = await openSource(ports, file, {
  once: false,
  stdin: () => Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
  resolvePath: (name) => path.resolve(name),
  signal: ending.signal,
});
const broadcast = await engine.broadcast({
  input: source.input,
  name: path.basename(file),
  // With a directory the broadcast keeps its id from one start to the next.
  directory: null,
  ...(source.bytesPerS === null ? {} : { bytesPerS: Math.round(source.bytesPerS) }),
  signal: ending.signal,
});
// The peers' address lets viewers connect without the DHT and without trackers.
console.log(`broadcasting ${broadcast.magnet}&x.pe=127.0.0.1:${engine.peerAddress?.port}`);

process.once("SIGTERM", async () => {
  ending.abort();
  await broadcast.close();
  await engine.close();
});
