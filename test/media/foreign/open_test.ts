import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { sniffContainer } from "../../../src/bytes/container.ts";
import { sniffForeign } from "../../../src/bytes/foreign-container.ts";
import { MillraceError } from "../../../src/errors.ts";
import type { ForeignJob, ForeignReader, ForeignRun } from "../../../src/media/model/foreign-reader.ts";
import { checkTs } from "../../support/ts-check.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { collect, fixture, NEVER, openBytes, seeded } from "../support/files.ts";

const latin = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));

test("sniffForeign() recognises only formats that ffmpeg reads and we do not", () => {
  const cases: [string, string | null][] = [
    ["RIFF\x01\x02\x03\x04AVI LIST", "avi"],
    ["FLV\x01\x05\0\0\0\x09", "flv"],
    ["\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9", "asf"],
    ["\0\0\x01\xba\x44\0\x04\0", "mpeg"],
    ["MAC \x96\x0f", "ape"],
    ["wvpk\x01\x02", "wv"],
    ["FORM\0\0\0\0AIFFCOMM", "aiff"],
    ["FORM\0\0\0\0AIFCFVER", "aiff"],
    ["FORM\0\0\0\0ILBM", null],
    ["caff\0\x01\0\0", "caf"],
    [".snd\0\0\0\x18", "au"],
    ["#!AMR\n", "amr"],
    ["RIFF\x01\x02\x03\x04WAVEfmt ", null],
    ["OggS\0\x02", null],
    ["\x1a\x45\xdf\xa3", null],
    ["RIFF", null],
    ["", null],
  ];
  for (const [head, demuxer] of cases) {
    const bytes = latin(head.padEnd(head === "" || head === "RIFF" ? 0 : 600, "\x80"));
    assertEquals(sniffForeign(bytes)?.demuxer ?? null, demuxer, head);
    if (demuxer !== null) assertEquals(sniffContainer(bytes), null, head);
  }
});

const STREAMS = {
  video: { index: 0, codec_name: "h264", codec_type: "video", has_b_frames: 2, r_frame_rate: "25/1" },
  audio: { index: 1, codec_name: "aac", codec_type: "audio", sample_rate: "48000", channels: 1 },
  old: { index: 0, codec_name: "wmv2", codec_type: "video" },
};

/**
 * A reader whose ffprobe reports `streams`, and whose ffmpeg outputs the fixture ts-188.ts, wherever it is asked to begin.
 * `setAsideAfter` sets the run aside that does the n-th read of ffmpeg's output from then on.
 */
function fakeReader(streams: readonly object[], isThere = true) {
  let readsUntilAside = Infinity;
  const jobs: ForeignJob[] = [];
  let open = 0;
  const reader: ForeignReader = {
    isAvailable: () => Promise.resolve(isThere),
    open(job) {
      jobs.push(job);
      open++;
      const told = JSON.stringify({ streams, format: { start_time: "1.4", duration: "6.0" } });
      const output = job.program === "ffprobe" ? new TextEncoder().encode(told) : fixture("ts-188.ts");
      const random = seeded(jobs.length);
      let at = 0;
      let isClosed = false;
      let isSetAside = false;
      const run: ForeignRun = {
        get isSetAside() {
          return isSetAside;
        },
        silentSamples: 0,
        next() {
          if (isClosed) return Promise.reject(new MillraceError("closed", "ended"));
          const from = at;
          at = Math.min(output.length, at + 1 + Math.floor(random() * 20_000));
          if (job.program === "ffmpeg" && --readsUntilAside === 0) {
            isSetAside = true;
            this.close();
          }
          return Promise.resolve(from === at ? null : output.slice(from, at));
        },
        close() {
          if (!isClosed) open--;
          isClosed = true;
        },
      };
      return Promise.resolve(run);
    },
  };
  return { reader, jobs, open: () => open, setAsideAfter: (reads: number) => readsUntilAside = reads };
}

const AVI = latin("RIFF\0\0\0\0AVI LIST".padEnd(400_000, "\x80"));

test("openMedia() lays out what ffmpeg copies: no length, HLS of the same bytes, every program ended", async () => {
  const { reader, jobs, open } = fakeReader([STREAMS.video, STREAMS.audio]);
  const { ts, hls, outputTracks, warnings } = await openBytes(AVI, { foreignReader: reader, segmentTargetMs: 2000 });
  assertEquals(outputTracks.map(({ codec }) => codec), ["h264", "aac"]);
  assertEquals([ts.sizeBytes, warnings.length], [null, 2]);
  const whole = await collect(ts.read(0, null, new MemorySource(AVI), NEVER));
  const report = checkTs(whole);
  assertEquals(report.problems, []);
  const wanted = checkTs(fixture("ts-188.ts"), { isSegment: false }).streams;
  assertEquals(report.streams[0]!.units.length, wanted[0]!.units.length);
  assertEquals(
    concatBytes(report.streams[1]!.units.map(({ data }) => data)),
    concatBytes(wanted[1]!.units.map(({ data }) => data)),
  );
  assert(hls.segments.length > 1);
  const parts: Uint8Array[] = [];
  for (const { index } of hls.segments.toReversed()) {
    parts.unshift(await collect(hls.readSegment(index, new MemorySource(AVI), NEVER)));
  }
  assertEquals(concatBytes(parts), whole);
  for await (const _ of ts.read(0, null, new MemorySource(AVI), NEVER)) break;
  assertEquals(open(), 0);
  const [probe, ...copies] = jobs.map((job) => job.arguments("URL"));
  for (const args of [probe!, ...copies]) assert(args.includes("-format_whitelist") && args.includes("URL"));
  assert(copies.every((args) => args.filter((arg) => arg === "copy").length === 2));
});

test("openMedia() goes on with another program at its place when one was set aside, byte for byte the same", async () => {
  const sounds = [STREAMS.audio, { ...STREAMS.audio, codec_name: "wmav2" }];
  for (const sound of sounds) {
    const { reader, jobs, open, setAsideAfter } = fakeReader([STREAMS.video, sound]);
    const transcode = { mp3: false, ac3: false };
    const { ts } = await openBytes(AVI, { foreignReader: reader, transcode, segmentTargetMs: 2000 });
    const read = () => collect(ts.read(0, null, new MemorySource(AVI), NEVER));
    const whole = await read();
    for (const reads of [1, 2, 3, 7, 12]) {
      const before = jobs.length;
      assertEquals(await read(), whole);
      const usual = jobs.length - before;
      setAsideAfter(reads);
      assertEquals(await read(), whole, `after ${reads} reads`);
      assertEquals([jobs.length - before, open()], [2 * usual + 1, 0], `after ${reads} reads`);
    }
  }
});

test("openMedia() explains why it refuses films whose picture can't be copied, and all foreign films when ffmpeg is missing", async () => {
  const cases: [what: object[], isThere: boolean, message: string][] = [
    [[STREAMS.old, { ...STREAMS.audio, codec_name: "wmav2" }], true, "MPEG TS cannot carry wmv2, wmav2"],
    [[], true, "the file has no video or audio that can be read"],
    [[STREAMS.video], false, "the container is AVI, which only ffmpeg reads: install ffmpeg and ffprobe"],
  ];
  for (const [streams, isThere, message] of cases) {
    const { reader, open } = fakeReader(streams, isThere);
    const transcode = { mp3: false, ac3: false, onlyIfSilent: true };
    const error = await assertRejects(() => openBytes(AVI, { foreignReader: reader, transcode }), MillraceError);
    assertEquals([error.message, open()], [message, 0]);
  }
  const error = await assertRejects(() => openBytes(AVI), MillraceError);
  assertEquals(error.code, "unsupported_media");
});

test("openMedia() makes AAC of the sound where that is wished for, with a program for each run", async () => {
  const sound = { ...STREAMS.audio, codec_name: "wmav2" };
  const transcode = { mp3: false, ac3: false };
  const { reader, jobs, open } = fakeReader([STREAMS.video, sound]);
  const { ts, hls, outputTracks } = await openBytes(AVI, { foreignReader: reader, transcode, segmentTargetMs: 2000 });
  assertEquals(outputTracks.map(({ codecId }) => codecId), ["h264", "AAC of wmav2"]);
  const before = jobs.length;
  const whole = await collect(ts.read(0, null, new MemorySource(AVI), NEVER));
  assertEquals(checkTs(whole).problems, []);
  assertEquals([jobs.length - before, open()], [hls.segments.length, 0]);
  const args = jobs.at(-1)!.arguments("URL");
  assertEquals([args.filter((arg) => arg === "copy").length, args[args.indexOf("-c:1") + 1]], [1, "aac"]);
});

test("openMedia() leaves out sound whose rate ffprobe does not find, since ffmpeg would copy nothing beside it", async () => {
  const unknown = { ...STREAMS.audio, sample_rate: "0" };
  const { reader, jobs } = fakeReader([STREAMS.video, unknown]);
  const { outputTracks, warnings } = await openBytes(AVI, { foreignReader: reader });
  assertEquals(outputTracks.map(({ codec }) => codec), ["h264"]);
  assert(warnings.includes("audio track 2 left out: MPEG TS cannot carry aac of unknown rate"), warnings.join());
  assert(jobs.filter(({ program }) => program === "ffmpeg").every((job) => !job.arguments("url").includes("0:1")));
});
