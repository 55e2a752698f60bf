/** Streams are opened in the real mpv, VLC and ffplay of this machine, paused, sought and stopped, all by the API. */
import { chmod, readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { clip } from "../support/fixtures.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";

const FILES = [
  { path: "film with 'quotes' (1).mp4", bytes: clip("mp4-end.mp4") },
  { path: "second.mkv", bytes: clip("mkv-cues.mkv") },
  // Begins like a film, and is none.
  { path: "noise.mp4", bytes: concatBytes([new TextEncoder().encode("\0\0\0\x08ftyp"), noise(300_000)]) },
];
/** Length of both clips, seconds. */
const CLIP_SECONDS = 6;

let seeder: SeededFiles;
let served: ServedEngine;
let isOver = false;
let home: { path: string; remove(): Promise<void> };

before(async () => {
  home = await temporaryDirectory();
  await chmod(home.path, 0o755);
  const script = async (name: string, command: string) => {
    await writeFile(
      `${home.path}/${name}`,
      `#!/bin/sh\necho $$ >> '${home.path}/${name}.pids'\nexec ${command} "$@"\n`,
    );
    await chmod(`${home.path}/${name}`, 0o755);
  };
  await script("mpv", "mpv --no-config --vo=null --ao=null");
  // VLC refuses to run as root.
  const nobody = process.getuid?.() === 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  await script("cvlc", `env HOME=/nonexistent ${nobody}cvlc --no-media-library --vout=dummy --aout=dummy`);
  await script("ffplay", "env SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy ffplay");
  seeder = await seedFiles(FILES, { name: "films" });
  served = await serveEngine({
    playerPrograms: ["mpv", "cvlc", "ffplay"].map((name) => `${home.path}/${name}`),
    playerDiscovery: false,
  });
  // `open_in_player` takes no magnet: the swarm that it joins has the peer already.
  served.engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
});
after(async () => {
  if (!isOver) await served?.close();
  await seeder?.close();
  await home?.remove();
});

async function call(method: string, params: Record<string, string>) {
  const response = await fetch(`${served.url}/server/api?${new URLSearchParams({ method, ...params })}`);
  return await response.json();
}

for (const [id, name] of [["program:mpv", "mpv"], ["program:vlc", "VLC"], ["program:ffplay", "ffplay"]] as const) {
  const status = async () => (await call("get_player_status", { player_id: id })).result;
  const control = async (command: string, more: Record<string, string> = {}) =>
    assertEquals((await call("control_player", { player_id: id, command, ...more })).error, null, command);
  const open = async (index: number) => {
    const params = { player_id: id, infohash: seeder.metainfo.infohashHex, _idx: String(index) };
    return await call("open_in_player", params);
  };

  test(`open_in_player plays in ${name}, which can be paused, sought, given another stream and stopped`, async () => {
    const { result: { players } } = await call("get_available_players", {});
    const listed = players.find((player: { id: string }) => player.id === id);
    assertEquals(listed, { id, type: "proxy", protocol: null, name, icon: null });
    assertEquals((await status()).state, "idle");

    assertEquals((await open(0)).error, null);
    await until("it plays, and knows the length", async () => {
      const { state, duration } = await status();
      return state === "playing" && duration !== null && Math.abs(duration - CLIP_SECONDS) < 1;
    });
    await control("pause");
    await until("it has paused", async () => (await status()).state === "paused");
    await control("seek", { position: "4" });
    await until("it is where it was told to go", async () => Math.abs((await status()).position - 4) <= 1);
    await control("resume");
    await until("it goes on", async () => (await status()).state === "playing");

    assertEquals((await open(1)).error, null);
    await until("the other film plays from its beginning", async () => {
      const { state, position } = await status();
      return state === "playing" && position < 3;
    });
    await control("stop");
    await until("it is idle", async () => (await status()).state === "idle");
    const again = await call("control_player", { player_id: id, command: "pause" });
    assertEquals(again.error.code, 8);
  });

  test(`open_in_player reports that ${name} cannot play a file that is not a film, and leaves no ${name} behind`, async () => {
    const { result, error } = await open(2);
    assertEquals([result, error?.code], [undefined, 9]);
    assertMatch(error.message, new RegExp(`^${name} does not play it: .`));
    assertEquals((await status()).state, "idle");
  });
}

test("the bytes came from the peer by this engine", () => {
  const [swarm] = seeder.engine.swarms.list();
  const wanted = FILES[0]!.bytes.length + FILES[1]!.bytes.length;
  const { uploadedBytes } = swarm!.status();
  assert(uploadedBytes >= wanted, `${uploadedBytes} of ${wanted}`);
});

test("the programs end with the engine", async () => {
  const pids: number[] = [];
  for (const [id, name] of [["program:mpv", "mpv"], ["program:vlc", "cvlc"], ["program:ffplay", "ffplay"]] as const) {
    const opened = await call("open_in_player", { player_id: id, infohash: seeder.metainfo.infohashHex, _idx: "0" });
    assertEquals(opened.error, null, id);
    const [pid] = (await readFile(`${home.path}/${name}.pids`, "utf8")).trim().split("\n").slice(-1);
    process.kill(Number(pid), 0);
    pids.push(Number(pid));
  }
  await served.close();
  isOver = true;
  for (const pid of pids) assertThrows(() => process.kill(pid, 0), Error, "ESRCH");
});
