/** Texts inside a film, segment by segment: those that last stand in each segment in which they are shown. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { ByteSource } from "../../../src/bytes/source.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { cluster, cues, element, matroska, simpleBlock, trackEntry } from "../mkv-support.ts";
import { NEVER, openBytes } from "../support/files.ts";

function text(time: number, durationMs: number, words: string): Uint8Array {
  const head = new Uint8Array([0x82, time >> 8, time & 255, 0]);
  const body = concatBytes([head, new TextEncoder().encode(words)]);
  return element(0xa0, [element(0xa1, [body]), element(0x9b, durationMs)]);
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
