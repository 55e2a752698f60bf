/**
 * The real Kodi, with its client for M3U lists (pvr.iptvsimple), takes the engine's list with its guide, plays what a channel sent
 * earlier, chosen in the guide, and the channel itself.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { TOKEN } from "../api/support.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { type Program, start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { listen, serveWeb, stop, type TestWeb } from "../support/web.ts";

/** Where Debian has the program itself; the command `kodi` is a script that starts it again whenever it ends. */
const KODI = "/usr/lib/x86_64-linux-gnu/kodi/kodi.bin";
const CLIENT = "pvr.iptvsimple";
const NOW_S = Math.floor(Date.now() / 1000);
const PAST_S = NOW_S - 3600;
/** Kodi begins a programme of the past earlier by its setting, five minutes. */
const EARLY_S = 600;

const programme = (title: string, fromS: number, untilS: number) =>
  `<programme start="${writeXmltvTime(fromS)}" stop="${
    writeXmltvTime(untilS)
  }" channel="a"><title>${title}</title></programme>`;
const GUIDE = `<tv><channel id="a"><display-name>Harbour</display-name></channel>${
  programme("Harbour film", PAST_S, NOW_S - 1200)
}${programme("Harbour news", NOW_S - 1200, NOW_S + 3600)}</tv>`;

let web: TestWeb;
let served: ServedEngine;
let home: { path: string; remove(): Promise<void> };
let screen: Program;
let kodi: Program;
let rpcUrl: string;

before(async () => {
  web = await serveWeb((request, response) => {
    if (request.url === "/guide.xml") return void response.end(GUIDE);
    const media = new EndlessClip();
    response.writeHead(200, { "content-type": "video/mp2t" }).write(media.next(4000));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  served = await serveEngine({ accessToken: TOKEN });
  const entry = 'tvg-id="a" catchup="append" catchup-source="?utc={utc}" catchup-days="3"';
  const list = `#EXTM3U url-tvg="${web.base}/guide.xml"\n#EXTINF:-1 ${entry},Harbour\n${web.base}/live\n`;
  const api = `${served.url}/server/api?token=${TOKEN}&method=`;
  await fetch(`${api}playlist_import`, { method: "POST", body: list });
  await until("the guide was read", async () => {
    const { result } = await (await fetch(`${api}epg_sources`)).json();
    return result.sources[0]?.programmes === 2;
  }, 60_000);
  home = await temporaryDirectory();
  const free = createServer();
  const port = await listen(free);
  await stop(free);
  rpcUrl = `http://127.0.0.1:${port}/jsonrpc`;
  await settings("guisettings.xml", {
    "services.webserver": "true",
    "services.webserverport": String(port),
    "services.webserverauthentication": "false",
    "services.esenabled": "false",
    "services.zeroconf": "false",
    // A programme that is selected plays, if it is over.
    "epg.selectaction": "5",
  });
  await settings(`addon_data/${CLIENT}/settings.xml`, {
    m3uPathType: "1",
    m3uUrl: `${served.url}/engine/playlist.m3u?failover=1`,
    epgPathType: "1",
    catchupEnabled: "true",
    catchupDays: "3",
  });
  // A sound device that takes everything.
  await writeFile(`${home.path}/.asoundrc`, "pcm.!default { type null }\nctl.!default { type null }\n");
  screen = start("Xvfb", ["-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp"]);
  const [display] = await screen.line(/^\d+$/);
  kodi = start(KODI, ["--standalone", "--windowing=x11"], {
    env: { HOME: home.path, DISPLAY: `:${display}`, LIBGL_ALWAYS_SOFTWARE: "1", KODI_AE_SINK: "ALSA" },
  });
  await until("Kodi serves", async () => (await fetch(rpcUrl).catch(() => null))?.ok === true, 90_000);
  await rpc("Addons.SetAddonEnabled", { addonid: CLIENT, enabled: true });
});
after(async () => {
  await kodi?.stop();
  await screen?.stop();
  await served?.close();
  await web?.close();
  await home?.remove();
});

async function settings(name: string, values: Record<string, string>): Promise<void> {
  const path = `${home.path}/.kodi/userdata/${name}`;
  await mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  const fields = Object.entries(values).map(([id, value]) => `<setting id="${id}">${value}</setting>`);
  await writeFile(path, `<settings version="2">${fields.join("")}</settings>`);
}

// deno-lint-ignore no-explicit-any -- what Kodi answers
async function rpc(method: string, params: Record<string, unknown> = {}): Promise<any> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(rpcUrl, { method: "POST", body, headers: { "content-type": "application/json" } });
  return (await response.json()).result;
}

/** Seconds that the player has played; 0: nothing plays. */
async function playedS(): Promise<number> {
  const [player] = await rpc("Player.GetActivePlayers") ?? [];
  if (player === undefined) return 0;
  const { time } = await rpc("Player.GetProperties", { playerid: player.playerid, properties: ["time"] }) ?? {};
  return time === undefined ? 0 : (time.hours * 60 + time.minutes) * 60 + time.seconds + time.milliseconds / 1000;
}

test("Kodi's client for M3U lists has the engine's channels and guide, and plays one, and what it sent earlier", async () => {
  // deno-lint-ignore no-explicit-any -- what Kodi answers
  let channel: any;
  await until("the channel is there", async () => {
    channel = (await rpc("PVR.GetChannels", { channelgroupid: "alltv" }))?.channels?.[0];
    return channel !== undefined;
  }, 60_000);
  assertEquals(channel.label, "Harbour");
  await until("its guide is there", async () => {
    const asked = { channelid: channel.channelid, properties: ["title"] };
    const broadcasts: { title: string }[] = (await rpc("PVR.GetBroadcasts", asked))?.broadcasts ?? [];
    return broadcasts.map(({ title }) => title).sort().join() === "Harbour film,Harbour news";
  }, 60_000);
  // It asks whether its client is to be enabled, which is enabled by then.
  await until("no question is open", async () => {
    const { currentwindow } = await rpc("GUI.GetProperties", { properties: ["currentwindow"] });
    if (currentwindow.label !== "Yes / No dialog") return true;
    await rpc("Input.Back");
    return false;
  });
  await rpc("GUI.ActivateWindow", { window: "tvguide" });
  await until("the film is chosen in the guide", async () => {
    const { currentcontrol } = await rpc("GUI.GetProperties", { properties: ["currentcontrol"] });
    if (currentcontrol.label === "Harbour film") return true;
    if (currentcontrol.label === "Harbour news") await rpc("Input.Left");
    return false;
  }, 60_000);
  await rpc("Input.Select");
  // It looks at another time first, to see what kind of stream comes.
  await until(
    "the provider is asked for that time",
    () =>
      web.asked.some(({ url }) => {
        const [, utc] = /^\/live\?utc=(\d+)$/.exec(url!) ?? [];
        return Math.abs(Number(utc) - PAST_S) <= EARLY_S;
      }),
    60_000,
  );
  await until("it plays", async () => await playedS() > 0, 60_000);
  assert(!web.asked.some(({ url }) => url === "/live"));
  await rpc("Player.Open", { item: { channelid: channel.channelid } });
  await until("the channel is asked for", () => web.asked.some(({ url }) => url === "/live"), 60_000);
});
