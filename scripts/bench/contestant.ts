/**
 * The engine as a contestant of a benchmark harness, controlled line by line over stdin and stdout:
 *
 *   contestant.ts download SOURCE DIR        READY, then DONE when every piece is on disk and verified
 *   contestant.ts stream   SOURCE DIR PORT   READY; waits for a line; URL http://… of the stream
 *   contestant.ts seed     SOURCE DIR        READY and the peer port when the data in DIR is verified and served
 *
 * SOURCE is a .torrent path or a magnet. BT_PORT is the peer port. DHT_NODE (host:port) is the first contact of the DHT,
 * which is off without it. OUTPUT=ts|hls|file picks what `stream` serves, to pages of ALLOW_ORIGIN as well. With STAGES
 * set `stream` says when its start reached which stage: AT, ms, the stage.
 */
import { loadPorts, runtimeName } from "../../platform/detect.ts";
import { warmUp } from "../../platform/warm-up/warm-up.ts";
import { createEngine } from "../../src/engine.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import type { SwarmTarget } from "../../src/swarm/types.ts";
import process from "node:process";
import { watchStart } from "./milestones.ts";

const [mode, source = "", directory = "", port = "0"] = process.argv.slice(2);
// As the release's entry point does.
if (runtimeName() === "node") (await import("../../platform/node/heap.ts")).keepHeapSmall();
const ports = await loadPorts();
const engine = await createEngine(ports, {
  cache: mode === "seed" ? "seed" : "disk",
  cacheDir: directory,
  cacheLimitBytes: 0,
  peerPort: Number(process.env.BT_PORT ?? 0),
  dht: process.env.DHT_NODE !== undefined,
  dhtBootstrap: process.env.DHT_NODE === undefined ? [] : [process.env.DHT_NODE],
  lsd: false,
  pex: false,
  portMapping: false,
  allowOrigins: process.env.ALLOW_ORIGIN === undefined ? [] : [process.env.ALLOW_ORIGIN],
});

async function target(): Promise<SwarmTarget> {
  return source.startsWith("magnet:")
    ? { magnet: parseMagnet(source) }
    : { metainfo: await parseTransportFile(await ports.files.readFile(source)) };
}

const say = (line: string) => process.stdout.write(`${line}\n`);

if (mode === "download") {
  const wanted = await target();
  say("READY");
  const { swarm } = engine.swarms.acquire(wanted);
  const forever = new AbortController().signal;
  await swarm.metadata(forever);
  swarm.setDownloadAll(true);
  await swarm.completed(forever);
  say("DONE");
} else if (mode === "stream") {
  const server = await ports.http.serve(
    { host: "127.0.0.1", port: Number(port) },
    (request, info) => engine.fetch(request, info),
  );
  const output = process.env.OUTPUT ?? "file";
  const entry = { ts: "getstream", hls: "manifest.m3u8", file: "getfile" }[output] ?? "getfile";
  const base = `http://127.0.0.1:${server.address.port}/engine/${entry}?format=json&use_api_stop=1`;
  await warmUp(`http://127.0.0.1:${server.address.port}`, ports.clock);
  say("READY");
  await new Promise<void>((resolve) => process.stdin.once("data", () => resolve()));
  if (process.env.STAGES !== undefined) watchStart(engine.swarms, (stage, ms) => say(`AT ${ms.toFixed(0)} ${stage}`));
  const response = source.startsWith("magnet:")
    ? await engine.fetch(new Request(`${base}&magnet=${encodeURIComponent(source)}`))
    : await engine.fetch(
      new Request(base, { method: "POST", body: new Uint8Array(await ports.files.readFile(source)) }),
    );
  const answer = await response.json();
  say(answer.error === null ? `URL ${answer.response.playback_url}` : `FAIL ${answer.error}`);
} else if (mode === "seed") {
  const { swarm } = engine.swarms.acquire(await target());
  await swarm.completed(new AbortController().signal);
  say(`READY ${engine.swarms.peerAddress?.port ?? 0}`);
}
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
