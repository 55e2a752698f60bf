/** The fonts that a Matroska film brings along, within bounds. */
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertLessOrEqual } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { fontsAt } from "../../src/media/index/mkv/attached-fonts.ts";
import { MemorySource } from "../support/memory-source.ts";
import {
  cluster,
  CountingSource,
  element,
  matroska,
  never,
  open,
  seeded,
  simpleBlock,
  SparseSource,
  uintBytes,
} from "./mkv-support.ts";

const MIB = 1024 * 1024;
const ATTACHMENTS = 0x1941a469;

const sizeOf = (size: number) => {
  const bytes = uintBytes(size, 8);
  bytes[0] = 1;
  return bytes;
};

interface Attached {
  readonly name: string;
  readonly type?: string;
  readonly sizeBytes: number;
}

/** Attachments whose bytes are all zero and nowhere in memory. */
function attachments(files: readonly Attached[]): CountingSource {
  let at = 12;
  const parts: { at: number; bytes: Uint8Array }[] = [];
  for (const { name, type = "", sizeBytes } of files) {
    const fields = concatBytes([
      element(0x466e, name),
      element(0x4660, type),
      element(0x46ae, 7),
      uintBytes(0x465c),
      sizeOf(sizeBytes),
    ]);
    const bytes = concatBytes([uintBytes(0x61a7), sizeOf(fields.length + sizeBytes), fields]);
    parts.push({ at, bytes });
    at += bytes.length + sizeBytes;
  }
  parts.push({ at: 0, bytes: concatBytes([uintBytes(ATTACHMENTS), sizeOf(at - 12)]) });
  return new CountingSource(new SparseSource(at, parts));
}

test("fontsAt() finds fonts by type or name, and reads nothing of their bytes", async () => {
  const source = attachments([
    { name: "cover.jpg", type: "image/jpeg", sizeBytes: MIB },
    { name: "one.bin", type: "application/x-truetype-font", sizeBytes: 2 * MIB },
    { name: "Two.OTF", type: "application/octet-stream", sizeBytes: 3 * MIB },
    { name: "empty.ttf", sizeBytes: 0 },
  ]);
  const { fonts, leftOut } = await fontsAt(0)(source, never);
  assertEquals(fonts.map(({ name, sizeBytes }) => [name, sizeBytes]), [["one.bin", 2 * MIB], ["Two.OTF", 3 * MIB]]);
  assertEquals(leftOut, 0);
  assertEquals(fonts[1]!.offset - fonts[0]!.offset > 2 * MIB, true);
  assertLess(source.bytesRead, 16 * 1024);
});

test("fontsAt() offers 64 MiB of fonts, 128 of them, and counts what it leaves out", async () => {
  const many = (count: number, sizeBytes: number) =>
    attachments(Array.from({ length: count }, (_, n) => ({ name: `${n}.ttf`, sizeBytes })));
  const heavy = await fontsAt(0)(many(10, 10 * MIB), never);
  assertEquals([heavy.fonts.length, heavy.leftOut], [6, 4]);
  const large = await fontsAt(0)(many(1, 100 * MIB), never);
  assertEquals([large.fonts.length, large.leftOut], [0, 1]);
  const countless = many(1_000, 10);
  const { fonts, leftOut } = await fontsAt(0)(countless, never);
  assertEquals([fonts.length, leftOut], [128, 72]);
  assertLessOrEqual(countless.bytesRead, 400 * 1024);
});

test("fontsAt() survives any bytes", async () => {
  const whole = attachments([{ name: "a.ttf", sizeBytes: 300 }, { name: "b.ttf", sizeBytes: 300 }]);
  const bytes = await whole.read(0, whole.sizeBytes, { signal: never });
  const random = seeded(54);
  for (let round = 0; round < 500; round++) {
    const file = bytes.slice(0, 1 + Math.floor(random() * bytes.length));
    for (let i = 0; i < 5; i++) file[Math.floor(random() * file.length)] = Math.floor(random() * 256);
    for (const { offset, sizeBytes } of (await fontsAt(0)(new MemorySource(file), never)).fonts) {
      assert(offset + sizeBytes <= file.length, "within the file");
    }
  }
});

test("openMatroska() finds attachments that stand before the clusters", async () => {
  const file = element(0x61a7, [element(0x466e, "a.ttf"), element(0x465c, new Uint8Array(100))]);
  const block = simpleBlock(1, 0, 0x80, new Uint8Array(200));
  const { index, source } = await open(matroska([element(ATTACHMENTS, [file]), cluster(0, [block])]));
  const { fonts } = await index.findFonts!(source, never);
  assertEquals(fonts.map(({ name, sizeBytes }) => [name, sizeBytes]), [["a.ttf", 100]]);
});
