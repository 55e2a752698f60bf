/** A process that reads a file through an engine until it is killed: `<cache dir> <limit> <magnet>`. */
import { startSession } from "../support.ts";
import { serveEngine } from "../../support/engine.ts";

const [cacheDir = "", limit = "0", magnet = ""] = process.argv.slice(2);
const served = await serveEngine({
  cache: "disk",
  cacheDir,
  cacheLimitBytes: Number(limit),
  downloadLimitBytesPerSecond: 2 * 1024 * 1024,
});
const started = await startSession(served, "getfile", { magnet, pid: "child" });
const response = await fetch(started.playback_url);
let bytes = 0, told = 0;
for await (const chunk of response.body!) {
  bytes += chunk.length;
  for (; told <= Math.floor(bytes / 2 ** 20); told++) console.log(`have ${told}`);
}
