/** Players that we didn't write find the sounds of a film in its multivariant playlist, and play the one that is wanted. */
import { chmod, readFile, rm } from "node:fs/promises";
import process from "node:process";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip, clipPath } from "../support/fixtures.ts";
import { run } from "../support/process.ts";

/** Films of two tones, an English and a German one: in MPEG TS of two codecs, in fragmented MP4 of one. */
const FILMS = ["mkv-two-audio.mkv", "mp4-two-audio.mp4", "vp9-two-opus.mkv"];
/** User id of "nobody": VLC refuses to run as root. */
const UNPRIVILEGED = ["--reuid=65534", "--regid=65534", "--clear-groups"];

let seeder: SeededFiles;
let served: ServedEngine;
let home: { path: string; remove(): Promise<void> };

before(async () => {
  home = await temporaryDirectory();
  await chmod(home.path, 0o777);
  const path = `${home.path}/vp9.mkv`;
  const graphs = ["testsrc2=s=160x90:r=25:d=6", "sine=440:r=48000:d=6", "sine=660:r=48000:d=6"];
  const inputs = graphs.flatMap((graph) => ["-f", "lavfi", "-i", graph]);
  const coders = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "50", "-c:a", "libopus"];
  const tags = ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=ger"];
  const maps = [0, 1, 2].flatMap((n) => ["-map", String(n)]);
  await run("ffmpeg", ["-nostdin", "-v", "error", ...inputs, ...maps, "-pix_fmt", "yuv420p", ...coders, ...tags, path]);
  const made = new Uint8Array(await readFile(path));
  const files = FILMS.map((name) => ({ path: name, bytes: name.startsWith("vp9") ? made : clip(name) }));
  seeder = await seedFiles(files, { name: "fixtures" });
  served = await serveEngine();
});
after(async () => {
  await served?.close();
  await seeder?.close();
  await home?.remove();
});

async function playlistOf(name: string): Promise<string> {
  const choice = { magnet: seeder.magnet, _idx: String(FILMS.indexOf(name)), pid: "renditions" };
  const query = new URLSearchParams({ ...choice, renditions: "1", format: "json" });
  const { response, error } = await (await fetch(`${served.url}/engine/manifest.m3u8?${query}`)).json();
  assertEquals(error, null);
  return response.playback_url;
}

/** Seconds and pitch of 16-bit sound at 48 kHz. */
function heard(wav: Uint8Array): { seconds: number; hertz: number } {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.byteLength);
  const channels = view.getUint16(22, true);
  const count = Math.floor((wav.length - 44) / 2 / channels);
  const sample = (i: number) => view.getInt16(44 + 2 * channels * i, true);
  const from = Math.floor(count / 4);
  let crossings = 0;
  for (let i = from + 1; i < count - from; i++) {
    if (sample(i - 1) < 0 && sample(i) >= 0) crossings++;
  }
  return { seconds: count / 48_000, hertz: crossings * 48_000 / (count - 2 * from) };
}

async function assertSame(
  file: string,
  wanted: ReturnType<typeof heard>,
  what: string,
): Promise<void> {
  const { seconds, hertz } = heard(new Uint8Array(await readFile(file)));
  assertLess(Math.abs(hertz - wanted.hertz), 15, `${what}: ${hertz} Hz`);
  assertLess(Math.abs(seconds - wanted.seconds), 0.4, `${what}: ${seconds} s`);
}

const PCM = ["-ac", "1", "-ar", "48000", "-c:a", "pcm_s16le"];

for (const name of FILMS) {
  test(`ffmpeg, mpv and VLC find both sounds of ${name}, and play the one that is wanted`, async () => {
    const url = await playlistOf(name);
    const show = ["-show_entries", "stream=codec_type:stream_tags=language", "-of", "json"];
    const { streams } = JSON.parse((await run("ffprobe", ["-v", "error", ...show, url])).text);
    const sounds = streams.filter((stream: { codec_type: string }) => stream.codec_type === "audio")
      .map((stream: { tags: { language: string } }) => stream.tags.language);
    assertEquals(new Set(sounds), new Set(["en", "de"]));
    const file = `${home.path}/heard.wav`;
    for (const [i, [language, tag]] of [["eng", "en"], ["ger", "de"]].entries()) {
      const source = name.startsWith("vp9") ? `${home.path}/vp9.mkv` : clipPath(name);
      await run("ffmpeg", ["-y", "-nostdin", "-v", "error", "-i", source, "-map", `0:a:${i}`, ...PCM, file]);
      const wanted = heard(new Uint8Array(await readFile(file)));
      await rm(file, { force: true });
      const map = ["-map", `0:a:${sounds.indexOf(tag!)}`];
      const { code, stderr } = await run("ffmpeg", ["-nostdin", "-v", "error", "-i", url, ...map, ...PCM, file]);
      assertEquals([code, stderr], [0, ""], name);
      await assertSame(file, wanted, `ffmpeg, ${name}, ${language}`);

      await rm(file, { force: true });
      const form = ["--audio-format=s16", "--audio-channels=mono", "--audio-samplerate=48000"];
      const toFile = ["--no-config", "--vo=null", "--ao=pcm", `--ao-pcm-file=${file}`, ...form, "--untimed"];
      const mpv = await run("mpv", [...toFile, `--alang=${tag},${language}`, url], { timeoutMs: 60_000 });
      assert(mpv.text.includes("End of file"), mpv.text.slice(-800));
      await assertSame(file, wanted, `mpv, ${name}, ${language}`);

      // VLC plays in real time: where it streams instead, it does not keep to the language.
      if (tag === "en" || name.startsWith("mp4")) continue;
      await rm(file, { force: true });
      const out = ["--aout=afile", `--audiofile-file=${file}`, "--no-video", `--audio-language=${tag}`];
      const vlc = ["cvlc", "-I", "dummy", "--no-media-library", ...out, "--play-and-exit", url];
      const command = ["env", `HOME=${home.path}`, ...vlc];
      const [program, ...args] = process.getuid?.() === 0 ? ["setpriv", ...UNPRIVILEGED, ...command] : command;
      const played = await run(program!, args, { timeoutMs: 60_000 });
      assertEquals(played.code, 0, `${played.text}${played.stderr}`.slice(-1500));
      await assertSame(file, wanted, `VLC, ${name}, ${language}`);
    }
  });
}
