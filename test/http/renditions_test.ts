/** HLS with a choice of sounds: what the multivariant playlist names, and how the parts of renditions are served. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { fixture } from "../media/support/files.ts";
import { twoSounds } from "../playback/live-support.ts";
import { settle } from "../support/fake-clock.ts";
import { INFOHASH, playbackApp } from "./playback-app.ts";

const TWO = { name: "two.mkv", bytes: fixture("mkv-two-audio.mkv") };
const MP4 = { name: "two.mp4", bytes: fixture("mp4-two-audio.mp4") };
const ONE = { name: "one.mkv", bytes: fixture("mkv-cues.mkv") };
const FORCED = { name: "one.de.forced.srt", bytes: new TextEncoder().encode("1\n00:00:01,000 --> 00:00:02,000\nA\n") };
const SDH = { name: "one.de.SDH.srt", bytes: FORCED.bytes };

type App = ReturnType<typeof playbackApp>;

async function masterOf(app: App, more: string) {
  const { playback_url } = await app.start("/engine/manifest.m3u8", more);
  return { playback_url: playback_url!, text: await (await app.get(playback_url!)).text() };
}

const linksIn = (list: string) => list.split("\n").filter((line) => line.startsWith("http"));

test("renditions=1 lists the sounds, and a variant for each codec of theirs", async () => {
  const app = playbackApp([TWO]);
  const { playback_url, text } = await masterOf(app, "renditions=1&preferred_audio_language=de");
  const url = playback_url.replace(/\?.*/, "");
  const sounds = text.split("\n").filter((line) => line.startsWith("#EXT-X-MEDIA:TYPE=AUDIO"));
  const flags = (group: string, name: string, tag: string) =>
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",LANGUAGE="${tag}",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="1"`;
  assertEquals(sounds, [
    `${flags("ac-3", "German", "de")},URI="${url}?rendition=a2"`,
    `${flags("mp4a.40.2", "English", "en")},URI="${url}?rendition=a1"`,
  ]);
  const variants = text.split("\n").filter((line) => line.startsWith("#EXT-X-STREAM-INF"));
  const end = (sound: string) =>
    new RegExp(`CODECS="avc1[.][0-9A-F]{6},${sound}",RESOLUTION=\\d+x\\d+,FRAME-RATE=25[.]000,AUDIO="${sound}"$`);
  assertMatch(variants[0]!, end("ac-3"));
  assertMatch(variants[1]!, end("mp4a.40.2"));
  assertEquals(linksIn(text), [`${url}?rendition=v`, `${url}?rendition=v`]);
  // Without the parameter the playlist is the one of the film, with all of its sounds in its segments.
  const usual = await (await app.get((await app.start("/engine/manifest.m3u8")).playback_url!)).text();
  assert(usual.includes("#EXTINF") && !usual.includes("EXT-X-MEDIA:"), usual);
});

for (const film of [TWO, MP4]) {
  test(`pictures and sounds of ${film.name} are served one by one, with validators`, async () => {
    const app = playbackApp([film]);
    const { text } = await masterOf(app, "renditions=1");
    const lists = ["v", "a1", "a2"].map((name) => /(http[^"\n]*\?)/.exec(text)![1]! + `rendition=${name}`);
    const all = await Promise.all(lists.map(async (list) => linksIn(await (await app.get(list)).text())));
    assertEquals(new Set(all.map(({ length }) => length)).size, 1);
    assertMatch(all[2]![0]!, new RegExp(`/engine/s/${INFOHASH}/[0-9a-f]{32}/a2-0[.]ts$`));
    for (const [i, links] of all.entries()) {
      const response = await app.get(links[0]!);
      const bytes = new Uint8Array(await response.arrayBuffer());
      assertEquals([response.status, response.headers.get("content-type"), bytes[0]], [200, "video/mp2t", 0x47]);
      const tag = response.headers.get("etag")!;
      assertEquals((await app.get(links[0]!, { headers: { "if-none-match": tag } })).status, 304);
      const part = await app.get(links[0]!, { headers: { range: "bytes=188-375" } });
      // Slots of a size that is known in advance would double a sound.
      const hasRanges = i === 0;
      assertEquals([part.status, response.headers.get("content-length")], [
        hasRanges ? 206 : 200,
        hasRanges ? String(bytes.length) : null,
      ]);
      if (hasRanges) assertEquals(new Uint8Array(await part.arrayBuffer()), bytes.subarray(188, 376));
      else await part.body?.cancel();
    }
    const [first] = all[1]!;
    for (const name of ["a9-0.ts", "a1-99.ts", "a1-0.m4s", "a1-init.mp4", "v-x.ts", "x-0.ts"]) {
      assertEquals((await app.get(first!.replace("a1-0.ts", name))).status, 404, name);
    }
    assertEquals((await app.get(lists[1]!.replace("=a1", "=a0"))).status, 404);
  });
}

test("where playing begins stands in the playlist of the pictures", async () => {
  const app = playbackApp([MP4]);
  const { text } = await masterOf(app, "renditions=1&start_from=4");
  const [pictures] = linksIn(text);
  assertMatch(await (await app.get(pictures!)).text(), /#EXT-X-START:TIME-OFFSET=4\.000/);
  // ffmpeg would begin with the first segment of the list.
  const cut = await (await app.get(pictures!, { headers: { "user-agent": "Lavf/59.27.100" } })).text();
  assert(!cut.includes("EXT-X-START") && !cut.includes("/v-0.ts") && cut.includes("/v-1.ts"), cut);
});

test("renditions=1 of a transport stream gives up when the swarm brings nothing", async () => {
  const app = playbackApp([{ name: "two.ts", bytes: (await twoSounds()).clip }]);
  const { playback_url } = await app.start("/engine/manifest.m3u8", "renditions=1");
  await settle();
  Object.assign(app.swarm, { silentReads: true, downloadBytesPerSecond: 0 });
  const pending = app.get(playback_url!);
  await settle();
  for (let s = 0; s < 120; s++) await app.clock.advanceAsync(1000);
  const response = await pending;
  assertEquals([response.status, /^start timeout/.test(await response.text())], [504, true]);
});

test("a film of one sound keeps it with its pictures, and lists what is beside it, forced texts first", async () => {
  const app = playbackApp([ONE, SDH, FORCED]);
  const { playback_url, text } = await masterOf(app, "renditions=1");
  const url = playback_url.replace(/\?.*/, "");
  assertEquals(linksIn(text), [url]);
  const [sound, ...texts] = text.split("\n").filter((line) => line.startsWith("#EXT-X-MEDIA"));
  assertMatch(sound!, /TYPE=AUDIO,GROUP-ID="sound",NAME="[^"]+",.*DEFAULT=YES,AUTOSELECT=YES,CHANNELS="1"$/);
  assertMatch(text, /#EXT-X-STREAM-INF:.*AUDIO="sound",SUBTITLES="subtitles"/);
  assertEquals(texts.map((line) => /NAME="([^"]+)"/.exec(line)![1]), ["German, forced", "German, SDH"]);
  assertMatch(texts[0]!, /FORCED=YES/);
  const forDeaf = "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound";
  assert(texts[1]!.includes(`CHARACTERISTICS="${forDeaf}"`), texts[1]);
});

test("a film of one sound in fragmented MP4 does not list it without an address", async () => {
  const { text } = await masterOf(playbackApp([ONE]), "renditions=1&playlist_output_format_vod=fmp4");
  assertMatch(text, /#EXT-X-STREAM-INF:.*CODECS="avc1\.[^",]+,mp4a\.40\.2"/);
  assert(!text.includes("AUDIO"), text);
});
