/** Files that only ffmpeg reads: every packet comes through, in step, whichever way they are read. Needs ffmpeg and ffprobe. */
import { after, test } from "node:test";
import { assert, assertEquals, assertLess, assertLessOrEqual, assertRejects } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { ForeignPrograms } from "../../src/media/foreign/programs.ts";
import type { AudioTarget } from "../../src/media/model/audio-target.ts";
import { collect, NEVER, openBytes, seeded } from "../media/support/files.ts";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { until } from "../support/until.ts";
import { assertInStep, type Beeping, makeBeeping, QUIET, run } from "./support/beeps.ts";

const NEEDED = { mp3: false, ac3: false, onlyIfSilent: true };
const folder = mkdtempSync(join(tmpdir(), "foreign-"));
after(() => rmSync(folder, { recursive: true, force: true }));

async function open(bytes: Uint8Array, audioTarget: AudioTarget = "aac") {
  const { processes, http, clock } = await loadPorts();
  const foreignReader = new ForeignPrograms(processes, http, clock);
  return await openBytes(bytes, { segmentTargetMs: 4000, transcode: NEEDED, audioTarget, foreignReader });
}

/** A packet by its size, seconds on the file's clock. */
interface Packet {
  readonly pts: number;
  readonly dts: number;
  readonly size: number;
}

function packets(path: string, stream: string): Packet[] {
  const shown = ["-show_entries", "packet=pts_time,dts_time,size", "-of", "json"];
  const { out } = run("ffprobe", ["-v", "error", "-select_streams", stream, ...shown, path]);
  const list = JSON.parse(new TextDecoder().decode(out)) as { packets: Record<string, string>[] };
  return list.packets.map(({ pts_time, dts_time, size }) => ({
    pts: Number(pts_time),
    dts: Number(dts_time),
    size: Number(size),
  }));
}

const PICTURE = ["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=20"];
const TONE = ["-f", "lavfi", "-i", "sine=f=440:beep_factor=4:sample_rate=48000:d=20"];
const X264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-pix_fmt", "yuv420p"];
const XVID = ["-c:v", "mpeg4", "-g", "50", "-bf", "2", "-vtag", "XVID"];
const MPEG2 = ["-c:v", "mpeg2video", "-g", "12", "-bf", "2", "-b:v", "300k"];

/** Films that are copied completely: name, and how the clip is encoded. */
const FILMS: readonly (readonly [name: string, encoding: readonly string[], muxing?: readonly string[]])[] = [
  ["xvid.avi", [...XVID, "-c:a", "libmp3lame", "-b:a", "64k"]],
  ["h264.avi", [...X264, "-bf", "0", "-c:a", "ac3"]],
  ["h264.flv", [...X264, "-bf", "2", "-c:a", "aac", "-ar", "44100"]],
  ["h264-indexed.flv", [...X264, "-bf", "2", "-c:a", "libmp3lame", "-ar", "44100"], [
    "-flvflags",
    "add_keyframe_index",
  ]],
  ["mpeg2.mpg", [...MPEG2, "-c:a", "mp2"], ["-f", "vob"]],
  ["mpeg2-ac3.vob", [...MPEG2, "-c:a", "ac3"], ["-f", "vob"]],
  // Its clock begins late, as in a part of a recording.
  ["mpeg2-late.vob", [...MPEG2, "-c:a", "mp2"], ["-f", "vob", "-output_ts_offset", "3600"]],
  ["h264.asf", [...X264, "-bf", "0", "-c:a", "libmp3lame"], ["-f", "asf"]],
  ["silent.avi", [...XVID, "-an"]],
];

for (const [name, encoding, muxing = []] of FILMS) {
  test(`every packet of ${name} is in its MPEG TS at its time, and in HLS`, async () => {
    // The same packets in a container that has all times: encoders are deterministic.
    const reference = join(folder, `${name}.mkv`);
    const path = join(folder, name);
    run("ffmpeg", [...QUIET, "-y", ...PICTURE, ...TONE, ...encoding, reference]);
    run("ffmpeg", [...QUIET, "-y", ...PICTURE, ...TONE, ...encoding, ...muxing, path]);
    const bytes = new Uint8Array(readFileSync(path));
    const { ts, hls, durationMs, warnings } = await open(bytes);
    assertEquals(ts.sizeBytes, null);
    assertEquals(warnings.length, 1);
    assertLess(Math.abs(durationMs! - 20_000), 150);
    const whole = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
    assertEquals(checkTs(whole).problems, []);
    assertLess(whole.length, 1.35 * bytes.length);
    const ours = join(folder, `${name}.ts`);
    writeFileSync(ours, whole);
    assertEquals(run("ffmpeg", [...QUIET, "-i", ours, "-f", "null", "-"]).err, "");
    let offset: number | null = null;
    for (const stream of encoding.includes("-an") ? ["v:0"] : ["v:0", "a:0"]) {
      const [wanted, got] = [packets(reference, stream), packets(ours, stream)];
      assertEquals(got.length, wanted.length, stream);
      offset ??= got[0]!.pts - wanted[0]!.pts;
      // FLV, ASF and Matroska store times in whole milliseconds; AVI's sound is timed by its frames.
      // Of the last picture AVI does not say when it is shown.
      for (const [i, { pts }] of got.slice(0, -1).entries()) {
        assertLessOrEqual(Math.abs(pts - wanted[i]!.pts - offset), stream === "v:0" ? 0.0015 : 0.03, `${stream} ${i}`);
      }
    }
    assert(hls.segments.length >= 3, `${hls.segments.length} segments`);
    const segments: Uint8Array[] = [];
    for (const { index } of hls.segments.toReversed()) {
      segments.unshift(await collect(hls.readSegment(index, new MemorySource(bytes), NEVER)));
    }
    const joined = checkTs(concatBytes(segments));
    assertEquals(joined.problems, []);
    const [fromTs, fromHls] = [checkTs(whole).streams, joined.streams];
    for (const [s, { units }] of fromTs.entries()) {
      assertEquals(fromHls[s]!.units.length, units.length);
      for (const [i, { pts, data }] of units.entries()) {
        const other = fromHls[s]!.units[i]!;
        assertEquals(other.data, data);
        // ffmpeg counts sound on from where it begins, so that rounding differs by up to a millisecond.
        assertLessOrEqual(Math.abs(other.pts - pts), 90);
      }
    }
  });
}

/** Sound that is converted: alone, and beside a copied picture. */
const SOUNDS: readonly Beeping[] = [
  { name: "sound.wma", audio: ["-c:a", "wmav2"], rate: 44100, video: [] },
  { name: "alac.caf", audio: ["-c:a", "alac"], rate: 44100, video: [] },
  { name: "sound.wv", audio: ["-c:a", "wavpack"], rate: 48000, layout: "5.1", video: [] },
  { name: "sound.au", audio: ["-c:a", "pcm_mulaw"], rate: 8000, layout: "mono", video: [] },
  { name: "flac.ogg", audio: ["-c:a", "flac"], rate: 44100, video: [] },
  { name: "pcm.avi", audio: ["-c:a", "pcm_s16le"], rate: 44100 },
];
/** Made into AC-3 too. */
const AS_AC3 = ["sound.wma", "pcm.avi"];

for (
  const { item, target } of [
    ...SOUNDS.map((item) => ({ item, target: "aac" as const })),
    ...SOUNDS.filter(({ name }) => AS_AC3.includes(name)).map((item) => ({ item, target: "ac3" as const })),
  ]
) {
  test(`sound of ${item.name} becomes ${target} in step, without gaps, the same in any order of reading`, async () => {
    const original = join(folder, item.name);
    const alone = item.video !== undefined;
    const reference = alone ? original : `${original}.mkv`;
    if (!alone) makeBeeping(reference, { ...item, audio: [...item.audio, "-bf", "0"] });
    const bytes = makeBeeping(original, alone ? item : { ...item, audio: [...item.audio, "-bf", "0"] });
    const { ts, hls, outputTracks } = await open(bytes, target);
    const sound = outputTracks.find((track) => track.kind === "audio")!;
    assertEquals([sound.codec, sound.sampleRate], [target, 48000]);
    const whole = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
    assertEquals(ts.sizeBytes, alone ? whole.length : null);
    assertEquals(checkTs(whole).problems, []);
    const ours = join(folder, `${item.name}.${target}.ts`);
    writeFileSync(ours, whole);
    assertInStep(reference, ours, item, 12, target === "aac" ? 1024 : 1536);
    const parts: Uint8Array[] = [];
    for (const { index } of hls.segments.toReversed()) {
      parts.unshift(await collect(hls.readSegment(index, new MemorySource(bytes), NEVER)));
      if (alone) assertEquals(parts[0]!.length, hls.segmentBytes(index));
    }
    assertEquals(concatBytes(parts), whole);
    if (!alone) return;
    const random = seeded(7);
    for (let i = 0; i < 2; i++) {
      const start = Math.floor(random() * whole.length);
      const end = Math.min(whole.length, start + 100_000);
      assertEquals(await collect(ts.read(start, end, new MemorySource(bytes), NEVER)), whole.subarray(start, end));
    }
  });
}

test("openMedia() refuses what ffmpeg can't copy into MPEG TS, naming the codecs", async () => {
  const path = join(folder, "old.wmv");
  run("ffmpeg", [...QUIET, "-y", ...PICTURE, ...TONE, "-t", "2", "-c:v", "wmv2", "-c:a", "wmav2", path]);
  const error = await assertRejects(() => open(new Uint8Array(readFileSync(path))), MillraceError);
  assertEquals([error.code, error.message], ["unsupported_media", "MPEG TS cannot carry wmv2, wmav2"]);
});

test("a torrent's film that only ffmpeg reads plays as MPEG TS and HLS over HTTP, and leaves no process behind", async () => {
  const path = join(folder, "film.avi");
  run("ffmpeg", [...QUIET, "-y", ...PICTURE, ...TONE, ...XVID, "-c:a", "libmp3lame", path]);
  const seeder = await seedFiles([
    { path: "film/film.avi", bytes: new Uint8Array(readFileSync(path)) },
    { path: "film/sample.mp4", bytes: clip("audio-only.m4a") },
  ], { name: "film" });
  const served = await serveEngine({ startTimeoutMs: 20_000 });
  const url = (name: string) => `${served.url}/engine/${name}?${new URLSearchParams({ magnet: seeder.magnet })}`;
  // Other tests of this process have ffmpeg run, too, but none lets it read over HTTP.
  const children = () =>
    new TextDecoder().decode(run("pgrep", ["-P", String(process.pid), "-f", "http,tcp"]).out).trim();
  try {
    const stream = await fetch(url("getstream"));
    assertEquals([stream.status, stream.headers.get("accept-ranges")], [200, "none"]);
    assertEquals(stream.headers.get("content-length"), null);
    const report = checkTs(new Uint8Array(await stream.arrayBuffer()));
    assertEquals([report.problems, report.streams[0]!.units.length], [[], 500]);
    const list = await (await fetch(url("manifest.m3u8"))).text();
    const segments: Uint8Array[] = [];
    for (const line of list.split("\n").filter((line) => line.startsWith("http"))) {
      segments.push(new Uint8Array(await (await fetch(line)).arrayBuffer()));
    }
    assert(segments.length > 2);
    assertEquals(checkTs(concatBytes(segments)).streams[0]!.units.length, 500);
    // A player that leaves in the middle.
    const leaving = await fetch(url("getstream"));
    const reader = leaving.body!.getReader();
    await reader.read();
    await reader.cancel();
    await until("ffmpeg ends with its reader", () => children() === "");
  } finally {
    await served.close();
    await seeder.close();
  }
});
