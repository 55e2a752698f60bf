import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { TEXTS } from "../../src/webui/texts/assets.generated.ts";
import { EN } from "../../src/webui/texts/en.ts";
import {
  bytesText,
  chooseLanguage,
  durationText,
  LANGUAGES,
  reasonText,
  setLanguage,
  text,
} from "../../src/webui/texts.ts";

const gaps = (value: string) => [...value.matchAll(/\{\d\}/g)].map(([gap]) => gap).sort();

test("every language that can be chosen has a catalogue", () => {
  assertEquals(["en", ...Object.keys(TEXTS)].sort(), Object.keys(LANGUAGES).sort());
});

for (const name of Object.keys(TEXTS)) {
  const catalogue: typeof EN = JSON.parse(TEXTS[name]!);
  test(`the catalogue ${name} translates every text and keeps its gaps`, () => {
    assertEquals(Object.keys(catalogue).sort(), Object.keys(EN).sort());
    for (const [key, english] of Object.entries(EN)) {
      assertEquals(gaps(catalogue[key as keyof typeof EN]), gaps(english), key);
    }
  });
}

test("chooseLanguage() takes the first language that there is, else English", () => {
  assertEquals(chooseLanguage(["sv-SE", "es-MX", "ru"]), "es");
  assertEquals(chooseLanguage(["zh-Hans-CN"]), "zh");
  assertEquals(chooseLanguage(["sv"]), "en");
  assertEquals(chooseLanguage([]), "en");
});

test("text() fills placeholders, and reasonText() has a text for every reason that a session gives", () => {
  setLanguage("en", EN);
  assertEquals(text("importing", 3, "…"), "Importing: 3 of …");
  for (const reason of ["no_peers", "no_metadata", "slow_peers", "missing_piece", "choked"]) {
    assertEquals(typeof reasonText(reason), "string", reason);
  }
  assertEquals(reasonText("something_new"), null);
});

test("durationText() says about how long it takes", () => {
  assertEquals([3, 17, 80, 230, 5400].map(durationText), ["3 sec", "20 sec", "80 sec", "4 min", "90 min"]);
});

test("bytesText() chooses a readable unit", () => {
  assertEquals([0, 999, 1000, 1_234_567, 123_456_789, 5e15].map(bytesText), [
    "0 B",
    "999 B",
    "1.0 KB",
    "1.2 MB",
    "123 MB",
    "5000 TB",
  ]);
});
