/** Films with as many sounds and texts as fit, made to freeze the engine or fill its memory where a list of them is wanted. */
import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { cluster, cues, element, matroska, simpleBlock, trackEntry } from "../media/mkv-support.ts";
import { seedFiles } from "../support/engine.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const SOUNDS = 50;
const TEXTS = 205;
/** Texts in each of the two segments, and how often their style changes: as many as a segment may have would be no other. */
const CUES = 20_000;
const STYLES = 14;
/** Texts of the other film. */
const MANY = 1_000_000;

/** A block with a track number of two bytes. */
const block = (track: number, time: number, payload: Uint8Array) =>
  element(0xa3, [new Uint8Array([0x40 | (track >> 8), track & 255, time >> 8, time & 255, 0x80]), payload]);

function film(): Uint8Array {
  const numbers = Array.from({ length: SOUNDS }, (_, i) => 2 + i);
  const text = new TextEncoder().encode("0,0,Default,,0,0,0,,".concat("{\\i1}a{\\i0}<&".repeat(STYLES)));
  const clusters = [0, 1].map((n) =>
    cluster(n * 2000, [
      ...Array.from({ length: 50 }, (_, i) => block(1, i * 40, new Uint8Array(100))),
      ...numbers.map((number) => block(number, 0, new Uint8Array(100))),
      ...Array.from({ length: CUES }, (_, i) => block(2 + SOUNDS, i % 2000, text)),
    ])
  );
  const starts = clusters.map((_, n) => clusters.slice(0, n).reduce((sum, { length }) => sum + length, 0));
  const texts = Array.from({ length: TEXTS }, (_, i) => 2 + SOUNDS + i);
  return matroska(clusters, {
    durationMs: 4000,
    tracks: [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      ...numbers.map((number) => trackEntry(number, "audio", "A_AC3")),
      ...texts.map((number) => element(0xae, [element(0xd7, number), element(0x83, 17), element(0x86, "S_TEXT/ASS")])),
    ],
    after: (base) => [cues(base, starts.map((start, n) => [n * 2000, start, null] as const))],
  });
}

/** A file of subtitles with cues of a day, at most this large. */
const line = (n: number) => `${n}\n00:00:0${n % 8},000 --> 24:00:00,000\n<i>word</i> & word\n\n`;
const srt = (sizeBytes: number) =>
  new TextEncoder().encode(Array.from({ length: Math.floor(sizeBytes / 60) }, (_, n) => line(n)).join(""));

async function read({ url }: Target, path: string): Promise<string> {
  const response = await fetch(path.startsWith("http") ? path : `${url}${path}`, {
    signal: AbortSignal.timeout(20_000),
  });
  assertEquals(response.status, 200, path);
  return await response.text();
}

test("a film of 256 tracks and 40,000 cues delays nobody, and lists what it may", async () => {
  const seeder = await seedFiles([
    { path: "film.mkv", bytes: film() },
    // Larger than any that is offered, and as large as may be.
    { path: "film.en.srt", bytes: srt(2.5 * 1024 * 1024) },
    { path: "film.de.srt", bytes: srt(2 * 1024 * 1024) },
  ], { pieceLengthBytes: 1 << 20 });
  try {
    await withTarget(async (target) => {
      const query = new URLSearchParams({ magnet: seeder.magnet, pid: "many" });
      await read(target, `/engine/manifest.m3u8?${query}`);
      await assertHarmless(target, async () => {
        const master = await read(target, `/engine/manifest.m3u8?${query}&renditions=1`);
        const lists = [...master.matchAll(/^#EXT-X-MEDIA:TYPE=(\w+),.*URI="([^"]+)"/gm)];
        const of = (type: string) => lists.filter(([, found]) => found === type).map(([, , url]) => url!);
        assertEquals([of("AUDIO").length, of("SUBTITLES").length], [32, 61]);
        for (const list of [of("AUDIO")[0]!, of("AUDIO")[31]!, of("SUBTITLES")[0]!, of("SUBTITLES").at(-1)!]) {
          for (const link of (await read(target, list)).split("\n").filter((one) => one.startsWith("http"))) {
            const bytes = (await read(target, link)).length;
            assertLessOrEqual(bytes, 4 * 1024 * 1024, link);
            assert(bytes > 0);
          }
        }
      });
    });
  } finally {
    await seeder.close();
  }
});

/** A million texts of 24 hours in 50 MB: those of the first track nest, those of the second open what they never close. */
function talkative(): Uint8Array {
  const nested = new TextEncoder().encode(`0,0,D,,0,0,0,,${"{\\t(0,9,".repeat(3)}<i>${"}".repeat(3)}a`);
  const open = new TextEncoder().encode(`0,0,D,,0,0,0,,${"{\\i1<b>&{".repeat(4)}`);
  const group = (track: number, text: Uint8Array) =>
    element(0xa0, [element(0xa1, [new Uint8Array([0x80 | track, 0, 1, 0]), text]), element(0x9b, 86_400_000)]);
  const texts = (track: number, text: Uint8Array) => {
    const one = group(track, text);
    const all = new Uint8Array(one.length * (MANY / 4));
    for (let at = 0; at < all.length; at += one.length) all.set(one, at);
    return all;
  };
  const clusters = [0, 1].map((n) =>
    cluster(n * 2000, [
      ...Array.from({ length: 50 }, (_, i) => simpleBlock(1, i * 40, 0x80, new Uint8Array(100))),
      texts(2, nested),
      texts(3, open),
    ])
  );
  const entry = (number: number) =>
    element(0xae, [element(0xd7, number), element(0x83, 17), element(0x86, "S_TEXT/ASS")]);
  return matroska(clusters, {
    durationMs: 4000,
    tracks: [trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]), entry(2), entry(3)],
    after: (base) => [cues(base, [[0, 0, null], [2000, clusters[0]!.length, null]])],
  });
}

test("a million texts that nest, in 50 MB of a film, delay nobody and come to a bounded number", async () => {
  const bytes = talkative();
  assert(bytes.length > 50_000_000);
  const seeder = await seedFiles([{ path: "film.mkv", bytes }], { pieceLengthBytes: 1 << 20 });
  try {
    await withTarget(async (target) => {
      const query = new URLSearchParams({ magnet: seeder.magnet, pid: "texts" });
      await read(target, `/engine/manifest.m3u8?${query}`);
      await assertHarmless(target, async () => {
        const master = await read(target, `/engine/manifest.m3u8?${query}&renditions=1`);
        const lists = [...master.matchAll(/^#EXT-X-MEDIA:TYPE=SUBTITLES,.*URI="([^"]+)"/gm)];
        assertEquals(lists.length, 2);
        for (const [, list] of lists) {
          for (const link of (await read(target, list!)).split("\n").filter((one) => one.startsWith("http"))) {
            const text = await read(target, link);
            assertLessOrEqual(text.length, 4 * 1024 * 1024, link);
            const count = text.split("-->").length - 1;
            assert(count >= 50 && count <= 20_100, `${count} in ${link}`);
          }
        }
      });
    });
  } finally {
    await seeder.close();
  }
});
