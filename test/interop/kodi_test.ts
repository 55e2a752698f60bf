/**
 * A stream is opened in the real Kodi, paused, sought and stopped by the API, and Kodi's own UPnP client finds the library and plays
 * from it. Kodi shows its windows to a screen in memory.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { createEngine } from "../../src/engine.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { type Program, start } from "../support/process.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";

const FILES = [
  { path: "film with 'quotes' & (1).mp4", bytes: clip("mp4-end.mp4") },
  { path: "second.mkv", bytes: clip("mkv-cues.mkv") },
  // Begins like a film, and is none.
  { path: "noise.mp4", bytes: concatBytes([new TextEncoder().encode("\0\0\0\x08ftyp"), noise(300_000)]) },
];
/** Length of both clips, seconds. */
const CLIP_SECONDS = 6;
const PASSWORD = "pa:ss @/w";
/** Where Debian has the program itself; the command `kodi` is a script that starts it again whenever it ends. */
const KODI = "/usr/lib/x86_64-linux-gnu/kodi/kodi.bin";

let seeder: SeededFiles;
let served: ServedEngine;
let home: { path: string; remove(): Promise<void> };
let screen: Program;
let kodi: Program;
let place: string;
/** Port of the library that Kodi has among its sources by WebDAV: its API opens no other addresses of folders. */
let davPort: number;

before(async () => {
  home = await temporaryDirectory();
  const port = await freePort();
  davPort = await freePort();
  place = `127.0.0.1:${port}`;
  const settings: Record<string, string> = {
    "services.webserver": "true",
    "services.webserverport": String(port),
    "services.webserverauthentication": "true",
    "services.webserverusername": "kodi",
    "services.webserverpassword": PASSWORD,
    "services.esenabled": "false",
    "services.zeroconf": "false",
    "services.upnp": "true",
  };
  await mkdir(`${home.path}/.kodi/userdata`, { recursive: true });
  await writeFile(
    `${home.path}/.kodi/userdata/guisettings.xml`,
    `<settings version="2">${
      Object.entries(settings).map(([id, value]) => `<setting id="${id}">${value}</setting>`).join("")
    }</settings>`,
  );
  const source = `<source><name>millrace</name><path>dav://127.0.0.1:${davPort}/webdav/</path></source>`;
  await writeFile(`${home.path}/.kodi/userdata/sources.xml`, `<sources><files>${source}</files></sources>`);
  // A sound device that takes everything: without any, Kodi needs 10 s to end a film.
  await writeFile(`${home.path}/.asoundrc`, "pcm.!default { type null }\nctl.!default { type null }\n");
  screen = start("Xvfb", ["-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp"]);
  const [display] = await screen.line(/^\d+$/);
  kodi = start(KODI, ["--standalone", "--windowing=x11"], {
    env: { HOME: home.path, DISPLAY: `:${display}`, LIBGL_ALWAYS_SOFTWARE: "1", KODI_AE_SINK: "ALSA" },
  });
  seeder = await seedFiles(FILES, { name: "films" });
  const wrong = `kodi:wrong@localhost:${port}`;
  served = await serveEngine({
    kodis: [`kodi:${encodeURIComponent(PASSWORD)}@${place}`, wrong],
    playerDiscovery: false,
  });
  await until(
    "Kodi serves",
    async () => (await fetch(`http://${place}/jsonrpc`).catch(() => null))?.status === 401,
    90_000,
  );
  served.engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
});
after(async () => {
  await kodi?.stop();
  await screen?.stop();
  await served?.close();
  await seeder?.close();
  await home?.remove();
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
async function call(method: string, params: Record<string, string> = {}) {
  const response = await fetch(`${served.url}/server/api?${new URLSearchParams({ method, ...params })}`);
  return await response.json();
}
const id = () => `kodi:${place}`;
const status = async () => (await call("get_player_status", { player_id: id() })).result;
const control = async (command: string, more: Record<string, string> = {}) =>
  assertEquals((await call("control_player", { player_id: id(), command, ...more })).error, null, command);
const open = (index: number) =>
  call("open_in_player", { player_id: id(), infohash: seeder.metainfo.infohashHex, _idx: String(index) });

test("a Kodi that was named is listed, plays what is opened in it, and can be paused, sought and stopped", async () => {
  const { players } = (await call("get_available_players")).result;
  // The one with the wrong password is not there.
  assertEquals(players.map(({ name: _name, ...rest }: Record<string, unknown>) => rest), [{
    id: id(),
    type: "proxy",
    protocol: null,
    icon: null,
  }]);
  assertMatch(String(players[0]!["name"]), /^Kodi/);
  assertEquals((await status()).state, "idle");

  assertEquals((await open(0)).error, null);
  await until("it plays, and knows the length", async () => {
    const { state, duration } = await status();
    return state === "playing" && duration !== null && Math.abs(duration - CLIP_SECONDS) <= 1;
  });
  await control("pause");
  await until("it has paused", async () => (await status()).state === "paused");
  await control("seek", { position: "4" });
  await until("it is where it was told to go", async () => Math.abs((await status()).position - 4) <= 1);
  await control("volume", { volume: "35" });
  await until("it is as loud as it was told", async () => (await status()).volume === 35);
  await control("resume");
  await until("it goes on", async () => (await status()).state === "playing");

  assertEquals((await open(1)).error, null);
  await until("the other film plays from its beginning", async () => {
    const { state, position } = await status();
    return state === "playing" && position < 3;
  });
  await control("stop");
  await until("it is idle", async () => (await status()).state === "idle");
  assertEquals((await call("control_player", { player_id: id(), command: "pause" })).error.code, 8);
  const wanted = FILES[0]!.bytes.length + FILES[1]!.bytes.length;
  const { uploadedBytes } = seeder.engine.swarms.list()[0]!.status();
  assert(uploadedBytes >= wanted, `${uploadedBytes} of ${wanted} bytes came from the peer`);
});

test("open_in_player reports that Kodi cannot play a file that is not a film", async () => {
  const { result, error } = await open(2);
  assertEquals([result, error?.code], [undefined, 9]);
  assertMatch(error.message, /^Kodi.* does not play it: ./);
  assertEquals((await status()).state, "idle");
  // Kodi's error message on the screen does not disturb the next test.
  assertEquals((await open(0)).error, null);
  await control("stop");
});

/** Asks Kodi itself. */
async function kodiSays(method: string, params: Record<string, unknown>) {
  const response = await fetch(`http://${place}/jsonrpc`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Basic ${btoa(`kodi:${PASSWORD}`)}` },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  return (await response.json()).result;
}

/** Ends what plays: Kodi answers before it has ended. */
async function stopKodi(): Promise<void> {
  await until("nothing plays", async () => {
    const [player] = await kodiSays("Player.GetActivePlayers", {});
    if (player !== undefined) await kodiSays("Player.Stop", { playerid: player.playerid });
    return player === undefined;
  });
}

test("Kodi finds the media server by itself, browses the library and plays from it", async () => {
  const ports = await loadPorts();
  const token = "0123456789abcdef".repeat(4);
  const library = await createEngine(ports, {
    ...{ fronts: ["dlna"], peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: token },
  });
  const server = await ports.http.serve({ host: "0.0.0.0", port: 0 }, (request, info) => library.fetch(request, info));
  try {
    library.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
    const item = new FormData();
    const file = new File([seeder.transportFile.slice()], "films.torrent");
    for (const [name, value] of Object.entries({ title: "Films & more", category: "Films", file })) {
      item.set(name, value);
    }
    const query = new URLSearchParams({ method: "playlist_add_item", token });
    await library.fetch(new Request(`http://127.0.0.1/server/api?${query}`, { method: "POST", body: item }));
    library.servedAt(server.address);

    // Other engines of this machine may be found, too.
    const port = String(server.address.port);
    const description = await (await fetch(`http://127.0.0.1:${port}/dlna/device.xml`)).text();
    const udn = /<UDN>uuid:([^<]+)<\/UDN>/.exec(description)![1];
    const listed = async (directory: string): Promise<{ file: string; label: string; filetype: string }[]> =>
      (await kodiSays("Files.GetDirectory", { directory, media: "files" }))?.files ?? [];
    let found: string | undefined;
    await until("Kodi has found it", async () => {
      found = (await listed("upnp://")).find(({ file }) => file.includes(udn!))?.file;
      return found !== undefined;
    }, 60_000);
    const lists = await listed(found!);
    assertEquals(lists.map(({ label }) => label), ["Now playing", "All", "Favourites", "Films"]);
    const [torrent] = await listed(lists[3]!.file);
    assertEquals([torrent!.label, torrent!.filetype], ["Films & more", "directory"]);
    const [film] = await listed(torrent!.file);
    assertEquals([film!.label, film!.filetype], ["film with 'quotes' & (1)", "file"]);

    await kodiSays("Player.Open", { item: { file: film!.file } });
    await until("it plays, and knows the length", async () => {
      const [player] = await kodiSays("Player.GetActivePlayers", {});
      if (player === undefined) return false;
      const { time, totaltime } = await kodiSays("Player.GetProperties", {
        playerid: player.playerid,
        properties: ["time", "totaltime"],
      });
      return time.seconds >= 1 && Math.abs(totaltime.seconds - CLIP_SECONDS) <= 1;
    });
    const [playing] = await listed(lists[0]!.file);
    assertMatch(playing!.label, /\.(?:mp4|mkv)$/);
    await stopKodi();
  } finally {
    await library.close();
    await server.close(0);
  }
});

test("Kodi lists the library by WebDAV, plays a film from it and seeks", async () => {
  const ports = await loadPorts();
  const token = "0123456789abcdef".repeat(4);
  const library = await createEngine(ports, {
    ...{ fronts: ["webdav"], peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: token },
  });
  const server = await ports.http.serve(
    { host: "127.0.0.1", port: davPort },
    (request, info) => library.fetch(request, info),
  );
  try {
    const item = new URLSearchParams({
      method: "playlist_add_item",
      token,
      title: "Films",
      magnet: seeder.magnet,
      is_live: "0",
    });
    await library.fetch(new Request(`http://127.0.0.1/server/api?${item}`));
    const files = async (directory: string): Promise<{ file: string; label: string; filetype: string }[]> =>
      (await kodiSays("Files.GetDirectory", { directory, media: "files" }))?.files ?? [];
    const [all] = await files(`dav://127.0.0.1:${davPort}/webdav/`);
    assertEquals([all!.label, all!.filetype], ["All", "directory"]);
    const [torrent] = await files(all!.file);
    assertMatch(torrent!.label, /^Films \[\d+\]$/);
    const film = (await files(torrent!.file)).find(({ label }) => label === "second.mkv");

    await kodiSays("Player.Open", { item: { file: film!.file } });
    let playerid = -1;
    const time = async () => {
      const { time } = await kodiSays("Player.GetProperties", { playerid, properties: ["time"] }) ?? {};
      return time === undefined ? NaN : time.seconds + time.milliseconds / 1000;
    };
    await until("it plays", async () => {
      const [player] = await kodiSays("Player.GetActivePlayers", {});
      playerid = player?.playerid ?? -1;
      return playerid >= 0 && await time() > 0.2;
    });
    await kodiSays("Player.PlayPause", { playerid, play: false });
    await kodiSays("Player.Seek", { playerid, value: { time: { hours: 0, minutes: 0, seconds: 4, milliseconds: 0 } } });
    await until("it is where it was told to go", async () => Math.abs(await time() - 4) <= 1);
    await stopKodi();
  } finally {
    await library.close();
    await server.close(0);
  }
});
