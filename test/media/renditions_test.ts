/** The sounds of a film apart from its pictures: the same access units and times, in any order, and no other bytes. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { concatBytes, equalBytes } from "../../src/bytes/hex.ts";
import { boxesIn, viewOf } from "../../src/bytes/boxes.ts";
import type { HlsPlan, Rendition } from "../../src/media/model/types.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { cluster, cues, element, floatBytes, matroska, simpleBlock, trackEntry } from "./mkv-support.ts";
import { collect, CountingSource, fixture, NEVER, openBytes } from "./support/files.ts";

const readAll = async (plan: HlsPlan, bytes: Uint8Array) => {
  const parts: Uint8Array[] = [];
  for (const { index } of plan.segments) {
    parts.push(await collect(plan.readSegment(index, new MemorySource(bytes), NEVER)));
  }
  return parts;
};

/** Access units of the only stream of `plan`: their bytes in one piece, and the first time. */
async function streamOf({ plan }: Rendition, bytes: Uint8Array) {
  const all = { problems: [] as string[], count: 0, first: null as number | null, data: [] as Uint8Array[] };
  for (const part of await readAll(plan, bytes)) {
    const { problems, streams } = checkTs(part);
    all.problems.push(...problems);
    all.count = Math.max(all.count, streams.length);
    for (const unit of streams[0]!.units) {
      all.first ??= unit.pts;
      all.data.push(unit.data);
    }
  }
  return { ...all, data: concatBytes(all.data) };
}

test("Presentation.planRenditions() parts a transport stream into streams that are those of the whole", async () => {
  const film = fixture("mkv-two-audio.mkv");
  const bytes = await collect((await openBytes(film)).ts.read(0, null, new MemorySource(film), NEVER));
  const { planRenditions, hls } = await openBytes(bytes, { segmentTargetMs: 2000, preferredAudioLanguage: "de" });
  const { video, sounds } = await planRenditions!(new MemorySource(bytes), NEVER);
  assertEquals(sounds.map(({ track, codecs }) => [track.language, codecs]), [["ger", "ac-3"], ["eng", "mp4a.40.2"]]);
  assert(/^avc1\.[0-9A-F]{6}$/.test(video.codecs!), video.codecs!);
  assertEquals([video.track.width, video.track.height], [160, 90]);
  const whole = checkTs(concatBytes(await readAll(hls, bytes)));
  for (const [i, rendition] of [video, ...sounds].entries()) {
    const { problems, count, data } = await streamOf(rendition, bytes);
    assertEquals([problems, count], [[], 1]);
    assert(equalBytes(data, concatBytes(whole.streams[i]!.units.map((unit) => unit.data))), `stream ${i}`);
  }
});

for (const name of ["mkv-two-audio.mkv", "mp4-two-audio.mp4"]) {
  test(`Presentation.planRenditions() parts ${name} into streams that are those of the whole`, async () => {
    const bytes = fixture(name);
    const options = { segmentTargetMs: 2000 };
    const { planRenditions, hls } = await openBytes(bytes, options);
    const { video, sounds } = await planRenditions!(new MemorySource(bytes), NEVER);
    assertEquals(sounds.map(({ track, codecs }) => [track.language, codecs]), [["eng", "mp4a.40.2"], ["ger", "ac-3"]]);
    const whole = checkTs(concatBytes(await readAll(hls, bytes)));
    for (const [i, rendition] of [video, ...sounds].entries()) {
      const { problems, count, first, data } = await streamOf(rendition, bytes);
      assertEquals([problems, count], [[], 1]);
      const { units } = whole.streams[i]!;
      assert(equalBytes(data, concatBytes(units.map((unit) => unit.data))), `stream ${i}`);
      assertEquals(first, units[0]!.pts);
      const { segments } = rendition.plan;
      assertEquals(segments.map(({ startMs }) => startMs), video.plan.segments.map(({ startMs }) => startMs));
      assert(segments.length > 2);
    }
    const again = await openBytes(bytes, options);
    const other = await again.planRenditions!(new MemorySource(bytes), NEVER);
    for (const [i, { plan }] of sounds.entries()) {
      const forth = await readAll(plan, bytes);
      for (const { index } of plan.segments.toReversed()) {
        const back = other.sounds[i]!.plan.readSegment(index, new MemorySource(bytes), NEVER);
        assert(equalBytes(await collect(back), forth[index]!), `segment ${index}`);
      }
    }
  });
}

test("a segment of sound takes its own bytes alone: of MP4 in what is read, of Matroska in what is sent", async () => {
  const mp4 = fixture("mp4-two-audio.mp4");
  const { sounds } = await (await openBytes(mp4)).planRenditions!(new MemorySource(mp4), NEVER);
  const source = new CountingSource(mp4);
  const { plan } = sounds[1]!;
  const sent = await collect(plan.readSegment(0, source, NEVER));
  // 64 kbit/s.
  assertLess(sent.length, 8000 * plan.segments[0]!.durationMs / 1000 * 2);
  assertLess(source.bytesRead, mp4.length / 2);
  const mkv = fixture("mkv-two-audio.mkv");
  const renditions = await (await openBytes(mkv)).planRenditions!(new MemorySource(mkv), NEVER);
  const sound = renditions.sounds[1]!.plan;
  assertEquals(sound.segmentBytes(0), null);
  const bytes = (await collect(sound.readSegment(0, new MemorySource(mkv), NEVER))).length;
  assertLess(bytes, 8000 * sound.segments[0]!.durationMs / 1000 * 2);
});

test("a film of one sound, a file of sound and a transport stream have no renditions", async () => {
  for (const name of ["mkv-cues.mkv", "audio-only.m4a", "ts-188.ts"]) {
    assertEquals((await openBytes(fixture(name))).planRenditions, undefined, name);
  }
});

const AV1C = Uint8Array.of(0x81, 0x05, 0x0c, 0);
/** A header of Opus (RFC 7845, 5.1) with this many samples to skip. */
const opusHead = (skipped: number) =>
  concatBytes([
    new TextEncoder().encode("OpusHead"),
    Uint8Array.of(1, 2, skipped & 255, skipped >> 8, 0x80, 0xbb, 0, 0, 0, 0, 0),
  ]);
const opusTrack = (number: number, language: string, skipped: number) =>
  trackEntry(number, "audio", "A_OPUS", [
    element(0x22b59c, language),
    element(0x63a2, opusHead(skipped)),
    element(0xe1, [element(0xb5, floatBytes(48_000)), element(0x9f, 2)]),
  ]);

/** A film of six seconds of AV1 with two sounds of Opus, of which decoders skip 312 and 3840 samples. */
function film(): Uint8Array {
  const clusters = [0, 1, 2].map((n) =>
    cluster(
      n * 2000,
      Array.from({ length: 100 }, (_, i) => {
        const time = i * 20;
        return [
          ...i % 2 === 0 ? [simpleBlock(1, time, i === 0 ? 0x80 : 0, new Uint8Array(400).fill(1))] : [],
          simpleBlock(2, time, 0x80, new Uint8Array(60).fill(2)),
          simpleBlock(3, time, 0x80, new Uint8Array(90).fill(3)),
        ];
      }).flat(),
    )
  );
  const starts = clusters.map((_, n) => clusters.slice(0, n).reduce((sum, { length }) => sum + length, 0));
  const size = element(0xe0, [element(0xb0, 64), element(0xba, 64)]);
  return matroska(clusters, {
    durationMs: 6000,
    tracks: [
      trackEntry(1, "video", "V_AV1", [element(0x23e383, 40_000_000), element(0x63a2, AV1C), size]),
      opusTrack(2, "eng", 312),
      opusTrack(3, "ger", 3840),
    ],
    after: (base) => [cues(base, starts.map((start, n) => [n * 2000, start, null] as const))],
  });
}

/** Decoding time of the first fragment in `segment`, and the bytes of its media. */
function factsOf(segment: Uint8Array): { readonly firstDts: number; readonly mediaBytes: number } {
  const view = viewOf(segment);
  const boxes = [...boxesIn(view, 0, segment.length)];
  const at = new TextDecoder("latin1").decode(segment).indexOf("tfdt");
  const mediaBytes = boxes.filter(({ type }) => type === "mdat").reduce((sum, { start, end }) => sum + end - start, 0);
  return { firstDts: Number(view.getBigUint64(at + 8)), mediaBytes };
}

test("Presentation.planRenditions() of fragmented MP4 puts all sounds on the clock of the pictures", async () => {
  const bytes = film();
  const { planRenditions, hls, hlsOnly } = await openBytes(bytes, { segmentTargetMs: 2000 });
  assertEquals([hlsOnly, hls.segments.length], [true, 3]);
  const { video, sounds } = await planRenditions!(new MemorySource(bytes), NEVER);
  assertEquals([video, ...sounds].map(({ plan }) => plan.fragmented?.codecs), [["av01.0.05M.08"], ["Opus"], ["Opus"]]);
  assertEquals(new Set([hls, video.plan].map(({ zeroPts90k }) => zeroPts90k)).size, 1);
  const first = await Promise.all(
    [video, ...sounds].map(({ plan }) => collect(plan.readSegment(1, new MemorySource(bytes), NEVER))),
  );
  // All are late by what the second sound is early; decoders skip as much of each as it is early.
  const late = 3840 * 90_000 / 48_000;
  assertEquals(first.map((segment) => factsOf(segment).firstDts), [180_000 + late, 180_000 + late - 585, 180_000]);
  assertEquals(first.slice(1).map((segment) => factsOf(segment).mediaBytes), [100 * 60, 100 * 90]);
});
