/** Texts in the tracks of a film. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { cueOf, isTextCodec } from "../../../src/media/subtitles/track-text.ts";
import { seeded } from "../support/files.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const ass = (text: string) => cueOf("S_TEXT/ASS", bytes(`0,0,Default,,0,0,0,,${text}`), 1000, 2000);

test("cueOf() converts Advanced SubStation: what is not shown goes, italics, breaks and the top stay", () => {
  for (
    const [raw, text, settings] of [
      ["Plain, with a comma", "Plain, with a comma", ""],
      ["{\\i1}One{\\i0} two", "<i>One</i> two", ""],
      ["{\\b1\\i1}both{\\b0} one", "<b><i>both</i></b><i> one</i>", ""],
      ["{\\i1}open", "<i>open</i>", ""],
      ["{\\i1}gone{\\r} plain", "<i>gone</i> plain", ""],
      ["one\\Ntwo\\N\\Nthree\\hfour", "one\ntwo\nthree four", ""],
      ["{a comment}shown{\\k20}karaoke", "shownkaraoke", ""],
      ["{\\an8}above", "above", "line:0"],
      ["{\\a6}above", "above", "line:0"],
      ["{\\an8\\alpha&HFF&\\bord2}above", "above", "line:0"],
      ["{\\a2}below", "below", ""],
      ["{\\p1}m 0 0 l 10 10{\\p0}text", "text", ""],
      ["1 < 2 --> 3 & 4", "1 &lt; 2 --&gt; 3 &amp; 4", ""],
      ["{\\pos(10,20)\\bord2\\blur3}placed", "placed", ""],
    ] as const
  ) assertEquals(ass(raw), { startMs: 1000, endMs: 3000, settings, text }, raw);
  assertEquals(ass("{\\p1}m 0 0 l 10 10"), null);
  assertEquals(cueOf("S_TEXT/ASS", bytes("0,0,Default"), 0, 1000), null);
});

test("cueOf() reads SubRip and both forms of WebVTT", () => {
  const of = (codecId: string, text: string) => cueOf(codecId, bytes(text), 0, 1000)?.text;
  assertEquals(of("S_TEXT/UTF8", "<i>A</i> < B\r\n\r\nC"), "<i>A</i> &lt; B\nC");
  assertEquals(cueOf("S_TEXT/UTF8", bytes("{\\an8}A"), 0, 1000)?.settings, "line:0");
  assertEquals(of("S_TEXT/WEBVTT", "<v Bob>Hi --> there\n\nyou"), "<v Bob>Hi --&gt; there\nyou");
  assertEquals(of("D_WEBVTT/SUBTITLES", "id\nline:0\nHi"), "Hi");
  assertEquals([isTextCodec("S_HDMV/PGS"), isTextCodec("S_TEXT/UTF8 (compressed)")], [false, false]);
});

test("cueOf() bounds how long a text is shown, and how long it is", () => {
  assertEquals(cueOf("S_TEXT/UTF8", bytes("a"), 0, null)?.endMs, 3000);
  assertEquals(cueOf("S_TEXT/UTF8", bytes("a"), 0, 86_400_000)?.endMs, 60_000);
  assertEquals(cueOf("S_TEXT/UTF8", bytes("a"), 0, 0), null);
  assertEquals(cueOf("S_TEXT/UTF8", bytes("a".repeat(10_000)), 0, 1000), null);
});

test("cueOf() makes no cue that could end early, of any bytes", () => {
  const random = seeded(7);
  const parts = ["{", "}", "\\i1", "\\i0", "\\p1", "\\N", "\\an8", "-->", "<", ">", "&", "\n", "a", ",", "\\r", "\\b1"];
  for (let round = 0; round < 2000; round++) {
    const raw = Array.from({ length: 30 }, () => parts[Math.floor(random() * parts.length)]).join("");
    for (const codecId of ["S_TEXT/ASS", "S_TEXT/UTF8", "S_TEXT/WEBVTT", "D_WEBVTT/SUBTITLES"]) {
      const cue = cueOf(codecId, bytes(`0,0,D,,0,0,0,,${raw}`), 0, 1000);
      assert(cue === null || !/\n\n|-->|^\s*$/.test(cue.text), cue?.text ?? "");
    }
  }
});
