import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import type { ByteSource } from "../../src/bytes/source.ts";
import { MemorySource } from "../support/memory-source.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { checkTs } from "../support/ts-check.ts";
import { collect, CountingSource, fixture, NEVER, openBytes, seeded } from "./support/files.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

/** Fixtures with a known TS size. */
const SIZED = [
  "mp4-front.mp4",
  "mp4-end.mp4",
  "mp4-24fps.mp4",
  "mp4-60fps.mp4",
  "mp4-hevc.mp4",
  "mp4-ac3.mp4",
  "mp4-mp3.mp4",
  "mp4-vfr.mp4",
  "mp4-nal2.mp4",
  "mp4-open-gop.mp4",
  "mp4-two-audio.mp4",
  "mp4-audio-delay.mp4",
  "mp4-video-delay.mp4",
  "mp4-trimmed.mp4",
  "mp4-fragmented-sidx.mp4",
  "mp4-fragmented-mfra.mp4",
  "quicktime.mov",
  "audio-only.m4a",
  "audio-only-mp3.mp4",
  "mkv-cues.mkv",
  "audio-cbr.mp3",
  "audio-vbr.mp3",
  "audio-tagged.mp3",
  "audio.mp2",
  "audio.aac",
];

for (const name of SIZED) {
  test(`TsLayout.read() makes a valid stream of the promised size from ${name}`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const { ts, outputTracks } = await openBytes(bytes);
    const whole = await collect(ts.read(0, null, source, NEVER));
    assertEquals(whole.length, ts.sizeBytes);
    const report = checkTs(whole);
    assertEquals(report.problems, []);
    assertEquals(report.streams.length, outputTracks.length);
    for (const stream of report.streams) assert(soundFrames(stream).length > 50);
  });

  test(`TsLayout.read() answers ranges equal to slices of the whole for ${name}`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const { ts } = await openBytes(bytes);
    const whole = await collect(ts.read(0, null, source, NEVER));
    const random = seeded(7);
    for (let i = 0; i < 12; i++) {
      const start = Math.floor(random() * whole.length);
      const end = Math.min(whole.length, start + 1 + Math.floor(random() * 30000));
      assertEquals(await collect(ts.read(start, end, source, NEVER)), whole.slice(start, end));
    }
    assertEquals((await collect(ts.read(whole.length, null, source, NEVER))).length, 0);
    assertEquals(await collect(ts.read(whole.length - 1, whole.length, source, NEVER)), whole.slice(-1));
  });

  test(`HlsPlan.readSegment() returns complete slices of ${name} that can be made in any order and joined`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const { ts, hls } = await openBytes(bytes, { segmentTargetMs: 2000 });
    assert(hls.segments.length > 1);
    const segments: Uint8Array[] = [];
    for (const { index } of [...hls.segments].reverse()) {
      const segment = await collect(hls.readSegment(index, source, NEVER));
      assertEquals(segment.length, hls.segmentBytes(index));
      const report = checkTs(segment);
      assertEquals(report.problems, []);
      const main = report.streams[0]!;
      assert(main.units[0]!.randomAccess || main.streamType === 0x0f || main.streamType === 3);
      segments.unshift(segment);
    }
    assertEquals(concatBytes(segments), await collect(ts.read(0, null, source, NEVER)));
    const shuffled = checkTs(concatBytes([...segments].reverse()));
    assertEquals(shuffled.problems.filter((problem) => problem.includes("counter")), []);
  });
}

for (const name of ["mp4-fragmented-bare.mp4", "mkv-no-cues.mkv"]) {
  test(`TsLayout has no size and reads from the start when ${name} has no index`, async () => {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const { ts, hls } = await openBytes(bytes, { segmentTargetMs: 2000 });
    assertEquals(ts.sizeBytes, null);
    const whole = await collect(ts.read(0, null, source, NEVER));
    const report = checkTs(whole);
    assertEquals(report.problems, []);
    assertEquals(report.streams.map((stream) => soundFrames(stream).length), [150, 283]);
    const parts: Uint8Array[] = [];
    for (const { index } of hls.segments) {
      assertEquals(hls.segmentBytes(index), null);
      parts.push(await collect(hls.readSegment(index, source, NEVER)));
    }
    assertEquals(concatBytes(parts), whole);
  });
}

test("openMedia() reads only the index when moov is at the end", async () => {
  const bytes = fixture("mp4-end.mp4");
  const source = new CountingSource(bytes);
  const { openMedia } = await import("../../src/media/open-media.ts");
  await openMedia(source, { fileName: "a", signal: NEVER });
  // Two probes of the front, one where moov starts, moov itself.
  assert(source.reads.length <= 4, `${source.reads.length} reads`);
  assert(source.reads.every(({ offset, length }) => offset > bytes.length / 2 || offset + length <= 4096));
});

test("TsLayout.read() of a range in the middle fetches that range only", async () => {
  const bytes = fixture("mp4-60fps.mp4");
  const { ts } = await openBytes(bytes);
  const source = new CountingSource(bytes);
  const middle = Math.floor(ts.sizeBytes! / 2);
  await collect(ts.read(middle, middle + 1000, source, NEVER));
  assert(source.bytesRead < 20_000, `${source.bytesRead} bytes`);
});

test("TsLayout.read() begins before more than 24 KiB of an MP4 file are here", async () => {
  const bytes = fixture("mp4-front.mp4");
  const { ts } = await openBytes(bytes);
  const whole = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
  for (const start of [0, whole.length >> 2, whole.length >> 1]) {
    let end = 0;
    const source: ByteSource = {
      sizeBytes: bytes.length,
      read(offset, length) {
        end ||= offset + 24 * 1024;
        if (offset + length > end) return Promise.reject(new MillraceError("timeout", "not here yet"));
        return Promise.resolve(bytes.slice(offset, offset + length));
      },
    };
    const parts: Uint8Array[] = [];
    const error = await assertRejects(async () => {
      for await (const part of ts.read(start, null, source, NEVER)) parts.push(part);
    }, MillraceError);
    assertEquals(error.code, "timeout");
    const first = concatBytes(parts);
    assert(first.length > 0);
    assertEquals(first, whole.slice(start, start + first.length));
  }
});

test("TsLayout.read() of an MP4 file asks for 16 KiB at a time while it has to wait", async () => {
  const bytes = fixture("mp4-60fps.mp4");
  const { ts } = await openBytes(bytes);
  const whole = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
  const read = async (isHere: boolean) => {
    const source = new CountingSource(bytes);
    const slow: ByteSource = {
      sizeBytes: bytes.length,
      read: (...wanted) => source.read(...wanted),
      availableFrom: (_offset, most) => isHere ? most : 0,
    };
    assertEquals(await collect(ts.read(0, null, slow, NEVER)), whole);
    return source.reads;
  };
  const [waiting, here] = [await read(false), await read(true)];
  assert(waiting.every(({ length }) => length < 24 * 1024), JSON.stringify(waiting));
  assert(here.length < waiting.length, `${here.length} reads of ${waiting.length}`);
});

test("TsLayout.read() hands out chunks of at most 128 KiB", async () => {
  const bytes = fixture("mp4-front.mp4");
  const { ts } = await openBytes(bytes);
  for await (const chunk of ts.read(0, null, new MemorySource(bytes), NEVER)) {
    assert(chunk.length > 0 && chunk.length <= 128 * 1024);
  }
});

test("TsLayout.read() rejects with `aborted` when its signal fires", async () => {
  const bytes = fixture("mp4-front.mp4");
  const { ts } = await openBytes(bytes);
  const controller = new AbortController();
  controller.abort();
  const error = await assertRejects(
    () => collect(ts.read(0, null, new MemorySource(bytes), controller.signal)),
    MillraceError,
  );
  assert(hasCode(error, "aborted"));
});

test("TsLayout.fingerprint changes when the preferred language does", async () => {
  const bytes = fixture("mp4-two-audio.mp4");
  const english = await openBytes(bytes, { preferredAudioLanguage: "en" });
  const german = await openBytes(bytes, { preferredAudioLanguage: "de,en" });
  assert(english.ts.fingerprint !== german.ts.fingerprint);
  assertEquals(english.outputTracks.map((track) => track.language), [english.outputTracks[0]!.language, "eng", "ger"]);
  assertEquals(german.outputTracks.map((track) => track.language), [german.outputTracks[0]!.language, "ger", "eng"]);
});

test("openMedia() refuses with the codecs' names when nothing can be carried", async () => {
  const asTs = () => openBytes(fixture("webm-vp9-opus.webm"), { fragmented: false });
  const error = await assertRejects(asTs, MillraceError, "vp9");
  assert(hasCode(error, "unsupported_media"));
});

for (const name of [...SIZED, "mkv-two-audio.mkv", "mkv-hevc-eac3.mkv", "mkv-no-cues.mkv", "mp4-fragmented-bare.mp4"]) {
  test(`TsLayout.read() yields the same bytes of ${name} in reused memory, and does not touch memory after its release`, async () => {
    const bytes = fixture(name);
    const { ts } = await openBytes(bytes);
    const plain = new MemorySource(bytes);
    const whole = await collect(ts.read(0, null, plain, NEVER));
    const buffers = new ChunkBuffers();
    const holders = new Map<ArrayBufferLike, number>();
    const source: ByteSource = {
      sizeBytes: plain.sizeBytes,
      async read(offset, length, options) {
        const answer = await plain.read(offset, length, options);
        holders.set(answer.buffer, 1);
        return answer;
      },
      hold(part) {
        const count = holders.get(part.buffer);
        assert(count !== 0, "held after its release");
        if (count !== undefined) holders.set(part.buffer, count + 1);
      },
      release(part) {
        const count = holders.get(part.buffer);
        if (count === undefined) return;
        assert(count > 0, "given back too often");
        holders.set(part.buffer, count - 1);
        if (count === 1) new Uint8Array(part.buffer).fill(0xdd);
      },
    };
    const half = ts.sizeBytes === null ? 0 : Math.floor(whole.length / 2);
    for (const start of [0, half, 0]) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of ts.read(start, null, source, NEVER, buffers)) {
        chunks.push(chunk.slice());
        chunk.fill(0xee);
        buffers.release(chunk);
      }
      assertEquals(concatBytes(chunks), whole.slice(start));
      assert(buffers.idleBytes > 0, "all came back");
    }
  });
}
