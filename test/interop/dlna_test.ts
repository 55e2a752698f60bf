/** A stream is opened in a DLNA renderer that we did not write, found by itself, paused, sought and stopped by the API. */
import { networkInterfaces } from "node:os";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { type Program, start } from "../support/process.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";

const UUID = crypto.randomUUID();
const ID = `dlna:uuid:${UUID}`;
const FILES = [
  // Long enough to be paused and sought in at leisure.
  { path: "film & more.ts", bytes: clip("ts-188.ts") },
  { path: "noise.mp4", bytes: noise(200_000) },
];

let seeder: SeededFiles;
let engine: Engine;
let server: HttpServer;
let renderer: Program;
let url: string;

/** The first interface with a network of others. */
function lan(): { name: string; host: string } {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    for (const { address, family, internal } of addresses ?? []) {
      if (String(family).endsWith("4") && !internal) return { name, host: address };
    }
  }
  throw new Error("this machine has no network for the renderer to be in");
}

before(async () => {
  const ports = await loadPorts();
  seeder = await seedFiles(FILES, { name: "films" });
  engine = await createEngine(ports, { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false });
  server = await ports.http.serve({ host: "0.0.0.0", port: 0 }, (request, info) => engine.fetch(request, info));
  // A page on this machine knows the engine by its loopback address; the renderer has to get another one.
  url = `http://127.0.0.1:${server.address.port}`;
  engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
  renderer = start("gmediarender", [
    `--interface-name=${lan().name}`,
    `--uuid=${UUID}`,
    "--friendly-name=Test <TV>",
    // They take the time that a film takes, and show nothing.
    "--gstout-audiosink=fakeaudiosink",
    "--gstout-videosink=fakevideosink",
    "--logfile=stdout",
  ]);
});
after(async () => {
  await renderer?.stop();
  await engine?.close();
  await server?.close(0);
  await seeder?.close();
});

async function call(method: string, params: Record<string, string> = {}) {
  const response = await fetch(`${url}/server/api?${new URLSearchParams({ method, ...params })}`);
  return await response.json();
}
const status = async () => (await call("get_player_status", { player_id: ID })).result;
const control = async (command: string, more: Record<string, string> = {}) =>
  assertEquals((await call("control_player", { player_id: ID, command, ...more })).error, null, command);
const open = (index: number) =>
  call("open_in_player", { player_id: ID, infohash: seeder.metainfo.infohashHex, _idx: String(index) });

test("a DLNA renderer is listed, plays what is opened in it, and can be paused, sought and stopped", async () => {
  let listed: Record<string, unknown> | undefined;
  await until("the renderer is in the list", async () => {
    const { result: { players } } = await call("get_available_players");
    listed = players.find(({ id }: { id: string }) => id === ID);
    return listed !== undefined;
  }, 60_000);
  const { icon, ...rest } = listed!;
  assertEquals(rest, { id: ID, type: "aircast", protocol: "dlna", name: "Test <TV>" });
  assert(icon === null || /^http:\/\//.test(String(icon)));
  assertEquals((await status()).state, "idle");

  const opened = await open(0);
  assertEquals(opened.error, null, renderer.output().slice(-3000));
  await until("it plays, and time goes by", async () => {
    const { state, position } = await status();
    return state === "playing" && position >= 1;
  });
  await control("pause");
  await until("it has paused", async () => (await status()).state === "paused");
  await control("seek", { position: "4" });
  await until("it is where it was told to go", async () => (await status()).position >= 4);
  await control("resume");
  await until("it goes on", async () => (await status()).state === "playing");
  await control("stop");
  await until("it is idle", async () => (await status()).state === "idle");
  assertEquals((await call("control_player", { player_id: ID, command: "pause" })).error.code, 8);
  const { uploadedBytes } = seeder.engine.swarms.list()[0]!.status();
  assert(uploadedBytes >= FILES[0]!.bytes.length, `${uploadedBytes} bytes came from the peer`);
  const log = renderer.output();
  assertMatch(log, new RegExp(`http://${lan().host.replaceAll(".", "\\.")}:${server.address.port}/engine/r/`));
});

test("open_in_player says why a stream does not play in a renderer", async () => {
  const { result, error } = await open(1);
  assertEquals([result, typeof error?.message], [undefined, "string"]);
  assertEquals((await status()).state, "idle");
});

test("a renderer that vanished leaves the list within a minute", async () => {
  await renderer.stop();
  await until("it is gone", async () => {
    const { result: { players } } = await call("get_available_players");
    return !players.some(({ id }: { id: string }) => id === ID);
  }, 45_000);
  assertEquals((await open(0)).error.code, 5);
});
