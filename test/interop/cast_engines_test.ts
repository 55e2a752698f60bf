/** One engine finds another by mDNS and plays its stream in the real mpv there, once a person at that engine allowed it. */
import { chmod, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { modules } from "./support/modules.ts";
import { start } from "../support/process.ts";
import { until } from "../support/until.ts";

const TOKEN = "ab".repeat(32);
const FILES = [{ path: "film & more.mkv", bytes: clip("mkv-cues.mkv") }];

/** An engine that the local network reaches, as `--bind-all` has it. */
interface Served {
  readonly engine: Engine;
  readonly server: HttpServer;
  readonly url: string;
}

let seeder: SeededFiles;
let sender: Served;
let receiver: Served;
let home: { path: string; remove(): Promise<void> };
let senderKey: string;
let id: string;

async function serve(options: EngineOptions): Promise<Served> {
  const ports = await loadPorts();
  const alone = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: TOKEN };
  const engine = await createEngine(ports, { ...alone, ...options });
  const server = await ports.http.serve({ host: "0.0.0.0", port: 0 }, (request, info) => engine.fetch(request, info));
  engine.servedAt(server.address);
  return { engine, server, url: `http://127.0.0.1:${server.address.port}` };
}
const serveReceiver = () =>
  serve({ playerPrograms: [`${home.path}/mpv`], deviceName: "Living room", stateDir: `${home.path}/state` });

before(async () => {
  home = await temporaryDirectory();
  await writeFile(`${home.path}/mpv`, '#!/bin/sh\nexec mpv --no-config --vo=null --ao=null "$@"\n');
  await chmod(`${home.path}/mpv`, 0o755);
  seeder = await seedFiles(FILES, { name: "films" });
  receiver = await serveReceiver();
  sender = await serve({ deviceName: "Study" });
  sender.engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
  id = `millrace:${(await call(receiver, "get_cast_senders")).result.key}`;
  senderKey = (await call(sender, "get_cast_senders")).result.key;
});
after(async () => {
  for (const served of [sender, receiver]) {
    await served?.engine.close();
    await served?.server.close(0);
  }
  await seeder?.close();
  await home?.remove();
});

async function call({ url }: Served, method: string, params: Record<string, string> = {}) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return await (await fetch(`${url}/server/api?${query}`)).json();
}
const status = async () => (await call(sender, "get_player_status", { player_id: id })).result;
const control = async (command: string, more: Record<string, string> = {}) =>
  assertEquals((await call(sender, "control_player", { player_id: id, command, ...more })).error, null, command);
const open = () => call(sender, "open_in_player", { player_id: id, infohash: seeder.metainfo.infohashHex, _idx: "0" });
const listed = async () => {
  const { result: { players } } = await call(sender, "get_available_players");
  // Other engines of the network may be there, too.
  return players.filter((player: { id: string }) => player.id === id || player.id === `millrace:${senderKey}`);
};

test("another engine is listed, asks its user first, then plays what is sent, and can be paused, sought and stopped", async () => {
  await until("the other engine is in the list, and this one is not", async () => (await listed()).length > 0, 30_000);
  assertEquals(await listed(), [{ id, type: "aircast", protocol: "millrace_cast", name: "Living room", icon: null }]);
  assertEquals((await status()).state, "idle");
  const { result: { players: seenThere } } = await call(receiver, "get_available_players");
  assert(!seenThere.some((player: { id: string }) => player.id === id), "it does not find itself");

  const refused = await open();
  assertEquals(refused.error?.code, 9);
  assertMatch(refused.error.message, /Living room.*has to allow/);
  const { result: { pending, allowed } } = await call(receiver, "get_cast_senders");
  assertEquals([pending.length, pending[0].name, allowed], [1, "Study", []]);
  const key = senderKey;
  assertEquals(pending[0].key, key);
  assertEquals((await call(receiver, "set_cast_sender", { key, value: "1" })).error, null);

  assertEquals((await open()).error, null);
  await until("it plays, and knows the length", async () => {
    const { state, duration } = await status();
    return state === "playing" && Math.abs(duration - 6) < 1;
  });
  await control("pause");
  await until("it has paused", async () => (await status()).state === "paused");
  await control("seek", { position: "4" });
  await until("it is where it was told to go", async () => Math.abs((await status()).position - 4) <= 1);
  await control("resume");
  await until("it goes on", async () => (await status()).state === "playing");
  const { uploadedBytes } = seeder.engine.swarms.list()[0]!.status();
  assertGreater(uploadedBytes, FILES[0]!.bytes.length * 0.9);
  await control("stop");
  await until("it is idle", async () => (await status()).state === "idle");
  assertEquals((await call(receiver, "get_player_status", { player_id: "program:mpv" })).result.state, "idle");
});

test("an engine is announced as others look for services, by the npm package bonjour-service", async () => {
  const found = start("node", [
    fileURLToPath(new URL("support/find-service.mjs", import.meta.url)),
    modules(),
    "millrace",
  ]);
  try {
    const [line] = await found.line(new RegExp(`^.*${id.slice("millrace:".length)}.*$`));
    const { name, port, txt, addresses } = JSON.parse(line);
    assertEquals([port, txt.name, txt.out], [receiver.server.address.port, "Living room", "file"]);
    assertMatch(name, /^Living room [0-9a-f]{12}$/);
    assert(addresses.length > 0 && !addresses.includes("127.0.0.1"), addresses);
  } finally {
    await found.stop();
  }
});

test("an engine that ends leaves the list at once; restarted, it has the same key, and the permission", async () => {
  await receiver.engine.close();
  await receiver.server.close(0);
  await until("it is gone", async () => (await listed()).length === 0, 10_000);
  receiver = await serveReceiver();
  await until("it is back", async () => (await listed()).length === 1, 40_000);
  assertEquals((await listed())[0].id, id);
  assertEquals((await open()).error, null);
  await until("it plays", async () => (await status()).state === "playing");
  assertEquals((await call(receiver, "set_cast_sender", { key: senderKey, value: "0" })).error, null);
  const taken = await call(sender, "control_player", { player_id: id, command: "pause" });
  assert(/has to allow/.test(taken.error?.message), JSON.stringify(taken));
});
