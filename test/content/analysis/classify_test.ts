import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { type BodyKind, classifyBody, headText, isEndless, mediaMime } from "../../../src/content/analysis/classify.ts";
import { addressTitle, headerCategories, headerTitle } from "../../../src/content/analysis/title.ts";
import { seededBelow } from "../../support/random.ts";

const bytes = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));

test("classifyBody() recognises content by its first bytes, and by its name only if they show nothing", () => {
  const table: [Uint8Array, string, string, BodyKind | null][] = [
    [bytes("d8:announce3:abce"), "text/html", "/", "transport_file"],
    [bytes("d4:infod"), "", "/", "transport_file"],
    [bytes("d0:"), "", "/", null],
    [bytes("\x1f\x8b\x08"), "", "/", "gzip"],
    [bytes("\xef\xbb\xbf \r\n#EXTM3U\n"), "text/plain", "/", "m3u"],
    [bytes("\xff\xfe#\0E\0X\0T\0M\x003\0U\0"), "", "/", "m3u"],
    [bytes("#EXTM3UX\n"), "", "/", null],
    [bytes("# a comment\n#EXTINF:-1,x\nhttp://a"), "", "/", "m3u"],
    [bytes("http://a\n"), "", "/x.m3u", "m3u"],
    [bytes("http://a\n"), "audio/x-mpegurl", "/", "m3u"],
    [bytes("http://a\n"), "application/vnd.apple.mpegurl; charset=utf-8", "/", "m3u"],
    [bytes("http://a\n"), "text/plain", "/", null],
    [bytes("<html>"), "audio/x-mpegurl", "/x.m3u", null],
    [bytes("<!DOCTYPE html>"), "video/mp4", "/x.mp4", null],
    [bytes("FLV\x01\x05"), "", "/", "media"],
    [bytes("RIFF\x01\x02\x03\x04AVI LIST"), "", "/", "media"],
    [bytes("RIFF\x01\x02\x03\x04WEBPVP8 "), "", "/", null],
    [bytes("OggS\0"), "", "/", "media"],
    [bytes("ID3\x04\0"), "", "/", "media"],
    [bytes("\x00\x00\x01\xba\x44"), "", "/", "media"],
    [bytes("UUUUUUUU"), "audio/mpeg", "/", "media"],
    [bytes("UUUUUUUU"), "", "/radio.mp3", null],
    [bytes(""), "audio/mpeg", "/", null],
  ];
  for (const [head, type, path, kind] of table) {
    assertEquals(classifyBody(head, type, path), kind, `${headText(head)} ${type} ${path}`);
  }
});

test("mediaMime() says what audio is, and believes a name or sender that agrees", () => {
  const table: [string, string, string, string][] = [
    ["OggS\0\0\0\0\0\0\0\0", "", "/a.opus", "audio/ogg"],
    ["OggS\0\0\0\0\0\0\0\0", "video/ogg", "/", "video/ogg"],
    ["OggS\0\0\0\0\0\0\0\0", "audio/mpeg", "/", "audio/ogg"],
    ["fLaC\0\0\0\0\0\0\0\0", "", "/a.mp3", "audio/flac"],
    ["RIFF\0\0\0\0WAVEfmt ", "audio/x-wav", "/", "audio/x-wav"],
    ["ID3\x03\0\0\0\x01\0\0", "", "/a.mp3", "audio/mpeg"],
    ["ID3\x03\0\0\0\x01\0\0", "video/mp4", "/", "audio/mpeg"],
    ["ID3\x03\0\0\0\x01\0\0", "audio/aacp", "/", "audio/aacp"],
  ];
  for (const [head, type, path, mime] of table) {
    assertEquals(mediaMime(bytes(head), type, path), mime, `${head} ${type}`);
  }
});

test("classifyBody() and isEndless() survive anything", () => {
  const random = seededBelow(7);
  const starts = ["", "d3:", "#EXTM3U\n#EXT-X-STREAM-INF:\n", "\x1a\x45\xdf\xa3", "\xff\xfe", "#EXTINF:", "\x47"];
  for (let round = 0; round < 2000; round++) {
    const head = bytes(starts[random(starts.length)]! + "\0".repeat(random(64)));
    for (let i = random(4); i < head.length; i += 1 + random(8)) head[i] = random(256);
    classifyBody(head, "", "/");
    isEndless(head, new Headers());
  }
});

test("headText() reads UTF-8, UTF-16 and Windows-1252, cut anywhere", () => {
  assertEquals(headText(bytes("a\xc3\xa4")), "aä");
  assertEquals(headText(bytes("a\xc3")), "a");
  assertEquals(headText(bytes("a\xe4b")), "aäb");
  assertEquals(headText(bytes("a\0\xe4\0")), "aä");
  assertEquals(headText(bytes("\xfe\xff\0a")), "a");
});

test("addressTitle(), headerTitle() and headerCategories() find what people would call it", () => {
  const addresses: [string, string][] = [
    ["http://a.example/Some%20Film.2026.mkv?x=1", "Some Film.2026"],
    ["http://a.example/Channel/index.m3u8", "Channel"],
    ["http://a.example/hls/tracks-v1a1/mono.m3u8", "hls"],
    ["http://a.example:81/", "a.example:81"],
    ["http://a.example/%zz.ts", "%zz"],
    ["http://a.example/list.m3u.gz", "list"],
  ];
  for (const [url, title] of addresses) assertEquals(addressTitle(url), title, url);
  const headers: [Record<string, string>, string | null][] = [
    [{}, null],
    [{ "content-disposition": 'attachment; filename="a b.mp4"' }, "a b"],
    [{ "content-disposition": "inline; filename=a.mp4; x=y" }, "a"],
    [{ "content-disposition": "inline", "icy-name": " Radio " }, "Radio"],
    [{ "icy-name": "\xff" }, "\xff"],
  ];
  for (const [fields, title] of headers) assertEquals(headerTitle(new Headers(fields)), title);
  assertEquals(headerCategories(new Headers({ "icy-genre": "a; b,,a" })), ["a", "b"]);
});
