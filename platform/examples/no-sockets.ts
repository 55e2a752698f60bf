/**
 * Plays a torrent without TCP and UDP, as on an edge platform: the data comes from the torrent's web seeds, by `fetch`.
 * `node platform/examples/no-sockets.ts film.torrent > film.ts`
 */
import { readFile } from "node:fs/promises";
import process from "node:process";
import { pipeline } from "node:stream/promises";
import { loadPorts } from "../detect.ts";
import { createEngine, MillraceError } from "../../src/mod.ts";

/** Keeps the example on this machine. Without these the engine finds peers by itself. */
const QUIET = { dht: false, lsd: false, portMapping: false, playerDiscovery: false, peerPort: 0 };

const [torrentFile] = process.argv.slice(2);
if (torrentFile === undefined) throw new Error("usage: no-sockets.ts FILE.torrent");

const none = (): Promise<never> => Promise.reject(new MillraceError("unavailable", "this platform has no sockets"));
const ports = {
  ...await loadPorts({ log: { level: "error" } }),
  tcp: { connect: none, listen: none },
  udp: { bind: none },
};
const engine = await createEngine(ports, QUIET);

// No server: requests go to the engine directly, as from this machine.
const start = new Request("http://localhost/engine/getstream?format=json", {
  method: "POST",
  body: await readFile(torrentFile),
});
const { response, error } = await (await engine.fetch(start)).json();
if (error !== null) throw new Error(error);
const film = await engine.fetch(new Request(response.playback_url));
await pipeline(film.body!, process.stdout);
await engine.close();
