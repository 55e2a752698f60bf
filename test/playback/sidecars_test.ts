import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { languageOf } from "../../src/media/model/language.ts";
import { MAX_SIDECAR_BYTES, MAX_SIDECARS, sidecarsOf } from "../../src/playback/sidecars.ts";
import type { MetainfoFile } from "../../src/metainfo/types.ts";

const fileAt = (path: string, index: number, sizeBytes = 1000): MetainfoFile => ({
  index,
  path,
  name: path.split("/").pop()!,
  sizeBytes,
  offset: 0,
  padding: false,
});
const found = (paths: readonly string[], film = 0) => {
  const files = paths.map((path, index) => fileAt(path, index));
  return sidecarsOf(files, files[film]!).map(({ file, name, language }) => [file.index, name, language]);
};

test("sidecarsOf() takes files named like the film, in a folder named like it, and no other film's", () => {
  const season = [
    "Show.E1.mkv",
    "Show.E10.mkv",
    "Show.E1.srt",
    "Show.E1.en.srt",
    "Show.E10.de.srt",
    "Subs/Show.E1/2_Russian.srt",
    "Subs/Show.E10/3_French.srt",
    "readme.txt",
    "show.e1.pt-BR.sdh.vtt",
    "Other.srt",
  ];
  assertEquals(found(season), [
    [2, "Show.E1", null],
    [3, "English", "en"],
    [5, "Russian", "ru"],
    [8, "Brazilian Portuguese, SDH", "pt-BR"],
  ]);
  assertEquals(found(season, 1), [[4, "German", "de"], [6, "French", "fr"]]);
});

test("sidecarsOf() accepts all subtitles when there is only one film, each with a distinct name", () => {
  assertEquals(found(["film.mp4", "English.srt", "eng.srt", "forced.en.srt", "words.srt"]), [
    [1, "English", "en"],
    [2, "English 2", "en"],
    [3, "English, forced", "en"],
    [4, "words", null],
  ]);
});

test("sidecarsOf() leaves out files that are empty or too large, and keeps its bound", () => {
  const film = fileAt("film.mp4", 0);
  const sizes = [0, MAX_SIDECAR_BYTES + 1, MAX_SIDECAR_BYTES];
  const files = [film, ...sizes.map((size, n) => fileAt(`film.${n}.srt`, n + 1, size))];
  assertEquals(sidecarsOf(files, film).map(({ file }) => file.index), [3]);
  const many = [film, ...Array.from({ length: 200 }, (_, n) => fileAt(`film.${n}.srt`, n + 1))];
  assertEquals(sidecarsOf(many, film).length, MAX_SIDECARS);
});

for (
  const [words, tag] of [
    ["en", "en"],
    ["ENG", "en"],
    ["ger", "de"],
    ["2_Español", "es"],
    ["русский", "ru"],
    ["Simplified Chinese", "zh"],
    ["Chinese.SDH.forced", "zh"],
    ["constructor", null],
    ["The film of 1990", null],
    ["", null],
  ] as const
) {
  test(`languageOf() reads "${words}" as ${tag}`, () => assertEquals(languageOf(words)?.tag ?? null, tag));
}
