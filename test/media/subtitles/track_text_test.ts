/** Texts in the tracks of a film. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { cuesOf, isTextCodec } from "../../../src/media/subtitles/track-text.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { seeded } from "../support/files.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const cueOf = (...from: Parameters<typeof cuesOf>) => cuesOf(...from)[0] ?? null;
const ass = (text: string) => cueOf("S_TEXT/ASS", bytes(`0,0,Default,,0,0,0,,${text}`), 1000, 2000);

test("cuesOf() converts Advanced SubStation: what is not shown goes, italics, breaks and the top stay", () => {
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
      ["{\\an1}left", "left", "position:5% align:start"],
      ["{\\an6}right", "right", "line:50% position:95% align:end"],
      ["{\\a10}middle", "middle", "line:50%"],
      ["{{\\i1{nested}shown", "<i>shown</i>", ""],
      ["{\\b1}{open", "<b>{open</b>", ""],
      ["{\\p1}m 0 0 l 10 10{\\p0}text", "text", ""],
      ["1 < 2 --> 3 & 4", "1 &lt; 2 --&gt; 3 &amp; 4", ""],
      ["{\\pos(10,20)\\bord2\\blur3}placed", "placed", ""],
    ] as const
  ) assertEquals(ass(raw), { startMs: 1000, endMs: 3000, settings, text }, raw);
  assertEquals(ass("{\\p1}m 0 0 l 10 10"), null);
  assertEquals(cueOf("S_TEXT/ASS", bytes("0,0,Default"), 0, 1000), null);
});

test("cuesOf() reads SubRip and both forms of WebVTT", () => {
  const of = (codecId: string, text: string) => cueOf(codecId, bytes(text), 0, 1000)?.text;
  assertEquals(of("S_TEXT/UTF8", "<i>A</i> < B\r\n\r\nC"), "<i>A</i> &lt; B\nC");
  assertEquals(cueOf("S_TEXT/UTF8", bytes("{\\an8}A"), 0, 1000)?.settings, "line:0");
  assertEquals(of("S_TEXT/WEBVTT", "<v Bob>Hi --> there\n\nyou"), "<v Bob>Hi --&gt; there\nyou");
  const two = cueOf("D_WEBVTT/SUBTITLES", bytes("id\nline:0 region:x\nHi"), 0, 1000);
  assertEquals([two?.text, two?.settings], ["Hi", "line:0"]);
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

/** A box of MP4. */
const box = (type: string, ...parts: Uint8Array[]) => {
  const sizeBytes = parts.reduce((sum, { length }) => sum + length, 8);
  return concatBytes([Uint8Array.of(0, 0, 0, sizeBytes), bytes(type), ...parts]);
};
/** A sample of tx3g, with faces: from, to (characters) and bits. */
const tx3g = (text: string, ...faces: readonly (readonly [number, number, number])[]) => {
  const body = bytes(text);
  const styles = faces.map(([from, to, bits]) => Uint8Array.of(0, from, 0, to, 0, 1, bits, 18, 255, 255, 255, 255));
  const styl = faces.length === 0 ? [] : [box("styl", Uint8Array.of(0, faces.length), ...styles)];
  return concatBytes([Uint8Array.of(0, body.length), body, ...styl]);
};

test("cuesOf() reads tx3g with its faces, and says nothing in the gaps", () => {
  const of = (data: Uint8Array) => cuesOf("tx3g", data, 1000, 2000).map(({ text }) => text);
  assertEquals(of(tx3g("1 < 2 & 3\nÄ")), ["1 &lt; 2 &amp; 3\nÄ"]);
  assertEquals(of(tx3g("all and some", [0, 3, 2], [8, 12, 3])), ["<i>all</i> and <b><i>some</i></b>"]);
  assertEquals(of(tx3g("one\ntwo", [0, 7, 2])), ["<i>one</i>\n<i>two</i>"]);
  assertEquals([of(tx3g("")), of(Uint8Array.of(0)), of(Uint8Array.of(0, 9, 65))], [[], [], []]);
  // Faces beyond the text.
  assertEquals(of(tx3g("ab", [1, 255, 1])), ["a<b>b</b>"]);
});

test("cuesOf() reads WebVTT in MP4: several cues of a sample, their settings, and empty ones", () => {
  const cue = (text: string, settings = "line:0") =>
    box("vttc", box("sttg", bytes(settings)), box("payl", bytes(text)));
  const of = (...parts: Uint8Array[]) =>
    cuesOf("wvtt", concatBytes(parts), 1000, 2000).map(({ text, settings }) => [text, settings]);
  assertEquals(of(cue("<i>A</i>"), cue("B --> C", "region:x align:end")), [["<i>A</i>", "line:0"], [
    "B --&gt; C",
    "align:end",
  ]]);
  assertEquals([of(box("vtte")), of(bytes("not"))], [[], []]);
});
