/** A film read whole: what it holds, what comes out, and what of that was promised. */
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { openMedia } from "../../src/media/open-media.ts";
import type { Presentation, PresentationOptions } from "../../src/media/model/types.ts";
import { verifyMedia } from "../../src/media/verify/verify.ts";
import { MemorySource } from "../support/memory-source.ts";
import { fixture, NEVER } from "./support/files.ts";

async function verified(
  bytes: Uint8Array,
  options: PresentationOptions = {},
  changed: (presentation: Presentation) => Presentation = (one) => one,
) {
  const source = new MemorySource(bytes);
  const presentation = await openMedia(source, { fileName: "test", signal: NEVER, ...options });
  return await verifyMedia(changed(presentation), source, NEVER);
}

const WHOLE: Readonly<Record<string, readonly number[]>> = {
  "mp4-front.mp4": [150, 283],
  "mp4-fragmented-bare.mp4": [150, 283],
  "mkv-two-audio.mkv": [150, 283, 188],
  "mkv-no-cues.mkv": [150, 283],
  "mp4-ac3.mp4": [150, 188],
  "mkv-hevc-eac3.mkv": [150, 188],
  "audio-vbr.mp3": [],
  "audio.aac": [],
};

for (const [name, counts] of Object.entries(WHOLE)) {
  test(`verifyMedia() finds ${name} whole`, async () => {
    const { tracks, problems, tsBytes } = await verified(fixture(name));
    assertEquals(problems, []);
    for (const { held, ts, hls } of tracks) assertEquals([ts, hls], [held, held]);
    if (counts.length > 0) assertEquals(tracks.map(({ held }) => held), counts);
    if (tsBytes !== null) assertEquals(tsBytes.given, tsBytes.promised);
  });
}

test("verifyMedia() counts the pictures and PES of a transport stream in its segments", async () => {
  const { tracks, problems } = await verified(fixture("ts-188.ts"));
  assertEquals(problems, []);
  assertEquals(tracks.map(({ held, hls }) => held === hls && held > 10), [true, true]);
});

test("verifyMedia() counts what fragments of MP4 carry, where MPEG TS cannot", async () => {
  for (const [name, options] of [["webm-vp9-opus.webm", {}], ["mp4-front.mp4", { fragmented: true }]] as const) {
    const { tracks, problems, segments } = await verified(fixture(name), options);
    assertEquals([problems, segments > 0], [[], true]);
    assertEquals(tracks.map(({ held, ts, hls }) => held === hls && held > 50 && ts === null), [true, true]);
  }
});

test("verifyMedia() names what a film that was cut off does not have", async () => {
  const { problems, faults } = await verified(fixture("mp4-fragmented-bare.mp4").slice(0, -9000));
  assertEquals(faults.unread > 0, true);
  assertMatch(problems.join("; "), /cannot be read/);
});

test("verifyMedia() names packets that do not come out, and a length that is not reached", async () => {
  const { problems } = await verified(fixture("mp4-front.mp4"), {}, (presentation) => ({
    ...presentation,
    durationMs: 60_000,
    ts: {
      ...presentation.ts,
      async *read(start, _end, ...from) {
        for await (const chunk of presentation.ts.read(start, 188 * 100, ...from)) yield chunk;
      },
    },
  }));
  assertMatch(problems[0]!, /^\d+ of 150 packets of video 1 \(h264\) are not in MPEG TS$/);
  assertMatch(problems.join("; "), /MPEG TS ends \d+ bytes before its length; . s play where the file promises 60 s/);
});

test("verifyMedia() names the segment that differs most from the playlist", async () => {
  const { worstSegment } = await verified(fixture("mp4-front.mp4"), { segmentTargetMs: 1000 }, (presentation) => ({
    ...presentation,
    async planHls(source, signal) {
      const hls = await presentation.planHls(source, signal);
      return { ...hls, segments: hls.segments.map((one) => one.index === 1 ? { ...one, durationMs: 300 } : one) };
    },
  }));
  assertEquals([worstSegment?.index, Math.round(worstSegment!.offMs / 100) > 3], [1, true]);
});
