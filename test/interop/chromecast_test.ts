/** Opens a stream in a CASTV2 receiver that we did not write, found by mDNS, and controls it by the API. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles, temporaryDirectory } from "../support/engine.ts";
import { onAir } from "../support/live.ts";
import { clip } from "../support/fixtures.ts";
import { type Program, run, start } from "../support/process.ts";
import { noise } from "../support/random.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/tls.ts";
import { modules } from "./support/modules.ts";
import { until } from "../support/until.ts";

const ID = "chromecast:00112233445566778899aabbccddeeff";
const ORIGIN = "https://www.gstatic.com";
const FILES = [
  { path: "film.ts", bytes: clip("ts-188.ts") },
  { path: "noise.mp4", bytes: noise(200_000) },
  { path: "surround.mp4", bytes: clip("mp4-ac3.mp4") },
];

let seeder: SeededFiles;
let engine: Engine;
let server: HttpServer;
let receiver: Program;
let folder: { path: string; remove(): Promise<void> };
let url: string;

before(async () => {
  const ports = await loadPorts();
  seeder = await seedFiles(FILES, { name: "films" });
  engine = await createEngine(ports, { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false });
  server = await ports.http.serve({ host: "0.0.0.0", port: 0 }, (request, info) => engine.fetch(request, info));
  url = `http://127.0.0.1:${server.address.port}`;
  engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
  folder = await temporaryDirectory();
  const [key, certificate] = [join(folder.path, "key.pem"), join(folder.path, "certificate.pem")];
  await writeFile(key, TEST_KEY);
  await writeFile(certificate, TEST_CERTIFICATE);
  const script = fileURLToPath(new URL("support/cast-receiver.mjs", import.meta.url));
  receiver = start("node", [script, modules(), "Living room 2.0", key, certificate]);
  await receiver.line(/"ready"/);
});
after(async () => {
  await receiver?.stop();
  await engine?.close();
  await server?.close(0);
  await seeder?.close();
  await folder?.remove();
});

async function call(method: string, params: Record<string, string> = {}) {
  const response = await fetch(`${url}/server/api?${new URLSearchParams({ method, ...params })}`);
  return await response.json();
}
const listed = async () => {
  const { result: { players } } = await call("get_available_players");
  return players.find(({ id }: { id: string }) => id === ID);
};
const status = async () => (await call("get_player_status", { player_id: ID })).result;
const control = async (command: string, more: Record<string, string> = {}) =>
  assertEquals((await call("control_player", { player_id: ID, command, ...more })).error, null, command);
const open = (index: number) =>
  call("open_in_player", { player_id: ID, infohash: seeder.metainfo.infohashHex, _idx: String(index) });
/** Events that the receiver printed, from the line `from` on. */
const events = (kind: string, from = 0) =>
  receiver.output().split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line))
    .filter(({ event }) => event === kind).slice(from);

test("a Chromecast is listed, plays what is opened in it, and can be paused, sought, made louder and stopped", async () => {
  await until("the receiver is in the list", async () => await listed() !== undefined, 30_000);
  const { icon, ...rest } = await listed();
  assertEquals(rest, { id: ID, type: "aircast", protocol: "chromecast", name: "Living room 2.0" });
  assertMatch(icon, /^http:\/\/[\d.]+:8008\/setup\/icon\.png$/);
  assertEquals(await status(), { state: "idle", position: null, duration: null, volume: null });

  assertEquals((await open(0)).error, null, receiver.output().slice(-3000));
  const [{ media }] = events("load");
  assertEquals([media.contentType, media.streamType], ["application/x-mpegURL", "BUFFERED"]);
  assertEquals(media.metadata.title, "film.ts");
  await until("it plays, and time goes by", async () => {
    const { state, position } = await status();
    return state === "playing" && position >= 1;
  });
  await control("pause");
  await until("it has paused", async () => (await status()).state === "paused");
  await control("seek", { position: "3" });
  const { position, duration, volume } = await status();
  assertEquals([Math.round(position), volume], [3, 50]);
  assertGreater(duration, 5);
  await control("volume", { volume: "80" });
  assertEquals((await status()).volume, 80);
  await control("resume");
  await until("it goes on", async () => (await status()).position > 3.2);

  const segments = () => events("segment");
  await until("it has read all segments", () => segments().length === segments()[0]?.of);
  const bytes = segments().reduce((sum, segment) => sum + segment.bytes, 0);
  assertGreater(bytes, FILES[0]!.bytes.length * 0.9);
  const ms = segments().slice(0, 2).map((segment) => segment.ms);
  assert(ms.every((each) => each < 2000), `the first two segments were ready: ${ms} ms`);

  const probe = (address: string, origin = ORIGIN) =>
    run("ffprobe", ["-v", "error", "-headers", `Origin: ${origin}\r\n`, "-show_entries", "stream=codec_name", address]);
  assertMatch((await probe(media.contentId)).text, /h264[^]*aac/);
  const read = async (address: string) => {
    const response = await fetch(address, { headers: { origin: ORIGIN } });
    await response.body?.cancel();
    return response.status;
  };
  const asked = { origin: ORIGIN, "access-control-request-method": "GET", "access-control-request-headers": "range" };
  const preflight = await fetch(segments()[0].url, { method: "OPTIONS", headers: asked });
  assertEquals([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, ORIGIN]);
  assertMatch(preflight.headers.get("access-control-allow-headers") ?? "", /range/);
  // The addresses given to the receiver open only this stream.
  assertEquals(await read(segments()[0].url), 200);
  assertEquals(await read(segments()[0].url.replace(/\?.*/, "")), 403);
  assertEquals(await read(media.contentId.replace(/\w{32}\.m3u8/, `${"0".repeat(32)}.m3u8`)), 403);
  assertEquals(await read(`${url}/engine/getstream?infohash=${seeder.metainfo.infohashHex}`), 403);
  await control("stop");
  await until("it is idle", async () => (await status()).state === "idle");
  assertEquals((await call("control_player", { player_id: ID, command: "pause" })).error.code, 8);
  assertEquals(await read(media.contentId), 403);
});

test("open_in_player says why a stream does not play in a Chromecast, and gives it AAC for sound that it can't decode", async () => {
  const { result, error } = await open(1);
  assertEquals([result, typeof error?.message], [undefined, "string"]);
  assertEquals((await status()).state, "idle");
  const before = events("load").length;
  assertEquals((await open(2)).error, null, receiver.output().slice(-3000));
  const [{ media }] = events("load", before);
  const { text } = await run("ffprobe", [
    ...["-v", "error", "-headers", `Origin: ${ORIGIN}\r\n`],
    ...["-show_entries", "stream=codec_name", media.contentId],
  ]);
  assertMatch(text, /codec_name=aac/);
  assert(!text.includes("ac3"), text);
  await control("stop");
});

test("a Chromecast plays a broadcast as live, until it is stopped", async () => {
  const air = await onAir({ directory: `${folder.path}/air` });
  try {
    const [loads, read, failures] = ["load", "segment", "failed"].map((kind) => events(kind).length);
    const opened = await call("open_in_player", { player_id: ID, magnet: air.magnet });
    assertEquals(opened.error, null, receiver.output().slice(-3000));
    assertEquals(events("load", loads)[0].media.streamType, "LIVE");
    await until("six segments arrived", () => events("segment", read).length >= 6, 60_000);
    const { state, duration } = await status();
    assertEquals(
      [state, duration, events("failed").length],
      ["playing", null, failures],
      receiver.output().slice(-2000),
    );
    await control("stop");
  } finally {
    await air.close();
  }
});

test("a Chromecast that says goodbye leaves the list at once", async () => {
  receiver.child.kill("SIGTERM");
  await receiver.exited;
  await until("it is gone", async () => await listed() === undefined, 5000);
  assertEquals((await open(0)).error.code, 5);
});
