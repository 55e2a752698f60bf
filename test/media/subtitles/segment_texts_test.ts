/** Texts inside a film, segment by segment: those that last stand in each segment in which they are shown. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { ByteSource } from "../../../src/bytes/source.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { cluster, cues, element, matroska, simpleBlock, trackEntry } from "../mkv-support.ts";
import { NEVER, openBytes } from "../support/files.ts";

/** A text; `beside` are its additions by number. */
function text(time: number, durationMs: number, words: string, beside: readonly [number, string][] = []): Uint8Array {
  const head = new Uint8Array([0x82, time >> 8, time & 255, 0]);
  const body = concatBytes([head, new TextEncoder().encode(words)]);
  const more = beside.map(([id, value]) => element(0xa6, [element(0xa5, value), element(0xee, id)]));
  return element(0xa0, [
    element(0xa1, [body]),
    ...more.length === 0 ? [] : [element(0x75a1, more)],
    element(0x9b, durationMs),
  ]);
}

/** Four segments of two seconds; "long" is shown from 1.5 to 5.5 s. */
function film(): Uint8Array {
  const clusters = [0, 1, 2, 3].map((n) =>
    cluster(n * 2000, [
      ...Array.from({ length: 50 }, (_, i) => simpleBlock(1, i * 40, i === 0 ? 0x80 : 0, new Uint8Array(200))),
      text(500, 1000, `short ${n}`),
      ...n === 0 ? [text(1500, 4000, "long")] : [],
    ])
  );
  const starts = clusters.map((_, n) => clusters.slice(0, n).reduce((sum, { length }) => sum + length, 0));
  return matroska(clusters, {
    durationMs: 8000,
    tracks: [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      element(0xae, [element(0xd7, 2), element(0x83, 17), element(0x86, "S_TEXT/UTF8")]),
    ],
    after: (base) => [cues(base, starts.map((start, n) => [n * 2000, start, null] as const))],
  });
}

const BYTES = film();
const openTexts = async () => (await openBytes(BYTES, { segmentTargetMs: 2000 })).hls.texts!;
type Texts = Awaited<ReturnType<typeof openTexts>>;
const shown = async (texts: Texts, n: number, source: ByteSource = new MemorySource(BYTES)) =>
  (await texts.read(0, n, source, NEVER)).map((cue) => cue.text);

test("SegmentTexts.read() gives a cue that lasts in each segment in which it is shown, once the one before was read", async () => {
  const texts = await openTexts();
  const all = [];
  for (const n of [0, 1, 2, 3]) all.push(await shown(texts, n));
  assertEquals(all, [["short 0", "long"], ["long", "short 1"], ["long", "short 2"], ["short 3"]]);
});

test("SegmentTexts.read() looks into the segment before after a seek, but fetches nothing for it", async () => {
  assertEquals(await shown(await openTexts(), 1), ["long", "short 1"]);
  const cold = Object.assign(new MemorySource(BYTES), { availableFrom: () => 0 });
  assertEquals(await shown(await openTexts(), 1, cold), ["short 1"]);
});

test("SegmentTexts.read() gives WebVTT of mkvmerge the settings that stand beside it, and nothing else of what does", async () => {
  const vtt = (n: number, beside: readonly [number, string][]) => text(n * 300, 200, `${n}`, beside);
  const first = [
    vtt(1, [[1, "line:0 region:x align:start\nname\nNOTE position:50%"]]),
    vtt(2, [[4, "line:0"], [1, "position:10%\n"]]),
    vtt(3, [[1, "\nline:0"]]),
    vtt(4, [[1, `line:0 ${"x".repeat(5000)}`]]),
    vtt(5, []),
  ];
  const bytes = matroska([
    cluster(0, [...Array.from({ length: 50 }, (_, i) => simpleBlock(1, i * 40, 0x80, new Uint8Array(200))), ...first]),
  ], {
    durationMs: 2000,
    tracks: [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      element(0xae, [element(0xd7, 2), element(0x83, 17), element(0x86, "S_TEXT/WEBVTT")]),
    ],
    after: (base) => [cues(base, [[0, 0, null]])],
  });
  const { texts } = (await openBytes(bytes)).hls;
  const found = await texts!.read(0, 0, new MemorySource(bytes), NEVER);
  assertEquals(found.map((cue) => cue.settings), ["line:0 align:start", "position:10%", "", "", ""]);
  assertEquals(found.map((cue) => cue.text), ["1", "2", "3", "4", "5"]);
});

test("SegmentTexts.read() gives 50 of the texts that are shown at once, and those that come after them", async () => {
  const texts = [
    ...Array.from({ length: 4000 }, (_, n) => text(0, 1000, `sign ${n}`)),
    text(1500, 100, "speech"),
  ];
  const block = simpleBlock(1, 0, 0x80, new Uint8Array(200));
  const file = matroska([cluster(0, [block, ...texts])], {
    durationMs: 2000,
    tracks: [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      element(0xae, [element(0xd7, 2), element(0x83, 17), element(0x86, "S_TEXT/UTF8")]),
    ],
    after: (base) => [cues(base, [[0, 0, null]])],
  });
  const { hls } = await openBytes(file, { segmentTargetMs: 2000 });
  const found = await hls.texts!.read(0, 0, new MemorySource(file), NEVER);
  assertEquals(found.length, 51);
  assertEquals(found.at(-1)!.text, "speech");
});
