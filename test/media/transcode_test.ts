/** Transcoding without ffmpeg: a made-up encoder and made-up processes. */
import { soundFrames } from "../support/sound-frames.ts";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MemorySource } from "../support/memory-source.ts";
import { MillraceError } from "../../src/errors.ts";
import { ac3Frames, adtsFrames } from "../../src/media/transcode/made-frames.ts";
import { asksForAac } from "../../src/media/transcode/choice.ts";
import { Kept } from "../../src/media/transcode/kept.ts";
import { ENCODE_TIMEOUT_MS, FfmpegEncoder, MAX_PROCESSES } from "../../src/media/transcode/ffmpeg.ts";
import { RunAudio } from "../../src/media/transcode/run-audio.ts";
import type { AudioEncoder, EncodeJob } from "../../src/media/model/audio-target.ts";
import type { StreamedRun, StreamedTimeline } from "../../src/media/model/timeline.ts";
import type { Codec, Track } from "../../src/media/model/types.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { fakeProcesses } from "./support/fake-processes.ts";
import { collect, fixture, NEVER, openBytes } from "./support/files.ts";
import { repeatTs } from "./ts-input-support.ts";
import { concatBytes, toHex } from "../../src/bytes/hex.ts";

/** An ADTS frame whose payload is `text`. */
function adts(text: string): Uint8Array {
  const payload = new TextEncoder().encode(text);
  const length = payload.length + 7;
  const size = [(length >> 11) & 3 | 0x80, (length >> 3) & 0xff, (length & 7) << 5 | 0x1f];
  return new Uint8Array([0xff, 0xf1, 0x4c, ...size, 0xfc, ...payload]);
}

/** Labels each frame with its number in the file: the cluster times of the job do not show it, so it counts packets. */
class FakeEncoder implements AudioEncoder {
  readonly jobs: EncodeJob[] = [];
  isAvailable(): Promise<boolean> {
    return Promise.resolve(true);
  }
  encode(job: EncodeJob): Promise<Uint8Array> {
    this.jobs.push(job);
    const count = Math.floor(job.maxOutputBytes / 1543 / 2);
    return Promise.resolve(concatBytes(Array.from({ length: count }, (_, i) => adts(`frame ${i}`))));
  }
}

const track = (codec: Codec): Track => ({
  id: 1,
  kind: "audio",
  codec,
  codecId: "A_X",
  language: null,
  isDefault: true,
  codecPrivate: null,
  width: null,
  height: null,
  sampleRate: 48000,
  channels: 2,
});

test("adtsFrames() removes headers and stops at bytes that are not a frame", () => {
  const frames = adtsFrames(concatBytes([adts("one"), adts("three"), new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8])]));
  assertEquals(frames.map((frame) => new TextDecoder().decode(frame)), ["one", "three"]);
  assertEquals(adtsFrames(adts("cut off").subarray(0, 10)).length, 0);
});

test("Kept drops the least recently used entries beyond 4 MiB, never the newest", () => {
  const kept = new Kept<string>();
  const MIB = 1024 * 1024;
  for (const [key, name] of ["a", "b", "c"].entries()) kept.set(key, name, 1.5 * MIB);
  assertEquals([kept.get(0), kept.get(1), kept.get(2)], [undefined, "b", "c"]);
  kept.get(1);
  kept.set(3, "d", 1.5 * MIB);
  assertEquals([kept.get(1), kept.get(2), kept.get(3)], ["b", undefined, "d"]);
  kept.set(4, "large", 9 * MIB);
  assertEquals([kept.get(1), kept.get(3), kept.get(4)], [undefined, undefined, "large"]);
  kept.set(4, "small", 1);
  kept.set(5, "e", 4 * MIB - 1);
  assertEquals([kept.get(4), kept.get(5)], ["small", "e"]);
});

test("ac3Frames() splits frames of one size and stops at bytes that are not a frame", () => {
  const frame = (fill: number) => new Uint8Array([0x0b, 0x77, fill, fill]);
  const bytes = concatBytes([frame(1), frame(2), new Uint8Array([1, 2, 3, 4]), frame(3)]);
  assertEquals(ac3Frames(bytes, 4), [frame(1), frame(2)]);
  assertEquals(ac3Frames(frame(1).subarray(0, 3), 4), []);
});

test("asksForAac() covers MP3 and AC-3 only on request, AAC never, everything else always", () => {
  const none = { mp3: false, ac3: false };
  for (const codec of ["opus", "vorbis", "flac", "dts", "pcm", "truehd"] as const) {
    assert(asksForAac(track(codec), none), codec);
  }
  for (const codec of ["mp3", "mp2"] as const) {
    assertEquals([asksForAac(track(codec), none), asksForAac(track(codec), { ...none, mp3: true })], [false, true]);
  }
  for (const codec of ["ac3", "eac3"] as const) {
    assertEquals([asksForAac(track(codec), none), asksForAac(track(codec), { ...none, ac3: true })], [false, true]);
  }
  assert(!asksForAac({ ...track("aac"), codecPrivate: new Uint8Array([0x11, 0x90]) }, { mp3: true, ac3: true }));
});

for (const name of ["mkv-hevc-eac3.mkv", "mp4-ac3.mp4", "mkv-mp3.mkv", "mp4-mp3.mp4", "audio-only-mp3.mp4"]) {
  test(`openMedia() lays ${name} out with AAC so that segments of any order are slices of the whole`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const open = () =>
      openBytes(bytes, {
        segmentTargetMs: 2000,
        transcode: { mp3: true, ac3: true },
        audioEncoder: new FakeEncoder(),
      });
    const { ts, outputTracks, hls, warnings } = await open();
    assertEquals(warnings, []);
    assert(outputTracks.some((one) => one.codec === "aac"));
    assert(ts.fingerprint !== (await openBytes(bytes, { segmentTargetMs: 2000 })).ts.fingerprint);
    const whole = await collect(ts.read(0, null, source, NEVER));
    assertEquals(whole.length, ts.sizeBytes);
    const report = checkTs(whole, { isSegment: true });
    assertEquals(report.problems, []);
    const sound = report.streams.find((stream) => stream.streamType === 0x0f)!;
    const frames = soundFrames(sound);
    for (const [i, frame] of frames.entries()) {
      if (i > 0) assertEquals(frame.pts - frames[i - 1]!.pts, 1920);
    }
    const other = await open();
    const parts: Uint8Array[] = [];
    for (const { index } of hls.segments.toReversed()) {
      parts.unshift(await collect(other.hls.readSegment(index, source, NEVER)));
    }
    assertEquals(concatBytes(parts).length, whole.length);
    const again = checkTs(concatBytes(parts)).streams.find((stream) => stream.streamType === 0x0f)!;
    assertEquals(soundFrames(again).map(({ pts }) => pts), frames.map(({ pts }) => pts));
  });
}

test("RunAudio.framesOf() needs none of the memory that a run was read into, when that was made into sound", async () => {
  const encoder = new FakeEncoder();
  const runs = [0, 1].map((run) => ({
    startDts90k: run * 90_000,
    endDts90k: (run + 1) * 90_000,
    maxPayloadBytes: null,
    maxAccessUnits: [50],
  })) as unknown as StreamedRun[];
  const timeline: StreamedTimeline = {
    kind: "streamed",
    runs,
    async *readRun(run) {
      for (let i = 0; i < 40; i++) {
        await Promise.resolve();
        // The packet stands in a read with the picture.
        const read = new Uint8Array(1000);
        const time90k = run * 90_000 + i * 2250;
        yield [{
          track: 0,
          pts90k: time90k,
          dts90k: time90k,
          keyframe: true,
          data: read.subarray(500, 520).fill(7 + run),
        }];
        read.fill(0);
      }
    },
  };
  const audio = { codecId: "A_X", codecPrivate: null, sampleRate: 48000, channels: 2, bitDepth: null };
  const made = new RunAudio({ track: 0, audio, target: "aac", channels: 2, timeline, encoder, maxFrames: () => 60 });
  const source = new MemorySource(new Uint8Array(0));
  await made.framesOf(0, source, NEVER);
  await made.framesOf(1, source, NEVER);
  const holds = (job: number, mark: number) => toHex(encoder.jobs[job]!.input).split(`0${mark}`.repeat(20)).length > 1;
  assertEquals([holds(0, 7), holds(1, 7), holds(1, 8)], [true, true, true]);
});

test("openMedia() passes AC-3 with a warning and refuses Opus by name where no encoder is", async () => {
  const wish = { transcode: { mp3: true, ac3: true } };
  const { outputTracks, warnings } = await openBytes(fixture("mp4-ac3.mp4"), wish);
  assert(outputTracks.some((one) => one.codec === "ac3"));
  assert(warnings[0]!.includes("ffmpeg was not found: ac3"), warnings[0] ?? "no warning");
  const asTs = { ...wish, fragmented: false };
  const error = await assertRejects(() => openBytes(fixture("audio.opus"), asTs), MillraceError, "opus");
  assertEquals(error.code, "unsupported_media");
});

test("openMedia() converts the sound of a WebM for fragmented MP4 if it is asked to, and refuses it as MPEG TS", async () => {
  const wish = { transcode: { mp3: false, ac3: false }, audioEncoder: new FakeEncoder() };
  const { outputTracks } = await openBytes(fixture("webm-vp9-opus.webm"), wish);
  assertEquals(outputTracks.map((one) => one.codec), ["vp9", "aac"]);
  const asTs = () => openBytes(fixture("webm-vp9-opus.webm"), { ...wish, fragmented: false });
  await assertRejects(asTs, MillraceError, "vp9");
});

test("openMedia() converts sound without a request only if a file would be silent otherwise", async () => {
  const transcode = { mp3: false, ac3: false, onlyIfSilent: true };
  const open = async (name: string, fragmented?: boolean) => {
    const audioEncoder = new FakeEncoder();
    const { outputTracks, warnings } = await openBytes(fixture(name), { transcode, audioEncoder, fragmented });
    assertEquals(warnings, []);
    return { codecs: outputTracks.map(({ codec }) => codec) };
  };
  assertEquals((await open("audio.flac")).codecs, ["aac"]);
  assertEquals((await open("mp4-ac3.mp4")).codecs.includes("ac3"), true);
  assertEquals((await open("ts-mpeg2.ts")).codecs, ["mpeg2video", "mp2"]);
  // Fragmented MP4 carries both.
  assertEquals((await open("webm-vp9-opus.webm")).codecs, ["vp9", "opus"]);
  // It carries AC-3 as well, but browsers refuse the film then.
  assertEquals((await open("mkv-hevc-eac3.mkv", true)).codecs, ["hevc", "aac"]);
});

test("openMedia() leaves a transport stream's audio, with a warning, where no encoder is; AAC is never asked for", async () => {
  const wish = { transcode: { mp3: true, ac3: true } };
  const { outputTracks, warnings } = await openBytes(fixture("ts-mpeg2.ts"), wish);
  assertEquals(outputTracks.map(({ codec }) => codec), ["mpeg2video", "mp2"]);
  assertEquals(warnings, ["ffmpeg was not found: mp2 is not converted to AAC"]);
  assertEquals((await openBytes(fixture("ts-188.ts"), wish)).warnings, []);
});

for (const name of ["ts-192.m2ts", "ts-204.ts", "ts-mpeg2.ts", "ts-hevc.ts", "ts-two-programs.ts", "ts-wrap.ts"]) {
  test(`openMedia() puts AAC in place of the sound of ${name}, and nothing else changes`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const encoder = new FakeEncoder();
    const plain = await openBytes(bytes);
    const made = await openBytes(bytes, { transcode: { mp3: true, ac3: true }, audioEncoder: encoder });
    const before = await collect(plain.ts.read(0, null, source, NEVER));
    const after = await collect(made.ts.read(0, null, source, NEVER));
    const isAsked = plain.outputTracks.some(({ codec }) => /mp2|ac3/.test(codec));
    assertEquals(encoder.jobs.length > 0, isAsked);
    assertEquals(made.ts.fingerprint === plain.ts.fingerprint, !isAsked);
    assertEquals(after.length, before.length);
    for (const job of encoder.jobs) {
      assertEquals([job.container, job.input[0], job.input.length % 188], ["mpegts", 0x47, 0]);
    }
    const [then, now] = [checkTs(before, { isSegment: false }), checkTs(after, { isSegment: false })];
    const sounds = plain.outputTracks.filter(({ codec }) => /mp2|ac3/.test(codec)).map(({ id }) => id);
    for (const { pid, streamType, units } of now.streams) {
      const own = then.streams.find((stream) => stream.pid === pid)!;
      if (!sounds.includes(pid)) assertEquals(units, own.units);
      else {
        assertEquals(streamType, 0x0f);
        const times = units.map(({ pts }) => pts);
        assert(times.length > 0);
        const [first, last] = [own.units[0]!.pts, own.units.at(-1)!.pts];
        assert(Math.abs(ticksBetween(times[0]!, first)) <= 1920, `${times[0]} for ${first}`);
        assert(ticksBetween(times.at(-1)!, last) <= 8000, `${times.at(-1)} for ${last}`);
      }
    }
  });
}

test("a transport stream ends with the reason when the encoder makes not even silence; damaged sound does not end it", async () => {
  const bytes = fixture("ts-mpeg2.ts");
  // Ten times over, so that there are several runs.
  const long = repeatTs(bytes, 10, 6 * 90_000);
  const read = async (fails: (job: EncodeJob, n: number) => boolean) => {
    const encoder = new FakeEncoder();
    const audioEncoder: AudioEncoder = {
      isAvailable: () => Promise.resolve(true),
      encode: (job) =>
        fails(job, encoder.jobs.length)
          ? (encoder.jobs.push(job), Promise.reject(new MillraceError("bad_media", "no such sound")))
          : encoder.encode(job),
    };
    const { ts } = await openBytes(long, { transcode: { mp3: true, ac3: true }, audioEncoder });
    return await collect(ts.read(0, null, new MemorySource(long), NEVER));
  };
  await assertRejects(() => read(() => true), MillraceError, "no such sound");
  // Silence is made of PCM in Matroska.
  assertEquals((await read(({ container }, n) => container === "mpegts" && n % 3 !== 2)).length, long.length);
});

const JOB: EncodeJob = {
  input: new Uint8Array(10),
  container: "matroska",
  firstSample: 48000,
  target: "aac",
  channels: 2,
  bitsPerSecond: 160_000,
  maxOutputBytes: 1000,
};

test("FfmpegEncoder.encode() feeds a process, returns what it writes, and bounds how many run", async () => {
  const { port, started, next } = fakeProcesses();
  const encoder = new FfmpegEncoder(port, new FakeClock());
  const jobs = Array.from({ length: MAX_PROCESSES + 1 }, () => encoder.encode(JOB, NEVER));
  while (started.length < MAX_PROCESSES) await next();
  const third = next();
  started[0]!.finish(new Uint8Array([1, 2]), 0);
  assertEquals(await jobs[0], new Uint8Array([1, 2]));
  assertEquals(started[0]!.fed(), 10);
  await third;
  assertEquals(started.length, MAX_PROCESSES + 1);
  for (const one of started.slice(1)) one.finish(new Uint8Array([3]), 0);
  assertEquals(await jobs.at(-1), new Uint8Array([3]));
});

test("FfmpegEncoder.encode() ends the process when the caller leaves, at its deadline, and over the limit", async () => {
  const { port, started, next } = fakeProcesses();
  const clock = new FakeClock();
  const encoder = new FfmpegEncoder(port, clock);
  const leaving = new AbortController();
  let spawned = next();
  const left = assertRejects(() => encoder.encode(JOB, leaving.signal), MillraceError);
  await spawned;
  leaving.abort(new MillraceError("aborted", "gone"));
  assertEquals([(await left).code, started[0]!.killed()], ["aborted", true]);
  spawned = next();
  const late = assertRejects(() => encoder.encode(JOB, NEVER), MillraceError);
  await spawned;
  clock.advance(ENCODE_TIMEOUT_MS);
  assertEquals([(await late).code, started[1]!.killed()], ["timeout", true]);
  spawned = next();
  const flood = assertRejects(() => encoder.encode(JOB, NEVER), MillraceError);
  await spawned;
  started[2]!.finish(new Uint8Array(1001), 0);
  assertEquals([(await flood).code, started[2]!.killed()], ["too_large", true]);
  spawned = next();
  const failed = assertRejects(() => encoder.encode(JOB, NEVER), MillraceError, "no such codec");
  await spawned;
  started[3]!.finish(new Uint8Array(0), 1, "no such codec\n");
  assertEquals((await failed).code, "bad_media");
});

test("FfmpegEncoder.isAvailable() asks again until ffmpeg is there", async () => {
  let isThere = false;
  const { port, started, next } = fakeProcesses();
  const encoder = new FfmpegEncoder({
    spawn: (command, args) =>
      isThere ? port.spawn(command, args) : Promise.reject(new MillraceError("unavailable", "not found")),
  }, new FakeClock());
  assertEquals(await encoder.isAvailable(NEVER), false);
  isThere = true;
  const spawned = next();
  const answer = encoder.isAvailable(NEVER);
  await spawned;
  started[0]!.finish(new TextEncoder().encode("ffmpeg version"), 0);
  assertEquals([await answer, await encoder.isAvailable(NEVER), started.length], [true, true, 1]);
});

test("FfmpegEncoder.isAvailable() does not take a slow machine for a missing ffmpeg, and asks again", async () => {
  const { port, started, next } = fakeProcesses();
  const clock = new FakeClock();
  let failure: MillraceError | null = null;
  const spawn: typeof port.spawn = (...call) => failure === null ? port.spawn(...call) : Promise.reject(failure);
  const encoder = new FfmpegEncoder({ spawn }, clock);
  for (let probe = 0; probe < 2; probe++) {
    const spawned = next();
    const answer = encoder.isAvailable(NEVER);
    await spawned;
    clock.advance(5000);
    assertEquals([await answer, started.length, started[probe]!.killed()], [true, probe + 1, true]);
  }
  failure = new MillraceError("too_busy", "no room");
  await assertRejects(() => encoder.isAvailable(NEVER), MillraceError, "no room");
  failure = new MillraceError("unavailable", "not found");
  assertEquals(await encoder.isAvailable(NEVER), false);
});
