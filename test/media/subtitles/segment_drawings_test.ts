/** Drawn subtitles of a film segment by segment, within bounds. */
import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { scriptHead, scriptLines, supOf } from "../../../src/media/subtitles/drawn-files.ts";
import { pictureOf, readSup } from "../../../src/webui/drawn/pgs.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { seeded } from "../../support/random.ts";
import { cluster, cues, element, matroska, simpleBlock, trackEntry } from "../mkv-support.ts";
import { NEVER, openBytes } from "../support/files.ts";
import { discNothing, discPicture } from "../support/picture-subtitles.ts";

const SCREEN = [320, 180] as const;
const bytes = (text: string) => new TextEncoder().encode(text);
const PICTURE = discPicture({ number: 1, width: 64, height: 16, screen: SCREEN });

/** Four segments of two seconds with a picture in the second, which goes in the third, and `lines` of a script in each. */
function film(lines: number, line: (n: number) => string): Uint8Array {
  const clusters = [0, 1, 2, 3].map((n) =>
    cluster(n * 2000, [
      ...Array.from({ length: 50 }, (_, i) => simpleBlock(1, i * 40, i === 0 ? 0x80 : 0, new Uint8Array(200))),
      ...n === 1
        ? [simpleBlock(2, 500, 0x80, PICTURE)]
        : n === 2
        ? [simpleBlock(2, 500, 0x80, discNothing(2, SCREEN))]
        : [],
      ...Array.from({ length: n === 3 ? 0 : lines }, (_, i) => {
        const head = Uint8Array.of(0x83, i % 2000 >> 8, i % 2000 & 255, 0);
        return element(0xa0, [element(0xa1, [concatBytes([head, bytes(line(n * lines + i))])]), element(0x9b, 1000)]);
      }),
    ])
  );
  const starts = clusters.map((_, n) => clusters.slice(0, n).reduce((sum, { length }) => sum + length, 0));
  return matroska(clusters, {
    durationMs: 8000,
    tracks: [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      element(0xae, [element(0xd7, 2), element(0x83, 17), element(0x86, "S_HDMV/PGS")]),
      element(0xae, [element(0xd7, 3), element(0x83, 17), element(0x86, "S_TEXT/ASS"), element(0x63a2, bytes(HEAD))]),
    ],
    after: (base) => [cues(base, starts.map((start, n) => [n * 2000, start, null] as const))],
  });
}
const HEAD = "[Script Info]\r\nPlayResX: 320\r\n\r\n[Events]\r\nFormat: Layer\r\n";

async function drawingsOf(file: Uint8Array) {
  const { drawings } = (await openBytes(file, { segmentTargetMs: 2000 })).hls;
  const read = (track: number, n: number) => drawings!.read(track, n, new MemorySource(file), NEVER);
  return { drawings: drawings!, read };
}

test("SegmentDrawings.read() gives what begins in a segment, at its time", async () => {
  const { drawings, read } = await drawingsOf(film(1, (n) => `${n},0,Default,,0,0,0,,{\\pos(1,2)}line ${n}`));
  assertEquals(drawings.tracks.map(({ form }) => form), ["pgs", "ass"]);
  const zero90k = drawings.startsMs[0]! * 90;
  assertEquals(drawings.startsMs.map((ms) => ms - drawings.startsMs[0]!), [0, 2000, 4000, 6000]);
  const counts = await Promise.all([0, 1, 2, 3].map(async (n) => (await read(0, n)).length));
  assertEquals(counts, [0, 1, 1, 0]);
  const [set] = readSup(supOf(await read(0, 1), zero90k));
  assertEquals(Math.round(set!.atS * 100), 250);
  const { objects, width, height } = pictureOf([set!], 0);
  assertEquals([width, height, objects.map(({ x, y, width, height }) => [x, y, width, height])], [320, 180, [
    [16, 156, 64, 16],
  ]]);
  assert(objects[0]!.rgba.every((value, i) => value > (i % 4 === 3 ? 254 : 250)), "white");
  assertEquals(
    scriptLines(await read(1, 2), zero90k),
    "Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,{\\pos(1,2)}line 2\n",
  );
  assertEquals(
    scriptHead(drawings.tracks[1]!.track.codecPrivate),
    "[Script Info]\nPlayResX: 320\n\n[Events]\n" +
      "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n",
  );
});

test("SegmentDrawings.isHere() says whether a segment can be read without fetching it", async () => {
  const file = film(0, String);
  const { drawings } = await drawingsOf(file);
  const cold = Object.assign(new MemorySource(file), { availableFrom: () => 0 });
  assertEquals([drawings.isHere(1, new MemorySource(file)), drawings.isHere(1, cold)], [true, false]);
});

test("SegmentDrawings.read() stops at its bounds in a film of 27,000 lines, and of drawings without end", async () => {
  const many = await drawingsOf(film(9000, (n) => `${n},0,Default,,0,0,0,,{\\p1}m 0 0 l 1 1`));
  assertEquals((await many.read(1, 1)).length, 8192);
  const nested = "{\\p1\\clip(".repeat(5000);
  const large = await drawingsOf(film(200, (n) => `${n},0,Default,,0,0,0,,${nested}`));
  const units = await large.read(1, 1);
  assertLessOrEqual(units.reduce((sum, { data }) => sum + data.length, 0), 4 * 1024 * 1024);
  const larger = await drawingsOf(film(2, (n) => `${n},0,Default,,0,0,0,,${"x".repeat(n === 3 ? 70_000 : 10)}`));
  assertEquals((await larger.read(1, 1)).length, 1);
});

test("pictureOf() survives any bytes, and draws no more than a screen", () => {
  const random = seeded(54);
  const whole = supOf([{ at90k: 0, shown90k: null, data: PICTURE }], 0);
  for (let round = 0; round < 400; round++) {
    const file = whole.slice(0, 13 + Math.floor(random() * whole.length));
    for (let i = 0; i < 4; i++) file[Math.floor(random() * file.length)] = Math.floor(random() * 256);
    const sets = readSup(file);
    for (const n of sets.keys()) {
      const { objects } = pictureOf(sets, n);
      assertLessOrEqual(objects.reduce((sum, { width, height }) => sum + width * height, 0), 4096 ** 2);
    }
  }
});
