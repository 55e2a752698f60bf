/** A process that plays, closes its engine and must then end by itself: `<magnet> <state dir>`. */
import { startSession } from "../support.ts";
import { serveEngine } from "../../support/engine.ts";

const [magnet = "", directory = ""] = process.argv.slice(2);
const served = await serveEngine({
  stateDir: `${directory}/state`,
  cache: "disk",
  cacheDir: `${directory}/cache`,
  dht: true,
  dhtBootstrap: ["127.0.0.1:9"],
  lsd: true,
});
const started = await startSession(served, "getfile", { magnet, pid: "child" });
await (await fetch(started.playback_url)).arrayBuffer();
const left = await fetch(started.playback_url);
await left.body?.cancel();
await served.close();
console.log("closed");
