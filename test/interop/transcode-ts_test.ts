/** Sound of transport streams converted to AAC by ffmpeg, in its original packets: in sync and without gaps, whatever is read first. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPorts } from "../../platform/detect.ts";
import { MemorySource } from "../support/memory-source.ts";
import { FfmpegEncoder } from "../../src/media/transcode/ffmpeg.ts";
import { collect, NEVER, openBytes, seeded } from "../media/support/files.ts";
import { counterErrors } from "../media/ts-input-support.ts";
import { checkTs } from "../support/ts-check.ts";
import { assertInStep, type Beeping, makeBeeping, onsets, QUIET, run } from "./support/beeps.ts";
import { rememberedEncoder } from "./support/remembered-encoder.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const CASES: readonly Beeping[] = [
  { name: "mp2.ts", audio: ["-c:a", "mp2", "-b:a", "192k"], rate: 48000 },
  { name: "mp2-low.ts", audio: ["-c:a", "mp2", "-b:a", "64k"], rate: 44100, layout: "mono" },
  { name: "mp3.ts", audio: ["-c:a", "libmp3lame", "-b:a", "96k"], rate: 44100 },
  { name: "ac3.ts", audio: ["-c:a", "ac3", "-b:a", "448k"], rate: 48000, layout: "5.1" },
  { name: "ac3.m2ts", audio: ["-c:a", "ac3", "-b:a", "192k", "-mpegts_m2ts_mode", "1"], rate: 48000 },
  { name: "eac3.ts", audio: ["-c:a", "eac3", "-b:a", "192k"], rate: 48000 },
  { name: "dts.ts", audio: ["-c:a", "dca", "-strict", "-2", "-b:a", "768k"], rate: 48000 },
  { name: "pcm.m2ts", audio: ["-c:a", "pcm_bluray", "-mpegts_m2ts_mode", "1"], rate: 48000 },
  { name: "opus.ts", audio: ["-c:a", "libopus"], rate: 48000 },
  { name: "wrap.ts", audio: ["-c:a", "ac3", "-output_ts_offset", "95437"], rate: 48000 },
  { name: "mp2-alone.ts", audio: ["-c:a", "mp2", "-b:a", "192k"], rate: 48000, video: [] },
];

/** Of these ffmpeg makes the sound each time that it is read, of the others once. */
const MADE_EACH_TIME = ["ac3.ts", "wrap.ts"];

for (const item of CASES) {
  test(`sound of ${item.name} becomes AAC in its own packets, in step, the same in any order of reading`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "transcode-ts-"));
    const { processes, clock } = await loadPorts();
    const original = join(folder, item.name);
    const bytes = makeBeeping(original, item);
    const source = new MemorySource(bytes);
    const remembered = await rememberedEncoder();
    const encoder = () => MADE_EACH_TIME.includes(item.name) ? new FfmpegEncoder(processes, clock) : remembered;
    const open = () =>
      openBytes(bytes, { segmentTargetMs: 4000, transcode: { mp3: true, ac3: true }, audioEncoder: encoder() });
    const save = (name: string, data: Uint8Array) => {
      const path = join(folder, name);
      writeFileSync(path, data);
      return path;
    };
    try {
      const { ts, hls, outputTracks, warnings } = await open();
      assertEquals(warnings, []);
      assertEquals(outputTracks.at(-1)!.codec, "aac");
      const plain = await openBytes(bytes, { segmentTargetMs: 4000 });
      assertEquals(ts.sizeBytes, plain.ts.sizeBytes);
      assert(ts.fingerprint !== plain.ts.fingerprint);
      const whole = await collect(ts.read(0, null, source, NEVER));
      assertEquals(whole.length, ts.sizeBytes);
      const copied = await collect(plain.ts.read(0, null, source, NEVER));
      assertEquals(counterErrors(whole), counterErrors(copied));
      const report = checkTs(whole, { isSegment: false });
      const before = checkTs(copied, { isSegment: false });
      assertEquals(report.problems.filter((text) => !before.problems.includes(text)), []);
      const sound = report.streams.find((stream) => stream.streamType === 0x0f)!;
      assert(sound.units.length > 0);
      for (const { pid, units } of before.streams) {
        if (pid !== sound.pid) assertEquals(report.streams.find((stream) => stream.pid === pid)!.units, units);
      }
      const path = save("ours.ts", whole);
      // Sound before the wrap of the clock has no place in ffmpeg's own output.
      assertInStep(original, path, item, item.name === "wrap.ts" ? 6 : 12);
      // Ranges and segments from presentations of their own, last one first.
      const again = await open();
      const random = seeded(5);
      for (let i = 0; i < 4; i++) {
        const start = Math.floor(random() * whole.length);
        const end = Math.min(whole.length, start + Math.floor(random() * 100_000));
        assertEquals(await collect(again.ts.read(start, end, source, NEVER)), whole.subarray(start, end));
      }
      const third = await open();
      const parts: Uint8Array[] = [];
      for (const { index } of hls.segments.toReversed()) {
        parts.unshift(await collect(third.hls.readSegment(index, source, NEVER)));
      }
      assert(parts.length >= 3, String(parts.length));
      for (const [n, part] of parts.entries()) {
        assertEquals(checkTs(part).problems.filter((text) => !text.includes("PCR gap")), [], `segment ${n}`);
      }
      const joined = checkTs(concatBytes(parts), { isSegment: false }).streams.find(({ pid }) => pid === sound.pid)!;
      assertEquals(joined.units.map(({ pts }) => pts), sound.units.map(({ pts }) => pts));
      assertEquals(concatBytes(joined.units.map(({ data }) => data)), concatBytes(sound.units.map(({ data }) => data)));
      assertEquals(run("ffmpeg", [...QUIET, "-i", save("joined.ts", concatBytes(parts)), "-f", "null", "-"]).err, "");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test("sound on both sides of a jump of the clock becomes AAC", async () => {
  const folder = mkdtempSync(join(tmpdir(), "transcode-ts-"));
  const { processes, clock } = await loadPorts();
  try {
    const clip = makeBeeping(join(folder, "clip.ts"), CASES[0]!);
    const bytes = concatBytes([clip, clip]);
    const { ts } = await openBytes(bytes, {
      transcode: { mp3: true, ac3: true },
      audioEncoder: new FfmpegEncoder(processes, clock),
    });
    const made = checkTs(await collect(ts.read(0, null, new MemorySource(bytes), NEVER)), { isSegment: false });
    const units = made.streams.find(({ streamType }) => streamType === 0x0f)!.units;
    const back = units.findIndex(({ pts }, i) => i > 0 && pts < units[i - 1]!.pts);
    const seconds = (from: number, to: number) => (units[to]!.pts - units[from]!.pts) / 90_000;
    assert(back > 0);
    assertLess(Math.abs(seconds(0, back - 1) - 13), 0.3);
    assertLess(Math.abs(seconds(back, units.length - 1) - 13), 0.3);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

for (const [name, more] of [["the same", []], ["other", ["-mpegts_start_pid", "0x200"]]] as const) {
  test(`sound that a later map names on ${name} PIDs, in another codec, becomes AAC, too`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "transcode-ts-"));
    const { processes, clock } = await loadPorts();
    try {
      const first = makeBeeping(join(folder, "first.ts"), CASES[0]!);
      const audio = ["-c:a", "ac3", "-b:a", "192k", "-output_ts_offset", "13", ...more];
      const bytes = concatBytes([
        first,
        makeBeeping(join(folder, "second.ts"), { name: "second.ts", audio, rate: 48000 }),
      ]);
      const source = new MemorySource(bytes);
      const { ts, hls } = await openBytes(bytes, {
        segmentTargetMs: 4000,
        transcode: { mp3: true, ac3: true },
        audioEncoder: new FfmpegEncoder(processes, clock),
      });
      const whole = await collect(ts.read(0, null, source, NEVER));
      assertEquals(whole.length, bytes.length);
      const types = (data: Uint8Array) => checkTs(data, { isSegment: false }).streams.map((one) => one.streamType);
      const heard: number[] = [];
      for (const { index } of hls.segments) {
        const segment = await collect(hls.readSegment(index, source, NEVER));
        // The segment in which the map changes has both.
        assertEquals([...new Set(types(segment))], [0x1b, 0x0f], `segment ${index}`);
        const path = join(folder, "segment.ts");
        writeFileSync(path, segment);
        heard.push(...onsets(path));
      }
      assertEquals(heard.length, 26, heard.join(" "));
      if (more.length > 0) return;
      // The file as a whole: one stream for ffmpeg, which is AAC from its beginning to its end.
      const path = join(folder, "whole.ts");
      writeFileSync(path, whole);
      // ffmpeg leaves out the packet at which the counters of the two clips do not meet.
      assert(onsets(path).length >= 25);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test("sound in LATM becomes AAC in ADTS where AAC is asked for", async () => {
  const folder = mkdtempSync(join(tmpdir(), "transcode-ts-"));
  const { processes, clock } = await loadPorts();
  try {
    const item = { name: "latm.ts", audio: ["-c:a", "aac", "-mpegts_flags", "latm"], rate: 48000 };
    const bytes = makeBeeping(join(folder, item.name), item);
    const { ts, outputTracks } = await openBytes(bytes, {
      transcode: { mp3: false, ac3: false },
      audioEncoder: new FfmpegEncoder(processes, clock),
    });
    assertEquals(outputTracks.at(-1)!.codecId, "AAC of 0x11");
    const made = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
    const { streams } = checkTs(made, { isSegment: false });
    assertEquals(streams.map(({ streamType }) => streamType), [0x1b, 0x0f]);
    const path = join(folder, "made.ts");
    writeFileSync(path, made);
    assertInStep(join(folder, item.name), path, item, 12);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
