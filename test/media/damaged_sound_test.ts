/** Sound that the encoder cannot decode: silence takes its place, lengths hold, and the user is told. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { type FrameJob, makeWholeFrames } from "../../src/media/transcode/frame-job.ts";
import { FfmpegLog } from "../../src/media/transcode/ffmpeg-log.ts";
import type { AudioEncoder, EncodeJob } from "../../src/media/model/audio-target.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { collect, fixture, NEVER, openBytes } from "./support/files.ts";

/** An ADTS frame of 48 kHz stereo with `fill` as its payload. */
function adts(fill: number): Uint8Array {
  return new Uint8Array([0xff, 0xf1, 0x4c, 0x80, 11 >> 3, (11 & 7) << 5 | 0x1f, 0xfc, fill, fill, fill, fill]);
}

const isPcm = ({ input }: EncodeJob) => new TextDecoder("latin1").decode(input.subarray(0, 300)).includes("A_PCM");
const SOUND = 1;
const SILENCE = 2;

/** Makes `SILENCE` of PCM, and of other sound `SOUND`, or what `decode` returns for job `n`. */
class PoorDecoder implements AudioEncoder {
  readonly #decode: (n: number) => Uint8Array | MillraceError | null;
  readonly #silentSamples: number;
  #jobs = 0;

  /** `silentSamples`: of each job. */
  constructor(decode: (n: number) => Uint8Array | MillraceError | null, silentSamples = 0) {
    this.#decode = decode;
    this.#silentSamples = silentSamples;
  }
  isAvailable(): Promise<boolean> {
    return Promise.resolve(true);
  }
  encode(job: EncodeJob): Promise<Uint8Array> {
    const many = (fill: number) => concatBytes(Array.from({ length: 400 }, () => adts(fill)));
    if (isPcm(job)) return Promise.resolve(many(SILENCE));
    job.onSilence?.(this.#silentSamples);
    const made = this.#decode(this.#jobs++);
    return made instanceof MillraceError ? Promise.reject(made) : Promise.resolve(made ?? many(SOUND));
  }
}

const damage = new MillraceError("bad_media", "no frame was decoded");
const TEN: FrameJob = {
  container: "matroska",
  target: "aac",
  channels: 2,
  bitsPerSecond: 160_000,
  from: 0,
  to: 10,
  earliest: 0,
  maxFrames: 10,
  input: () => new Uint8Array(0),
};
const fills = (frames: readonly Uint8Array[]) => frames.map((frame) => frame[0]);

for (
  const { what, decoded, mayEndEarly, sound, silent } of [
    { what: "all is decoded", decoded: null, mayEndEarly: false, sound: 10, silent: 0 },
    { what: "nothing is decoded", decoded: damage, mayEndEarly: false, sound: 0, silent: 10 },
    {
      what: "too much is written",
      decoded: new MillraceError("too_large", "x"),
      mayEndEarly: false,
      sound: 0,
      silent: 10,
    },
    // The first frame primes the decoder.
    {
      what: "the end fails",
      decoded: concatBytes([adts(1), adts(1), adts(1)]),
      mayEndEarly: false,
      sound: 2,
      silent: 8,
    },
    {
      what: "the track ends",
      decoded: concatBytes([adts(1), adts(1), adts(1)]),
      mayEndEarly: true,
      sound: 2,
      silent: 0,
    },
    { what: "nothing of the last is decoded", decoded: damage, mayEndEarly: true, sound: 0, silent: 10 },
  ]
) {
  test(`makeWholeFrames() makes ${sound} frames of sound and ${silent} of silence when ${what}`, async () => {
    const made = await makeWholeFrames(new PoorDecoder(() => decoded), TEN, mayEndEarly, NEVER);
    assertEquals(fills(made.frames), [...new Array(sound).fill(SOUND), ...new Array(silent).fill(SILENCE)]);
    assertEquals(made.silent, silent);
  });
}

test("makeWholeFrames() counts the silence that the encoder puts between what it decodes", async () => {
  const count = async (samples: number) =>
    (await makeWholeFrames(new PoorDecoder(() => null, samples), TEN, false, NEVER)).silent;
  assertEquals([await count(1023), await count(4 * 1024 + 5), await count(1e6)], [0, 4, 10]);
});

const log = async (...lines: string[]) => {
  const bytes = new TextEncoder().encode(lines.map((line) => line + "\n").join(""));
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7));
      controller.close();
    },
  });
  const { firstError, silentSamples } = await new FfmpegLog().read(stream);
  return [firstError, silentSamples];
};
const GAP = "[Parsed_aresample_1 @ 0x55] [SWR @ 0x56] [verbose] adding 16384 audio samples of silence";

test("FfmpegLog counts silence in place of what failed, not that of a source with gaps", async () => {
  assertEquals(await log("[info] Input #0, matroska", GAP, GAP), ["", 0]);
  const older = "[error] Error while decoding stream #0:0: Invalid data found";
  assertEquals(await log("[flac @ 0x5] [error] invalid sync code", older, GAP, GAP), ["invalid sync code", 32_768]);
  const newer = "[aist#0:0/flac @ 0x5] [error] Error submitting packet to decoder: Invalid data found";
  assertEquals((await log(GAP, newer))[1], 16_384);
  assertEquals(await log("ffmpeg: cannot load a library"), ["ffmpeg: cannot load a library", 0]);
});

test("makeWholeFrames() rejects when the encoder itself fails", async () => {
  const gone = new PoorDecoder(() => new MillraceError("unavailable", "ffmpeg was not found"));
  await assertRejects(() => makeWholeFrames(gone, TEN, false, NEVER), MillraceError, "not found");
});

for (const name of ["mkv-hevc-eac3.mkv", "mp4-ac3.mp4", "mkv-mp3.mkv"]) {
  test(`openMedia() keeps the length of ${name} and tells silence when its sound is damaged`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const { ts, faults, hls } = await openBytes(bytes, {
      segmentTargetMs: 2000,
      transcode: { mp3: true, ac3: true },
      // The beginning is sound.
      audioEncoder: new PoorDecoder((n) => n === 0 ? null : damage),
    });
    const whole = await collect(ts.read(0, null, source, NEVER));
    assertEquals(whole.length, ts.sizeBytes);
    const report = checkTs(whole);
    assertEquals(report.problems, []);
    const frames = soundFrames(report.streams.find(({ streamType }) => streamType === 0x0f)!);
    for (let i = 1; i < frames.length; i++) assertEquals(frames[i]!.pts - frames[i - 1]!.pts, 1920);
    const { silenced } = faults!.counts;
    assert(silenced > 12 && silenced < frames.length, `${silenced}`);
    assert(faults!.warning?.includes(`${silenced} are silence`), `${faults!.warning}`);
    for (const { index } of hls.segments) {
      assertEquals((await collect(hls.readSegment(index, source, NEVER))).length, hls.segmentBytes(index));
    }
  });
}

test("openMedia() replaces damaged sound of a transport stream by silence, and tells it", async () => {
  const bytes = fixture("ts-mpeg2.ts");
  const source = new MemorySource(bytes);
  const { ts, faults } = await openBytes(bytes, {
    transcode: { mp3: true, ac3: true },
    audioEncoder: new PoorDecoder(() => damage),
  });
  const whole = await collect(ts.read(0, null, source, NEVER));
  assertEquals(whole.length, ts.sizeBytes);
  const sound = checkTs(whole, { isSegment: false }).streams.find(({ streamType }) => streamType === 0x0f)!;
  assert(sound.units.length > 0);
  assert(faults!.warning?.includes("are silence"), `${faults!.warning}`);
});

test("openMedia() leaves out sound that the encoder cannot decode, and says so", async () => {
  const bytes = fixture("mkv-mp3.mkv");
  const name = new TextEncoder().encode("A_MPEG/L3");
  const at = bytes.findIndex((_, i) => name.every((letter, n) => bytes[i + n] === letter));
  const rare = bytes.slice();
  rare.set(new TextEncoder().encode("A_REAL/XX"), at);
  const open = (decode: (n: number) => MillraceError | null) =>
    openBytes(rare, {
      transcode: { mp3: false, ac3: false, onlyIfSilent: true },
      audioEncoder: new PoorDecoder(decode),
    });
  const silent = await open(() => damage);
  assertEquals(silent.outputTracks.map(({ kind }) => kind), ["video"]);
  assert(silent.warnings.some((text) => text.includes("ffmpeg cannot decode A_REAL/XX")), silent.warnings.join());
  const source = new MemorySource(rare);
  assertEquals((await collect(silent.ts.read(0, null, source, NEVER))).length, silent.ts.sizeBytes);
  const heard = await open((n) => n === 0 ? damage : null);
  assertEquals(heard.outputTracks.map(({ codec }) => codec).at(-1), "aac");
});
