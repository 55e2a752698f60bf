/** Players that we didn't write play every fixture, in MPEG TS and HLS, to the end and with seeks. */
import { writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip, clipPath, PLAYABLE, UNCARRIABLE } from "../support/fixtures.ts";
import { run } from "../support/process.ts";

let seeder: SeededFiles;
let served: ServedEngine;
const ALL = [...PLAYABLE, ...UNCARRIABLE];

before(async () => {
  seeder = await seedFiles(ALL.map((name) => ({ path: name, bytes: clip(name) })), { name: "fixtures" });
  served = await serveEngine();
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

const address = (path: "getstream" | "manifest.m3u8", name: string, more: Record<string, string> = {}) => {
  const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(ALL.indexOf(name)), ...more });
  return `${served.url}/engine/${path}?${query}`;
};

/** The address a middleware would hand to the player. */
async function playbackUrl(path: "getstream" | "manifest.m3u8", name: string, pid = "player"): Promise<string> {
  const answer = await (await fetch(address(path, name, { format: "json", pid: `${pid}-${path}` }))).json();
  assertEquals(answer.error, null, name);
  return answer.response.playback_url;
}

/** Duration in seconds according to ffprobe; null when the input has none. */
async function durationOf(input: string): Promise<number | null> {
  const { text } = await run("ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", input]);
  const seconds = Number.parseFloat(text);
  return Number.isNaN(seconds) ? null : seconds;
}

const sourceDurations = new Map<string, Promise<number | null>>();

/** Duration that the output of a clip must have, seconds; null when the clip has none. */
function sourceDuration(name: string): Promise<number | null> {
  let duration = sourceDurations.get(name);
  if (duration === undefined) sourceDurations.set(name, duration = readDuration(name));
  return duration;
}

async function readDuration(name: string): Promise<number | null> {
  if (!/trimmed/.test(name)) return await durationOf(clipPath(name));
  // Its edit list hides pictures that the first visible one needs, and MPEG TS has no way to hide them.
  const directory = await temporaryDirectory();
  const copy = `${directory.path}/copy.ts`;
  await run("ffmpeg", ["-nostdin", "-v", "error", "-i", clipPath(name), "-map", "0", "-c", "copy", copy]);
  const seconds = await durationOf(copy);
  await directory.remove();
  return seconds;
}

/** What ffmpeg says while it decodes `input`; some sources make it complain by themselves (times rounded to milliseconds). */
async function complaints(input: string): Promise<string[]> {
  const { code, stderr } = await run("ffmpeg", [
    "-v",
    "error",
    "-nostdin",
    "-i",
    input,
    "-map",
    "0:v?",
    "-map",
    "0:a?",
    "-f",
    "null",
    "-",
  ]);
  assertEquals(code, 0, `${input}: ${stderr}`);
  return [
    ...new Set(stderr.split("\n").filter((line) => line !== "").map((line) => line.replace(/0x[0-9a-f]+|\d+/g, "N"))),
  ];
}

for (const path of ["getstream", "manifest.m3u8"] as const) {
  test(`ffmpeg decodes ${path} of every fixture from its selector URL with no message that the source doesn't cause`, async () => {
    for (const name of PLAYABLE) {
      const made = await complaints(address(path, name));
      const source = made.length === 0 ? [] : await complaints(clipPath(name));
      assertEquals(made.filter((line) => !source.includes(line)), [], name);
    }
  });

  test(`ffprobe sees the source's duration in ${path} of every fixture`, async () => {
    for (const name of PLAYABLE) {
      const url = await playbackUrl(path, name);
      // Without an index that can be read apart the MPEG TS has no length, and so no duration to probe.
      if (path === "getstream" && (await fetch(url, { method: "HEAD" })).headers.get("accept-ranges") === "none") {
        continue;
      }
      const [made, source] = [await durationOf(url), await sourceDuration(name)];
      if (source === null) continue;
      assert(made !== null && Math.abs(made - source) < 0.5, `${name}: ${made} s of ${source} s`);
    }
  });

  test(`mpv plays ${path} of every fixture to the end`, () => playAll(path));

  test(`mpv starts ${path} of every fixture in the middle and towards the end`, async () => {
    for (const start of ["50%", "75%"]) await playAll(path, `--start=${start}`);
  });
}

/** Fixtures that one mpv plays, one after the other: its start takes longer than most of them. */
const FIXTURES_PER_MPV = 9;

/** Plays all fixtures; with `flags` of mpv. */
async function playAll(path: "getstream" | "manifest.m3u8", ...flags: string[]): Promise<void> {
  for (let i = 0; i < PLAYABLE.length; i += FIXTURES_PER_MPV) {
    const names = PLAYABLE.slice(i, i + FIXTURES_PER_MPV);
    const urls: string[] = [];
    for (const [n, name] of names.entries()) urls.push(await playbackUrl(path, name, `mpv-${n}`));
    const { code, text } = await run("mpv", [...MPV, ...flags, ...urls], { timeoutMs: 60_000 * urls.length });
    const what = `${flags} ${names}: ${text.slice(-2000)}`;
    assertEquals(code, 0, what);
    // It says so only when none of them failed.
    assertMatch(text, /Exiting\.\.\. \(End of file\)/, what);
    assertEquals(text.match(/^Playing: /gm)?.length, names.length, what);
  }
}

const MPV = [
  "--no-config",
  "--vo=null",
  "--ao=null",
  "--ao-null-untimed=yes",
  "--untimed",
  "--msg-level=all=warn,cplayer=info",
  "--network-timeout=20",
];

test("ffprobe finds video in a range from the middle of the MPEG TS", async () => {
  for (const name of ["mp4-end.mp4", "mkv-cues.mkv", "ts-188.ts", "mkv-hevc-eac3.mkv"]) {
    const url = await playbackUrl("getstream", name);
    const size = Number((await fetch(url, { method: "HEAD" })).headers.get("content-length"));
    const part = await fetch(url, { headers: { range: `bytes=${Math.floor(size / 2)}-` } });
    assertEquals(part.status, 206);
    const bytes = new Uint8Array(await part.arrayBuffer());
    const directory = await temporaryDirectory();
    await writeFile(`${directory.path}/part.ts`, bytes);
    const { text } = await run("ffprobe", [
      "-v",
      "quiet",
      "-show_entries",
      "stream=codec_type",
      "-of",
      "csv=p=0",
      `${directory.path}/part.ts`,
    ]);
    await directory.remove();
    assert(text.split("\n").includes("video"), `${name}: ${text}`);
  }
});

test("a codec that MPEG TS cannot carry is refused with 415 and its name, sound only where no AAC is wanted", async () => {
  const codecs: Readonly<Record<string, RegExp>> = {
    "webm-vp9-opus.webm": /vp9/i,
    "audio.flac": /flac/,
    "audio.opus": /opus/,
    "audio-vorbis.ogg": /vorbis/,
    "audio.wav": /pcm/,
  };
  for (const name of UNCARRIABLE) {
    const response = await fetch(`${address("getstream", name)}&transcode_audio=0`, { redirect: "manual" });
    assertEquals(response.status, 415);
    assertMatch(await response.text(), codecs[name]!);
    // Unless the request says otherwise, only sound is converted, to AAC; a picture is never encoded again.
    const unasked = await fetch(address("getstream", name), { redirect: "manual" });
    await unasked.body?.cancel();
    assertEquals(unasked.status, name.endsWith(".webm") ? 415 : 302);
  }
});
