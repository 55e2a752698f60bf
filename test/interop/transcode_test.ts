/** Audio made into AAC by ffmpeg: in step with the picture, without gaps between runs, the same whichever way it is read. */
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertLessOrEqual, assertRejects } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPorts } from "../../platform/detect.ts";
import { MemorySource } from "../../src/bytes/source.ts";
import { MillraceError } from "../../src/errors.ts";
import { FfmpegEncoder } from "../../src/media/transcode/ffmpeg.ts";
import type { AudioTranscoding } from "../../src/media/transcode/types.ts";
import { collect, NEVER, openBytes, seeded } from "../media/support/files.ts";
import { createEngine } from "../../src/engine.ts";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { checkTs, join as joinBytes } from "../support/ts-check.ts";

const QUIET = ["-nostdin", "-v", "error"];
/** A beep of 50 ms at the start of each second. */
const BEEPS = "aevalsrc='if(lt(mod(t,1),0.05),0.8*sin(2*PI*1000*t),0)':s=RATE:d=13:c=LAYOUT";
const ALL: AudioTranscoding = { mp3: true, ac3: true };

const CASES: readonly {
  readonly name: string;
  readonly audio: readonly string[];
  readonly rate: number;
  readonly layout?: string;
  readonly video?: readonly string[];
}[] = [
  { name: "ac3.mkv", audio: ["-c:a", "ac3", "-b:a", "448k"], rate: 48000, layout: "5.1" },
  { name: "opus.mkv", audio: ["-c:a", "libopus"], rate: 48000 },
  { name: "mp3.mkv", audio: ["-c:a", "libmp3lame"], rate: 44100 },
  { name: "flac.mkv", audio: ["-c:a", "flac"], rate: 44100, layout: "mono" },
  { name: "pcm.mkv", audio: ["-c:a", "pcm_s24le"], rate: 48000 },
  { name: "ac3.mp4", audio: ["-c:a", "ac3"], rate: 48000 },
  { name: "opus.mp4", audio: ["-c:a", "libopus"], rate: 48000 },
  { name: "vorbis.mkv", audio: ["-c:a", "libvorbis"], rate: 44100 },
  { name: "dts.mkv", audio: ["-c:a", "dca", "-strict", "-2", "-b:a", "768k"], rate: 48000 },
  {
    name: "mp3-fragmented.mp4",
    audio: ["-c:a", "libmp3lame", "-movflags", "+frag_keyframe+empty_moov+default_base_moof+global_sidx"],
    rate: 48000,
  },
  { name: "opus-alone.mka", audio: ["-c:a", "libopus"], rate: 48000, video: [] },
];

function run(command: string, args: string[]): { out: Uint8Array; err: string } {
  const { stdout, stderr, error } = spawnSync(command, args, { maxBuffer: 1 << 28 });
  if (error !== undefined) throw error;
  return { out: stdout, err: stderr.toString() };
}

function make(path: string, { audio, rate, layout = "stereo", video }: typeof CASES[number]): Uint8Array {
  const expressions = layout === "5.1" ? 6 : layout === "mono" ? 1 : 2;
  const beep = /'([^']*)'/.exec(BEEPS)![1]!;
  const beeps = BEEPS.replace(/'[^']*'/, `'${Array(expressions).fill(beep).join("|")}'`)
    .replace("RATE", String(rate)).replace("LAYOUT", layout);
  const picture = ["-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=13"];
  const encode = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-bf", "2", "-pix_fmt", "yuv420p"];
  const inputs = video === undefined
    ? [...picture, "-f", "lavfi", "-i", beeps, ...encode]
    : ["-f", "lavfi", "-i", beeps];
  const { err } = run("ffmpeg", [...QUIET, "-y", ...inputs, ...audio, path]);
  assertEquals(err, "");
  return new Uint8Array(readFileSync(path));
}

/** Seconds at which beeps begin, by the container's clock. */
function onsets(path: string): number[] {
  const args = [
    ...QUIET,
    "-copyts",
    "-i",
    path,
    "-map",
    "0:a:0",
    "-af",
    "aresample=48000,aresample=48000:async=1:min_hard_comp=0.02:first_pts=0",
  ];
  const { out } = run("ffmpeg", [...args, "-ac", "1", "-f", "s16le", "-"]);
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  const found: number[] = [];
  let quietFrom = -Infinity;
  for (let i = 0; i < out.length >> 1; i++) {
    if (Math.abs(view.getInt16(2 * i, true)) < 6000) continue;
    if (i - quietFrom > 24000) found.push(i / 48000);
    quietFrom = i;
  }
  return found;
}

/** Presentation times of the packets of a stream, seconds. */
function times(path: string, stream: string): number[] {
  const args = ["-v", "error", "-select_streams", stream, "-show_entries", "packet=pts_time", "-of", "csv=p=0", path];
  return new TextDecoder().decode(run("ffprobe", args).out).split("\n").map(parseFloat).filter((time) => !isNaN(time));
}

const startOf = (path: string, stream: string) => Math.min(...times(path, stream));

for (const item of CASES) {
  test(`audio of ${item.name} becomes AAC in step, without gaps, the same in any order of reading`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "transcode-"));
    const { processes, clock } = await loadPorts();
    const open = () =>
      openBytes(bytes, {
        segmentTargetMs: 4000,
        transcode: ALL,
        audioEncoder: new FfmpegEncoder(processes, clock),
      });
    const original = join(folder, item.name);
    const bytes = make(original, item);
    try {
      const source = new MemorySource(bytes);
      const { ts, hls, outputTracks, warnings } = await open();
      assertEquals(warnings, []);
      const sound = outputTracks.find((track) => track.kind === "audio")!;
      assertEquals([sound.codec, sound.sampleRate, sound.channels], ["aac", 48000, item.layout === "mono" ? 1 : 2]);
      const whole = await collect(ts.read(0, null, source, NEVER));
      assertEquals(whole.length, ts.sizeBytes);
      assertEquals(checkTs(whole).problems, []);
      const path = join(folder, "ours.ts");
      writeFileSync(path, whole);
      assertEquals(run("ffmpeg", [...QUIET, "-i", path, "-f", "null", "-"]).err, "");
      const pts = times(path, "a:0");
      for (let i = 1; i < pts.length; i++) {
        assertLess(Math.abs(pts[i]! - pts[i - 1]! - 1024 / 48000), 0.001, `a gap at ${pts[i]}`);
      }
      // Against the picture, where there is one.
      const stream = item.video === undefined ? "v:0" : "a:0";
      const [from, ours] = [startOf(original, stream), startOf(path, stream)];
      const [wanted, got] = [onsets(original), onsets(path)];
      assertEquals(got.length, wanted.length, `${got} for ${wanted}`);
      assert(got.length >= 12, String(got.length));
      for (const [i, onset] of got.entries()) {
        assertLessOrEqual(
          Math.abs(onset - ours - (wanted[i]! - from)),
          0.025,
          `beep ${i}: ${got.map((time, n) => (time - ours - (wanted[n]! - from)).toFixed(4))}`,
        );
      }
      // Segments from a presentation of its own, last one first.
      const again = await open();
      const parts: Uint8Array[] = [];
      for (const { index } of again.hls.segments.toReversed()) {
        parts.unshift(await collect(again.hls.readSegment(index, source, NEVER)));
        assertEquals(parts[0]!.length, hls.segmentBytes(index));
      }
      assertEquals(joinBytes(parts), whole);
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

test("without ffmpeg AC-3 passes with a warning, and Opus alone is refused by name", async () => {
  const folder = mkdtempSync(join(tmpdir(), "transcode-"));
  const { processes, clock } = await loadPorts();
  const missing = { spawn: (_: string, args: readonly string[]) => processes.spawn("ffmpeg-is-not-here", args) };
  const options = { transcode: ALL, audioEncoder: new FfmpegEncoder(missing, clock) };
  try {
    const { outputTracks, warnings } = await openBytes(make(join(folder, "a.mkv"), CASES[0]!), options);
    assertEquals(outputTracks.map((track) => track.codec), ["h264", "ac3"]);
    assert(warnings[0]!.includes("ac3"), warnings[0]!);
    const alone = make(join(folder, "b.mka"), CASES.at(-1)!);
    const error = await assertRejects(() => openBytes(alone, options), MillraceError, "opus");
    assertEquals(error.code, "unsupported_media");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("/engine/getstream and /engine/manifest.m3u8 give AAC to whom asks for it and AC-3 to whom does not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "transcode-"));
  const files = [
    { path: "a.mkv", bytes: make(join(folder, "a.mkv"), CASES[0]!) },
    { path: "b.mka", bytes: make(join(folder, "b.mka"), CASES.at(-1)!) },
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
