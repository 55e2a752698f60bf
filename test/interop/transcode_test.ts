/** Audio converted to AAC by ffmpeg: in step with the picture, without gaps between runs, the same whichever way it is read. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPorts } from "../../platform/detect.ts";
import { MemorySource } from "../support/memory-source.ts";
import { MillraceError } from "../../src/errors.ts";
import { FfmpegEncoder } from "../../src/media/transcode/ffmpeg.ts";
import type { AudioTarget, AudioTranscoding } from "../../src/media/model/audio-target.ts";
import { collect, NEVER, openBytes, seeded } from "../media/support/files.ts";
import { createEngine } from "../../src/engine.ts";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { checkTs } from "../support/ts-check.ts";
import { assertInStep, type Beeping, makeBeeping } from "./support/beeps.ts";
import { rememberedEncoder } from "./support/remembered-encoder.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const ALL: AudioTranscoding = { mp3: true, ac3: true };

const CASES: readonly (Beeping & { readonly lateMs?: number })[] = [
  { name: "ac3.mkv", audio: ["-c:a", "ac3", "-b:a", "448k"], rate: 48000, layout: "5.1" },
  { name: "opus.mkv", audio: ["-c:a", "libopus"], rate: 48000 },
  { name: "mp3.mkv", audio: ["-c:a", "libmp3lame"], rate: 44100 },
  { name: "flac.mkv", audio: ["-c:a", "flac"], rate: 44100, layout: "mono" },
  { name: "pcm.mkv", audio: ["-c:a", "pcm_s24le"], rate: 48000 },
  { name: "ac3.mp4", audio: ["-c:a", "ac3"], rate: 48000 },
  { name: "opus.mp4", audio: ["-c:a", "libopus"], rate: 48000 },
  { name: "opus-surround.mp4", audio: ["-c:a", "libopus", "-b:a", "256k"], rate: 48000, layout: "5.1" },
  { name: "opus-mono.mp4", audio: ["-c:a", "libopus"], rate: 48000, layout: "mono" },
  { name: "flac.mp4", audio: ["-c:a", "flac", "-strict", "-2"], rate: 44100 },
  { name: "flac-surround.mp4", audio: ["-c:a", "flac", "-strict", "-2"], rate: 48000, layout: "5.1" },
  { name: "vorbis.mp4", audio: ["-c:a", "libvorbis"], rate: 44100 },
  { name: "vorbis-surround.mp4", audio: ["-c:a", "libvorbis"], rate: 48000, layout: "5.1" },
  { name: "pcm.mov", audio: ["-c:a", "pcm_s16le"], rate: 48000 },
  { name: "pcm-big-endian.mov", audio: ["-c:a", "pcm_s24be"], rate: 44100 },
  { name: "pcm-surround.mov", audio: ["-c:a", "pcm_s16be"], rate: 48000, layout: "5.1" },
  { name: "pcm-float.mov", audio: ["-c:a", "pcm_f32le"], rate: 48000, layout: "mono" },
  { name: "alac.mp4", audio: ["-c:a", "alac"], rate: 44100 },
  { name: "alac-alone.m4a", audio: ["-c:a", "alac"], rate: 48000, video: [] },
  { name: "a-law.mov", audio: ["-c:a", "pcm_alaw"], rate: 44100 },
  { name: "ima-adpcm.mov", audio: ["-c:a", "adpcm_ima_qt"], rate: 44100 },
  { name: "ms-adpcm.mov", audio: ["-c:a", "adpcm_ms"], rate: 44100 },
  {
    name: "flac-fragmented.mp4",
    audio: ["-c:a", "flac", "-strict", "-2", "-movflags", "+frag_keyframe+empty_moov+default_base_moof+global_sidx"],
    rate: 48000,
  },
  {
    name: "pcm-fragmented.mov",
    audio: ["-c:a", "pcm_s16le", "-movflags", "+frag_keyframe+empty_moov+default_base_moof+global_sidx"],
    rate: 48000,
  },
  // Its frames last a second, and what is made of one comes when all of it is there.
  { name: "tta.mkv", audio: ["-c:a", "tta"], rate: 48000, lateMs: 300 },
  { name: "vorbis.mkv", audio: ["-c:a", "libvorbis"], rate: 44100 },
  { name: "dts.mkv", audio: ["-c:a", "dca", "-strict", "-2", "-b:a", "768k"], rate: 48000 },
  {
    name: "mp3-fragmented.mp4",
    audio: ["-c:a", "libmp3lame", "-movflags", "+frag_keyframe+empty_moov+default_base_moof+global_sidx"],
    rate: 48000,
  },
  { name: "mp3-cbr.mp3", audio: ["-c:a", "libmp3lame", "-b:a", "128k"], rate: 44100, video: [] },
  { name: "mp3-vbr.mp3", audio: ["-c:a", "libmp3lame", "-q:a", "4"], rate: 48000, video: [] },
  { name: "flac.flac", audio: ["-c:a", "flac"], rate: 44100, video: [] },
  { name: "flac-surround.flac", audio: ["-c:a", "flac", "-sample_fmt", "s32"], rate: 96000, layout: "5.1", video: [] },
  { name: "opus.opus", audio: ["-c:a", "libopus"], rate: 48000, video: [] },
  { name: "opus-surround.ogg", audio: ["-c:a", "libopus", "-b:a", "256k"], rate: 48000, layout: "5.1", video: [] },
  { name: "opus-mono.opus", audio: ["-c:a", "libopus"], rate: 48000, layout: "mono", video: [] },
  { name: "vorbis.ogg", audio: ["-c:a", "libvorbis"], rate: 44100, video: [] },
  { name: "pcm.wav", audio: ["-c:a", "pcm_s16le"], rate: 44100, video: [] },
  { name: "pcm-surround.wav", audio: ["-c:a", "pcm_s24le"], rate: 48000, layout: "5.1", video: [] },
  { name: "pcm-float.wav", audio: ["-c:a", "pcm_f32le"], rate: 48000, layout: "mono", video: [] },
  { name: "a-law.wav", audio: ["-c:a", "pcm_alaw"], rate: 8000, layout: "mono", video: [] },
  { name: "ima-adpcm.wav", audio: ["-c:a", "adpcm_ima_wav"], rate: 22050, layout: "mono", video: [] },
  { name: "opus-alone.mka", audio: ["-c:a", "libopus"], rate: 48000, video: [] },
];

const CHANNELS: Readonly<Record<string, number>> = { mono: 1, "5.1": 6 };
/** Made into AC-3 too. */
const AS_AC3 = ["opus.mkv", "flac.mkv", "flac-surround.mp4", "opus-alone.mka"];

const TARGETS: readonly { readonly item: typeof CASES[number]; readonly audioTarget: AudioTarget }[] = [
  ...CASES.map((item) => ({ item, audioTarget: "aac" as const })),
  ...CASES.filter(({ name }) => AS_AC3.includes(name)).map((item) => ({ item, audioTarget: "ac3" as const })),
];

/** Of these ffmpeg makes the sound each time that it is read, of the others once. */
const MADE_EACH_TIME = ["ac3.mkv", "opus-surround.mp4", "flac.flac"];

/** By how much sound comes after its PCR, ms; for any other problem, more than is allowed anywhere. */
function lateMs(problem: string): number {
  const late = /: DTS (\d+) before PCR (\d+)$/.exec(problem);
  return late === null ? Infinity : (Number(late[2]) - Number(late[1])) / 90;
}

for (const { item, audioTarget } of TARGETS) {
  const word = audioTarget === "aac" ? "AAC" : "AC-3";
  test(`audio of ${item.name} becomes ${word} in step, without gaps, the same in any order of reading`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "transcode-"));
    const { processes, clock } = await loadPorts();
    const remembered = await rememberedEncoder();
    const encoder = () => MADE_EACH_TIME.includes(item.name) ? new FfmpegEncoder(processes, clock) : remembered;
    const open = () =>
      openBytes(bytes, { segmentTargetMs: 4000, transcode: ALL, audioTarget, audioEncoder: encoder() });
    const original = join(folder, item.name);
    const bytes = makeBeeping(original, item);
    try {
      const source = new MemorySource(bytes);
      const { ts, hls, outputTracks, warnings } = await open();
      assertEquals(warnings, []);
      const sound = outputTracks.find((track) => track.kind === "audio")!;
      assertEquals([sound.codec, sound.sampleRate, sound.channels], [
        audioTarget,
        48000,
        CHANNELS[item.layout ?? ""] ?? 2,
      ]);
      const whole = await collect(ts.read(0, null, source, NEVER));
      assertEquals(whole.length, ts.sizeBytes);
      assertEquals(checkTs(whole).problems.filter((problem) => lateMs(problem) > (item.lateMs ?? 0)), []);
      const path = join(folder, "ours.ts");
      writeFileSync(path, whole);
      assertInStep(original, path, item, 12, audioTarget === "aac" ? 1024 : 1536);
      // Segments from a separate presentation, last one first.
      const again = await open();
      const parts: Uint8Array[] = [];
      for (const { index } of again.hls.segments.toReversed()) {
        parts.unshift(await collect(again.hls.readSegment(index, source, NEVER)));
        assertEquals(parts[0]!.length, hls.segmentBytes(index));
      }
      assertEquals(concatBytes(parts), whole);
      const random = seeded(5);
      const third = await open();
      for (let i = 0; i < 3; i++) {
        const start = Math.floor(random() * whole.length);
        const end = Math.min(whole.length, start + Math.floor(random() * 200_000));
        assertEquals(await collect(third.ts.read(start, end, source, NEVER)), whole.subarray(start, end));
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test("without ffmpeg, AC-3 passes with a warning, and a file with only Opus is refused with an error that names it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "transcode-"));
  const { processes, clock } = await loadPorts();
  const missing = { spawn: (_: string, args: readonly string[]) => processes.spawn("ffmpeg-is-not-here", args) };
  const options = { transcode: ALL, audioEncoder: new FfmpegEncoder(missing, clock) };
  try {
    const { outputTracks, warnings } = await openBytes(makeBeeping(join(folder, "a.mkv"), CASES[0]!), options);
    assertEquals(outputTracks.map((track) => track.codec), ["h264", "ac3"]);
    assert(warnings[0]!.includes("ac3"), warnings[0]!);
    const alone = makeBeeping(join(folder, "b.mka"), CASES.at(-1)!);
    const error = await assertRejects(() => openBytes(alone, options), MillraceError, "opus");
    assertEquals(error.code, "unsupported_media");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("/engine/getstream and /engine/manifest.m3u8 give AAC to clients that ask for it and AC-3 to others", async () => {
  const folder = mkdtempSync(join(tmpdir(), "transcode-"));
  const files = [
    { path: "a.mkv", bytes: makeBeeping(join(folder, "a.mkv"), CASES[0]!) },
    { path: "b.mka", bytes: makeBeeping(join(folder, "b.mka"), CASES.at(-1)!) },
  ];
  const seeder = await seedFiles(files, { name: "sounds" });
  const served = await serveEngine();
  const ports = await loadPorts();
  const bare = await createEngine({
    ...ports,
    processes: { spawn: () => Promise.reject(new MillraceError("unavailable", "ffmpeg was not found")) },
  }, { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, cache: "ram" });
  const query = (more: string) => `magnet=${encodeURIComponent(seeder.magnet)}&${more}`;
  const wish = "transcode_audio=1&transcode_ac3=1";
  const segments = async (more: string) => {
    const text = await (await fetch(`${served.url}/engine/manifest.m3u8?${query(more)}`)).text();
    return text.split("\n").filter((line) => line.startsWith("http"));
  };
  const audioOf = async (url: string) => {
    const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
    const report = checkTs(bytes, { isSegment: true });
    assertEquals(report.problems, []);
    return report.streams.map(({ streamType }) => streamType).filter((type) => type === 0x0f || type === 0x81);
  };
  try {
    const [aac, copied] = [await segments(`_idx=0&${wish}`), await segments("_idx=0")];
    assert(aac[1]!.includes(wish), aac[1]!);
    assertEquals(await audioOf(aac[1]!), [0x0f]);
    assertEquals(await audioOf(copied[1]!), [0x81]);
    assertEquals(await audioOf(aac[0]!), [0x0f]);
    assertEquals(await audioOf(`${served.url}/engine/getstream?${query(`_idx=1&pid=x&${wish}`)}`), [0x0f]);
    const refused = await bare.fetch(new Request(`http://127.0.0.1/engine/getstream?${query(`_idx=1&${wish}`)}`));
    assertEquals(refused.status, 415);
    assert((await refused.text()).includes("opus"));
    const started = await bare.fetch(
      new Request(`http://127.0.0.1/engine/getstream?${query(`_idx=0&format=json&${wish}`)}`),
    );
    const { response } = await started.json();
    const stat = await (await bare.fetch(new Request(response.stat_url))).json();
    assert(stat.response.error_message.includes("ffmpeg was not found: ac3"), stat.response.error_message);
  } finally {
    await bare.close();
    await served.close();
    await seeder.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
