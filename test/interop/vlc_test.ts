/** VLC plays the clips in MPEG TS and HLS to the end, and decodes the same as ffmpeg does from the clip. */
import { chmod, readFile, rm } from "node:fs/promises";
import process from "node:process";
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip, clipPath, PLAYABLE, UNCARRIABLE } from "../support/fixtures.ts";
import { run } from "../support/process.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let home: { path: string; remove(): Promise<void> };

before(async () => {
  seeder = await seedFiles(ALL.map((name) => ({ path: name, bytes: clip(name) })), { name: "fixtures" });
  served = await serveEngine();
  home = await temporaryDirectory();
  await chmod(home.path, 0o777);
});
after(async () => {
  await served?.close();
  await seeder?.close();
  await home?.remove();
});

const ALL = [...PLAYABLE, ...UNCARRIABLE];
const OUTPUTS = ["getstream", "manifest.m3u8"] as const;
/** Clips that one VLC plays. */
const CLIPS_PER_VLC = 9;
/** VLC never outputs the very last picture, and the one before only if its decoder had it ready. */
const HELD_PICTURES = 2;
/** Of the last moments of sound, seconds: an access unit, and what VLC's end cuts off. */
const HELD_SECONDS = 0.2;
/** User id of "nobody": VLC refuses to run as root. */
const UNPRIVILEGED = ["--reuid=65534", "--regid=65534", "--clear-groups"];

const address = (path: string, name: string, more: Record<string, string> = {}) => {
  const query = { magnet: seeder.magnet, _idx: String(ALL.indexOf(name)), pid: `vlc-${path}`, ...more };
  return `${served.url}/engine/${path}?${new URLSearchParams(query)}`;
};

/**
 * One VLC plays `urls` one after the other, since its start takes longer than most of them: each to its end into a file of raw
 * pictures or sound. Returns the paths of those files.
 */
async function decodeWithVlc(urls: readonly string[], what: "video" | "audio"): Promise<string[]> {
  const files = urls.map((_, i) => `${home.path}/decoded-${i}`);
  for (const file of files) await rm(file, { force: true });
  const chain = what === "video"
    ? "#transcode{vcodec=I420}:std{access=file,mux=dummy,dst="
    : "#transcode{acodec=s16l,channels=2,samplerate=48000}:std{access=file,mux=wav,dst=";
  const other = what === "video" ? "--no-sout-audio" : "--no-sout-video";
  const inputs = urls.flatMap((url, i) => [url, `:sout=${chain}${files[i]}}`]);
  const vlc = ["cvlc", "-I", "dummy", "--no-media-library", other, "--play-and-exit", ...inputs];
  const command = ["env", `HOME=${home.path}`, ...vlc];
  const [program, ...args] = process.getuid?.() === 0 ? ["setpriv", ...UNPRIVILEGED, ...command] : command;
  const { code, text, stderr } = await run(program!, args, { timeoutMs: 60_000 * urls.length });
  assertEquals(code, 0, `${urls.join(" ")}: ${text}${stderr}`.slice(-1500));
  return files;
}

/** `items`, as many at a time as one VLC plays. */
function* grouped<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += CLIPS_PER_VLC) yield items.slice(i, i + CLIPS_PER_VLC);
}

/** Kinds of streams in a clip, and the size of its pictures. */
async function probe(name: string): Promise<{ hasAudio: boolean; pictureBytes: number }> {
  const show = ["-show_entries", "stream=codec_type,width,height", "-of", "json"];
  const { streams } = JSON.parse((await run("ffprobe", ["-v", "error", ...show, clipPath(name)])).text);
  const video = streams.find((stream: { codec_type: string; width?: number }) => stream.width);
  return {
    hasAudio: streams.some((stream: { codec_type: string }) => stream.codec_type === "audio"),
    pictureBytes: video === undefined ? 0 : video.width * video.height * 3 / 2,
  };
}

/** Pictures of the clip as MPEG TS carries it: an edit list hides some of them in the clip itself. */
async function picturesOf(name: string): Promise<Uint8Array> {
  const copy = `${home.path}/copy.ts`, raw = `${home.path}/reference`;
  const quiet = ["-y", "-nostdin", "-v", "error"];
  await run("ffmpeg", [...quiet, "-i", clipPath(name), "-map", "0:v:0", "-c", "copy", copy]);
  const asIs = ["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo"];
  await run("ffmpeg", [...quiet, "-i", copy, "-map", "0:v:0", ...asIs, raw]);
  return new Uint8Array(await readFile(raw));
}

for (const output of OUTPUTS) {
  test(`VLC decodes from ${output} of every clip the pictures that ffmpeg decodes of the clip`, async () => {
    const clips: { name: string; pictureBytes: number }[] = [];
    for (const name of PLAYABLE) {
      const { pictureBytes } = await probe(name);
      // Of the clip with two programmes VLC takes the first, which has none.
      if (pictureBytes > 0 && name !== "ts-two-programs.ts") clips.push({ name, pictureBytes });
    }
    for (const group of grouped(clips)) {
      const files = await decodeWithVlc(group.map(({ name }) => address(output, name)), "video");
      for (const [i, { name, pictureBytes }] of group.entries()) {
        const [made, wanted] = [new Uint8Array(await readFile(files[i]!)), await picturesOf(name)];
        const [count, total] = [made.length / pictureBytes, wanted.length / pictureBytes];
        assert(count >= total - HELD_PICTURES && count <= total, `${name}: ${count} of ${total} pictures`);
        const sure = (total - HELD_PICTURES) * pictureBytes;
        assertEquals(firstDifference(made.subarray(0, sure), wanted.subarray(0, sure)), -1, `${name}: byte`);
      }
    }
  });

  test(`VLC decodes from ${output} the sound of every codec, all of it`, async () => {
    const cases: readonly (readonly [string, Record<string, string>])[] = [
      ["ts-188.ts", {}],
      ["mp4-end.mp4", {}],
      ["mkv-mp3.mkv", {}],
      ["mp4-ac3.mp4", {}],
      ["mkv-hevc-eac3.mkv", {}],
      ["ts-mpeg2.ts", {}],
      ["audio-cbr.mp3", {}],
      ["audio-vbr.mp3", {}],
      ["audio-tagged.mp3", {}],
      ["audio.aac", {}],
      ["mp4-ac3.mp4", { transcode_audio: "1", transcode_ac3: "1" }],
      ["ts-mpeg2.ts", { transcode_audio: "1", transcode_mp3: "1" }],
      ["ts-192.m2ts", { transcode_audio: "1", transcode_ac3: "1" }],
      ["audio-vbr.mp3", { transcode_audio: "1", transcode_mp3: "1" }],
      ["audio.flac", { transcode_audio: "1" }],
      ["audio.opus", { transcode_audio: "1" }],
      ["audio-vorbis.ogg", { transcode_audio: "1" }],
      ["audio.wav", { transcode_audio: "1" }],
    ];
    for (const group of grouped(cases)) {
      const files = await decodeWithVlc(group.map(([name, more]) => address(output, name, more)), "audio");
      for (const [i, [name, more]] of group.entries()) {
        assert((await probe(name)).hasAudio, name);
        const reference = `${home.path}/reference.wav`;
        const args = ["-y", "-nostdin", "-v", "error", "-i", clipPath(name), "-map", "0:a:0", "-ac", "2", "-ar"];
        await run("ffmpeg", [...args, "48000", reference]);
        const wanted = seconds((await readFile(reference)).length);
        const made = new Uint8Array(await readFile(files[i]!));
        const heard = seconds(made.length);
        const what = `${name} ${JSON.stringify(more)}: ${heard} s of ${wanted} s`;
        assert(heard > wanted - HELD_SECONDS && heard < wanted + HELD_SECONDS, what);
        assert(loudness(made) > 100, `${what}, silent`);
      }
    }
  });
}

/** Length of 16-bit stereo sound at 48 kHz. */
const seconds = (bytes: number): number => bytes / (48_000 * 4);

/** Mean size of the samples. */
function loudness(wav: Uint8Array): number {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.byteLength);
  let sum = 0;
  const count = Math.floor((wav.length - 100) / 2);
  for (let i = 0; i < count; i++) sum += Math.abs(view.getInt16(100 + 2 * i, true));
  return sum / count;
}

function firstDifference(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) return i;
  return -1;
}
