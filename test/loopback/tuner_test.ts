/**
 * Television servers at the tuner's front, over real connections: the requests of Jellyfin 10.11 in the order and with the fields of
 * its source (`HdHomerunHost`, `SharedHttpStream`), and those of Plex as tuners' logs have them, whose player is FFmpeg's.
 */
import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { type OnAir, onAir } from "../support/live.ts";
import { until } from "../support/until.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const JELLYFIN = {
  "user-agent": "Jellyfin-Server/10.11.0",
  accept: "application/json; q=1.0, application/xml; q=0.9, */*; q=0.8",
  "accept-encoding": "gzip, deflate, br",
};
const FFMPEG = {
  "user-agent": "Lavf/60.16.100",
  accept: "*/*",
  range: "bytes=0-",
  connection: "close",
  "icy-metadata": "1",
};
const PACKET_BYTES = 188;

let air: OnAir;

before(async () => {
  air = await onAir({ viewer: { fronts: ["hdhomerun"], accessToken: TOKEN } });
  const list = `#EXTM3U\n#EXTINF:-1 tvg-chno="5.1",News & more\n${air.magnet}\n`;
  const body = new FormData();
  body.set("file", new File([list], "list.m3u"));
  const api = async (query: string, init: RequestInit = {}) =>
    (await (await fetch(`${air.viewer.url}/server/api?token=${TOKEN}&${query}`, init)).json()).result;
  const { task_id: task } = await api("method=playlist_import", { method: "POST", body });
  await until("the list is imported", async () => (await api(`method=get_task&task_id=${task}`)).state === "done");
});
after(() => air?.close());

/** One request, as a server that knows nothing of `fetch` sends it. */
function ask(url: string, headers: Record<string, string>, method = "GET"): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers }, resolve).on("error", reject).end();
  });
}
async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}
async function jsonOf(path: string, headers: Record<string, string> = {}) {
  const response = await ask(path.startsWith("http") ? path : `${air.viewer.url}${path}`, headers);
  assertEquals(response.statusCode, 200, path);
  assertMatch(response.headers["content-type"] ?? "", /^application\/json/);
  return JSON.parse(await textOf(response));
}

/** Watches a channel until it has some packets of MPEG TS, and leaves. */
async function watch(url: string, headers: Record<string, string>): Promise<void> {
  const response = await ask(url, headers);
  assertEquals([response.statusCode, response.headers["content-type"]], [200, "video/mp2t"], url);
  // A broadcast has no length, so the response must not announce one.
  assertEquals([response.headers["content-length"], response.headers["content-range"]], [undefined, undefined]);
  let read = 0;
  for await (const chunk of response) {
    for (let at = -read % PACKET_BYTES; at < chunk.length; at += PACKET_BYTES) {
      if (at >= 0) assertEquals(chunk[at], 0x47, `byte ${read + at}`);
    }
    read += chunk.length;
    if (read > 100 * PACKET_BYTES) break;
  }
  response.destroy();
  assert(read > 100 * PACKET_BYTES, `${read} bytes`);
}

test("Jellyfin accepts the tuner, its lineup, and a channel, unchanged or converted", async () => {
  // `Validate`, when it is added; the same again for each library scan.
  const model = await jsonOf("/discover.json", JELLYFIN);
  for (const name of ["FriendlyName", "ModelNumber", "FirmwareName", "FirmwareVersion", "DeviceID", "DeviceAuth"]) {
    assertEquals(typeof model[name], "string", name);
  }
  assert(Number.isInteger(model.TunerCount) && model.TunerCount > 0);
  assertEquals([model.BaseURL, model.LineupURL], [air.viewer.url, `${air.viewer.url}/lineup.json`]);

  const lineup = await jsonOf(model.LineupURL, JELLYFIN);
  assertEquals(lineup, [{ GuideNumber: "5.1", GuideName: "News & more", URL: `${air.viewer.url}/auto/v5.1` }]);

  // Jellyfin asks tuners of such models to convert, and their own players to choose a quality: this one makes none.
  assertEquals(/hdtc/i.test(model.ModelNumber), false);
  // Jellyfin's own reader, then its prober. What old settings ask for is left to the server.
  await watch(lineup[0].URL, JELLYFIN);
  await watch(`${lineup[0].URL}?transcode=heavy`, JELLYFIN);
  await Promise.all([watch(lineup[0].URL, JELLYFIN), watch(lineup[0].URL, FFMPEG)]);
});

test("Plex finds the tuner, scans it and plays a channel with FFmpeg", async () => {
  for (let n = 0; n < 2; n++) {
    assertEquals((await jsonOf("/discover.json")).TunerCount > 0, true);
    const status = await jsonOf("/lineup_status.json");
    assertEquals([status.ScanInProgress, status.ScanPossible, status.SourceList], [0, 1, ["Cable"]]);
  }
  const before = await jsonOf("/lineup.json");
  const form = { "content-type": "application/x-www-form-urlencoded", "content-length": "0" };
  const scan = await ask(`${air.viewer.url}/lineup.post?scan=start&source=Cable`, form, "POST");
  assertEquals([scan.statusCode, await textOf(scan)], [200, "{}"]);
  assertEquals((await jsonOf("/lineup_status.json")).ScanInProgress, 0);
  assertEquals(await jsonOf("/lineup.json"), before);
  const device = await ask(`${air.viewer.url}/device.xml`, {});
  assertMatch(await textOf(device), /<friendlyName>millrace<\/friendlyName>[^]*<UDN>uuid:/);

  await watch(before[0].URL, FFMPEG);
});
