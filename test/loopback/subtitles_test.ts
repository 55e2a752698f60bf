/** HLS with the subtitles that lie beside a film in its torrent. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { checkTs } from "../support/ts-check.ts";
import { startSession } from "./support.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const SRT = "1\n00:00:01,000 --> 00:00:02,000\nAhoy\n";

let season: SeededFiles;
let served: ServedEngine;
before(async () => {
  season = await seedFiles([
    { path: "One.mp4", bytes: clip("mp4-30fps.mp4") },
    { path: "One.en.srt", bytes: bytes(SRT) },
    { path: "One.ru.srt", bytes: new Uint8Array([...bytes("1\n00:00:01,000 --> 00:00:02,000\n"), 0xc4, 0xe0]) },
    { path: "Two.mkv", bytes: clip("mkv-cues.mkv") },
    { path: "Two.vtt", bytes: bytes("WEBVTT\n\n00:01.000 --> 00:02.000\nTwo\n") },
    { path: "Three.ts", bytes: clip("ts-188.ts") },
    { path: "Three.srt", bytes: bytes(SRT) },
    { path: "Four.mp4", bytes: clip("mp4-open-gop.mp4") },
  ], { name: "Season" });
  served = await serveEngine();
});
after(async () => {
  await served?.close();
  await season?.close();
});

const text = async (url: string) => {
  const response = await fetch(url);
  assertEquals(response.status, 200, url);
  return await response.text();
};
const start = (index: number, more: Record<string, string> = {}) =>
  startSession(served, "manifest.m3u8", { magnet: season.magnet, _idx: String(index), pid: `p${index}`, ...more });
const urls = (playlist: string) => playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
const renditions = (playlist: string) =>
  [...playlist.matchAll(/^#EXT-X-MEDIA:.*URI="([^"]+)"$/gm)].map(([, url]) => url!);

test("a start with subtitles=1 returns a multivariant playlist, without it the film's own", async () => {
  const { playback_url } = await start(0, { subtitles: "1" });
  const master = await text(playback_url);
  assertMatch(
    master,
    /#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=NO,FORCED=NO,URI="/,
  );
  assertMatch(master, /#EXT-X-STREAM-INF:BANDWIDTH=\d+,.*SUBTITLES="subtitles"/);
  const [english, russian] = renditions(master);
  const playlist = await text(english!);
  assertMatch(playlist, /#EXT-X-ENDLIST/);
  assertMatch(
    await text(urls(playlist)[0]!),
    /^WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00\.000\n\n00:00:02\.4\d\d --> 00:00:03\.4\d\d\nAhoy\n\n$/,
  );
  assertMatch(await text(urls(await text(russian!))[0]!), /Да/);
  const film = await text(urls(master)[0]!);
  assertMatch(film, /#EXTINF/);
  assertEquals(film, await text(playback_url.replace(/\?.*/, "")));
  assertEquals((await start(0)).playback_url, playback_url.replace(/\?.*/, ""));
});

test("where playing begins stays in the film's own playlist", async () => {
  const { playback_url } = await start(0, { subtitles: "1", start_from: "4" });
  assertMatch(await text(urls(await text(playback_url))[0]!), /#EXT-X-START:TIME-OFFSET=4\.000/);
});

for (const [index, what] of [[0, "MP4"], [3, "Matroska"], [5, "MPEG TS"]] as const) {
  test(`subtitles use the clock of the pictures: ${what}`, async () => {
    const master = await text((await start(index, { subtitles: "1" })).playback_url);
    const vtt = await text(urls(await text(renditions(master)[0]!))[0]!);
    const [, hours, minutes, seconds] = /^(\d+):(\d\d):(\d\d\.\d{3}) -->/m.exec(vtt)!.map(Number);
    // The cue of these files begins at 1 s.
    const zero = ((hours! * 60 + minutes!) * 60 + seconds! - 1) * 90_000;
    const [first] = urls(await text(urls(master)[0]!));
    const { streams } = checkTs(new Uint8Array(await (await fetch(first!)).arrayBuffer()));
    const shown = Math.min(...streams[0]!.units.map(({ pts }) => pts));
    // The first picture of these clips is shown at 0; nobody notices a tenth of a second.
    assert(Math.abs(shown - zero) <= 9000, `${shown} ${zero}`);
  });
}

test("subtitles=1 is renditions=1, of a film without any, too; unknown subtitle numbers are not found", async () => {
  const { playback_url } = await start(7, { subtitles: "1" });
  assertEquals((await start(7, { renditions: "1" })).playback_url, playback_url);
  const master = await text(playback_url);
  assertMatch(master, /#EXT-X-STREAM-INF:.*AUDIO="sound"/);
  assert(!master.includes("SUBTITLES"), master);
  assertEquals(await text(playback_url.replace("renditions", "subtitles")), master);
  assertMatch(await text(urls(master)[0]!), /#EXTINF/);
  for (const path of ["?subtitle=0", "?subtitle=x", "?subtitle=-1"]) {
    assertEquals((await fetch(playback_url.replace(/\?.*/, path))).status, 404, path);
  }
  const beside = playback_url.replace("/m/", "/s/").replace(/\.m3u8.*/, "");
  for (const name of ["0.vtt", "x.vtt", "0.srt", "99999.vtt"]) {
    assertEquals((await fetch(`${beside}/${name}`)).status, 404, name);
  }
});
