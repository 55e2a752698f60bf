/** Subtitles that the user drops on the player. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { isSubtitleName, subtitleLines, subtitleText } from "../../src/webui/own-subtitles.ts";

test("subtitleLines() reads SubRip and WebVTT, and leaves out what has no time or no words", () => {
  const srt =
    "\ufeff1\r\n00:00:01,500 --> 00:00:03,000\r\n{\\an8}One\r\n<i>two</i>\r\n\r\n2\r\n01:02:03,4 --> 01:02:05,050\r\nThree\r\n";
  assertEquals(subtitleLines(srt), [
    { startS: 1.5, endS: 3, text: "One\n<i>two</i>" },
    { startS: 3723.4, endS: 3725.05, text: "Three" },
  ]);
  const vtt =
    "WEBVTT\n\nNOTE nothing\n\nintro\n00:10.000 --> 00:12.000 line:0\nHello\n\n00:20.000 --> 00:19.000\nBackwards\n\n00:30.000 --> 00:31.000\n\n";
  assertEquals(subtitleLines(vtt), [{ startS: 10, endS: 12, text: "Hello" }]);
  assertEquals(subtitleLines("no subtitles at all"), []);
});

test("subtitleLines() stops after 20000 lines", () => {
  const block = "00:00:01,000 --> 00:00:02,000\na\n\n";
  assertEquals(subtitleLines(block.repeat(20_001)).length, 20_000);
});

test("subtitleText() takes UTF-8 and UTF-16, else what the language used before", () => {
  assertEquals(subtitleText(new TextEncoder().encode("Grüße"), "de"), "Grüße");
  assertEquals(subtitleText(new Uint8Array([0xff, 0xfe, 0x41, 0x00]), "de"), "A");
  assertEquals(subtitleText(new Uint8Array([0xfe, 0xff, 0x00, 0x41]), "de"), "A");
  assertEquals(subtitleText(new Uint8Array([0x47, 0x72, 0xfc]), "de"), "Grü");
  assertEquals(subtitleText(new Uint8Array([0xcf, 0xf0, 0xe8]), "ru"), "При");
});

test("isSubtitleName() is true of .srt and .vtt alone", () => {
  assertEquals(["a.srt", "B.VTT", "a.torrent", "srt"].map(isSubtitleName), [true, true, false, false]);
});
