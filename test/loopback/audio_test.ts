/** Plays an album over HTTP: sound-only files whose containers have no index. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { concatBytes, constantMp3, id3Tag, variableMp3, vbrHeader } from "../media/support/audio-builder.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { checkTs } from "../support/ts-check.ts";

const CONSTANT = constantMp3(4000);
const VARIABLE = variableMp3(3000);
const FILES = [
  { path: "album/01 constant.mp3", bytes: concatBytes([id3Tag(100_000), vbrHeader("Info", 4000), ...CONSTANT]) },
  { path: "album/02 variable.mp3", bytes: concatBytes([vbrHeader("Xing", 3000), ...VARIABLE]) },
  { path: "album/03 short.aac", bytes: clip("audio.aac") },
  { path: "album/04 lossless.flac", bytes: clip("audio.flac") },
  { path: "album/05 speech.opus", bytes: clip("audio.opus") },
  { path: "album/cover.jpg", bytes: new Uint8Array(3_000_000) },
];

let seeder: SeededFiles;
let served: ServedEngine;

before(async () => {
  seeder = await seedFiles(FILES, { name: "music" });
  served = await serveEngine({ startTimeoutMs: 15_000 });
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

const address = (path: string, more: Record<string, string> = {}) =>
  `${served.url}/engine/${path}?${new URLSearchParams({ magnet: seeder.magnet, ...more })}`;
const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());

async function segmentsOf(index: number): Promise<{ durationsS: number[]; bodies: Uint8Array[] }> {
  const list = await (await fetch(address("manifest.m3u8", { _idx: String(index) }))).text();
  const durationsS = [...list.matchAll(/#EXTINF:([\d.]+)/g)].map((match) => Number(match[1]));
  const urls = list.split("\n").filter((line) => line.startsWith("http"));
  const bodies: Uint8Array[] = [];
  // In reverse order, since each segment must be independent.
  for (const url of urls.toReversed()) bodies.unshift(await bytesOf(await fetch(url)));
  return { durationsS, bodies };
}

test("MP3 of one bit rate has an exact length and ranges in MPEG TS, and is the file chosen by default", async () => {
  const whole = await fetch(address("getstream"));
  assertEquals([whole.status, whole.headers.get("accept-ranges")], [200, "bytes"]);
  const body = await bytesOf(whole);
  assertEquals(body.length, Number(whole.headers.get("content-length")));
  const report = checkTs(body);
  assertEquals(report.problems, []);
  assertEquals(report.streams.map((stream) => soundFrames(stream).length), [CONSTANT.length]);
  const part = await fetch(whole.url, { headers: { range: "bytes=1000000-1000999" } });
  assertEquals([part.status, await bytesOf(part)], [206, body.slice(1_000_000, 1_001_000)]);
  const { durationsS, bodies } = await segmentsOf(0);
  assertEquals(concatBytes(bodies), body);
  assert(Math.abs(durationsS.reduce((sum, s) => sum + s, 0) - CONSTANT.length * 1152 / 44100) < 0.01);
});

test("MP3 of variable bit rate is sent without a length, and its segments are the whole", async () => {
  const whole = await fetch(address("getstream", { _idx: "1" }));
  assertEquals(
    [whole.status, whole.headers.get("accept-ranges"), whole.headers.get("content-length")],
    [200, "none", null],
  );
  const body = await bytesOf(whole);
  assertEquals(checkTs(body).problems, []);
  assertEquals(checkTs(body).streams.map((stream) => soundFrames(stream).length), [VARIABLE.length]);
  const { durationsS, bodies } = await segmentsOf(1);
  assertEquals(concatBytes(bodies), body);
  assert(Math.abs(durationsS.reduce((sum, s) => sum + s, 0) - VARIABLE.length * 1152 / 44100) < 0.01);
});

test("AAC plays, sound that needs a transcoder is refused with 415 without one, and every file can be fetched unchanged", async () => {
  const aac = await fetch(address("getstream", { _idx: "2" }));
  assertEquals(aac.status, 200);
  assertEquals(checkTs(await bytesOf(aac)).problems, []);
  for (const [index, codec] of [[3, "flac"], [4, "opus"]] as const) {
    for (const path of ["getstream", "manifest.m3u8"]) {
      const refused = await fetch(address(path, { _idx: String(index), transcode_audio: "0" }));
      const text = await refused.text();
      assertEquals(refused.status, 415);
      assertStringIncludes(text, codec);
      assertMatch(text, /transcode_audio=1/);
    }
  }
  const types = ["audio/mpeg", "audio/mpeg", "audio/aac", "audio/flac", "audio/ogg"];
  for (const [index, type] of types.entries()) {
    const file = await fetch(address("getfile", { _idx: String(index) }));
    assertEquals([file.status, file.headers.get("content-type")], [200, type]);
    assertEquals(await bytesOf(file), FILES[index]!.bytes);
  }
});

test("stat of a session on sound has the same fields as for video", async () => {
  const started = await (await fetch(address("getstream", { _idx: "1", format: "json", pid: "stat" }))).json();
  assertEquals(started.error, null);
  const { response } = await (await fetch(started.response.stat_url)).json();
  assertEquals([response.selected_file_index, response.is_live, response.error_message], [1, 0, null]);
});
