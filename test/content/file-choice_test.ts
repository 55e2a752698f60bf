import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { chooseFile, defaultFile, mimeTypeOf } from "../../src/content/file-choice.ts";
import { MillraceError } from "../../src/errors.ts";
import type { Metainfo } from "../../src/metainfo/types.ts";

function metainfo(files: [string, number, boolean?][]): Metainfo {
  let offset = 0;
  return {
    files: files.map(([path, sizeBytes, padding = false], index) => {
      const file = { index, path, name: path.split("/").at(-1)!, sizeBytes, offset, padding };
      offset += sizeBytes;
      return file;
    }),
  } as unknown as Metainfo;
}

test("defaultFile() picks the largest playable file", () => {
  const pack = metainfo([["readme.txt", 9000], ["a/1.mkv", 500], ["a/2.mp4", 700], ["pad", 8000, true], [
    "big.iso",
    90000,
  ]]);
  assertEquals(defaultFile(pack).index, 2);
  assertEquals(defaultFile(metainfo([["unnamed", 5]])).index, 0);
  assertEquals(defaultFile(metainfo([["cover.jpg", 900], ["01.mp3", 500], ["02.MP3", 700]])).index, 2);
  assertEquals(defaultFile(metainfo([["cover.jpg", 900], ["01.flac", 500], ["02.flac", 700]])).index, 2);
  // What must become AAC first comes after all else.
  assertEquals(defaultFile(metainfo([["film.mp4", 500], ["score.wav", 700], ["score.flac", 600]])).index, 0);
  // A film that only ffmpeg reads comes after others, unless those are samples beside it.
  assertEquals(defaultFile(metainfo([["film.avi", 900], ["film.mp4", 700]])).index, 1);
  assertEquals(defaultFile(metainfo([["film.avi", 900], ["sample.mp4", 100], ["score.flac", 950]])).index, 0);
  assertEquals(defaultFile(metainfo([["VTS_01_1.VOB", 900], ["VTS_01_2.VOB", 800], ["track.ac3", 90]])).index, 0);
  assertEquals(defaultFile(metainfo([["a.ape", 900], ["b.wma", 950], ["clip.wmv", 5]])).index, 2);
  assertEquals(defaultFile(metainfo([["a.ape", 900], ["b.wma", 950], ["c.ac3", 5]])).index, 2);
  assertThrows(() => defaultFile(metainfo([["a.txt", 5], ["b.txt", 6]])), MillraceError, "no playable file");
  assertThrows(() => defaultFile(metainfo([["a.mkv", 0]])), MillraceError, "no playable file");
});

test("chooseFile() obeys _idx and explains a wrong one", () => {
  const pack = metainfo([["a.mkv", 5], ["b.mkv", 6], ["c.mkv", 0]]);
  assertEquals(chooseFile(pack, 0).name, "a.mkv");
  assertThrows(() => chooseFile(pack, 3), MillraceError, "files 0 to 2");
  assertThrows(() => chooseFile(pack, -1), MillraceError, "_idx -1");
  assertThrows(() => chooseFile(pack, 2), MillraceError, "empty");
});

test("chooseFile() narrows the default to a magnet's selection (BEP 53)", () => {
  const pack = metainfo([["a.mkv", 5], ["b.mkv", 6], ["c.txt", 9]]);
  assertEquals(chooseFile(pack, undefined, null, [0]).name, "a.mkv");
  assertEquals(chooseFile(pack, undefined, null, [2]).name, "b.mkv");
  assertEquals(chooseFile(pack, 1, [0]).name, "b.mkv");
});

test("mimeTypeOf() knows containers by extension", () => {
  assertEquals(mimeTypeOf("X.MKV"), "video/x-matroska");
  for (
    const [name, mime] of [
      ["a.mp3", "mpeg"],
      ["a.mp2", "mpeg"],
      ["a.aac", "aac"],
      ["a.flac", "flac"],
      ["a.ogg", "ogg"],
      [
        "a.opus",
        "ogg",
      ],
      ["a.wav", "wav"],
      ["a.ac3", "ac3"],
      ["a.ec3", "eac3"],
      ["a.wma", "x-ms-wma"],
      ["a.ape", "x-ape"],
    ] as const
  ) assertEquals(mimeTypeOf(name), `audio/${mime}`);
  assertEquals(mimeTypeOf("x"), "application/octet-stream");
});
