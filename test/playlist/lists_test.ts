import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { contentHashes, mediaGroup, normalizedName } from "../../src/playlist/identity.ts";
import { decodeListText, MAX_LIST_BYTES } from "../../src/playlist/list-text.ts";
import { epgSources } from "../../src/playlist/m3u-header.ts";

test("decodeListText() undoes gzip and reads the usual encodings", async () => {
  const utf8 = new TextEncoder().encode("#EXTM3U é€");
  const utf16 = Uint8Array.of(0xff, 0xfe, ...[..."#é"].flatMap((c) => [c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8]));
  const table: [Uint8Array, string][] = [
    [utf8, "#EXTM3U é€"],
    [gzipSync(utf8), "#EXTM3U é€"],
    [Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), "a"],
    [Uint8Array.of(0x63, 0x61, 0x66, 0xe9, 0x80), "café€"],
    [utf16, "#é"],
    [Uint8Array.of(0xfe, 0xff, 0x00, 0x61), "a"],
    [new Uint8Array(), ""],
  ];
  for (const [bytes, text] of table) assertEquals(await decodeListText(bytes), text);
});

test("decodeListText() refuses damaged gzip data and bombs", async () => {
  const whole = gzipSync("x".repeat(1000));
  for (const bytes of [whole.subarray(0, 20), Uint8Array.of(0x1f, 0x8b, 1, 2, 3)]) {
    const error = await assertRejects(() => decodeListText(bytes), MillraceError);
    assertEquals((error as MillraceError).code, "invalid_argument");
  }
  const bomb = gzipSync(new Uint8Array(MAX_LIST_BYTES + 1));
  assert(bomb.length < 100_000);
  const error = await assertRejects(() => decodeListText(bomb), MillraceError);
  assertEquals((error as MillraceError).code, "too_large");
});

test("epgSources() finds guides in the header line alone", () => {
  const table: [string, string[] | null][] = [
    ["#EXTM3U", []],
    ["\uFEFF\r\n #EXTM3U\n", []],
    ['#EXTM3U url-tvg="http://a/1,http://b/2"', ["http://a/1", "http://b/2"]],
    ["#EXTM3U x-tvg-url='https://a/ ,' url-tvg=http://b/x.gz", ["https://a/", "http://b/x.gz"]],
    ['#extm3u URL-TVG = "http://a/" url-tvg="http://a/"', ["http://a/"]],
    ['#EXTM3U url-tvg="ftp://a/, file:///etc/passwd, nonsense, http://"', []],
    ['#EXTM3U\n#EXTINF:-1 url-tvg="http://a/",x', []],
    ["#EXTINF:-1,x\nhttp://c/", []],
    ["#EXTM3U8", null],
    ["<html>#EXTM3U", null],
    ["", null],
  ];
  for (const [text, sources] of table) assertEquals(epgSources(text), sources, text);
});

test("epgSources() takes random text without trouble, and soon", () => {
  let seed = 3;
  const random = (below: number) => (seed = (seed * 48271) % 0x7fffffff) % below;
  const bits = ["#EXTM3U", " ", "url-tvg=", '"', "'", ",", "http://a/", "=", "\n", "x", "é", "-"];
  for (let round = 0; round < 500; round++) {
    let text = random(2) === 0 ? "#EXTM3U " : "";
    for (let i = random(60); i > 0; i--) text += bits[random(bits.length)];
    const sources = epgSources(text);
    assert(sources === null || sources.every((url) => URL.canParse(url)));
  }
  const before = performance.now();
  for (const bit of ["a", 'a="', "a= ", "url-tvg=x,", "-"]) epgSources(`#EXTM3U ${bit.repeat(100_000)}`);
  assert(performance.now() - before < 2000);
});

test("mediaGroup() and contentHashes() depend on what makes items the same", async () => {
  assertEquals(normalizedName("ＮＥＷＳ - One (HD)!"), "newsonehd");
  assertEquals(mediaGroup({ title: "A b", tvgId: "" }), mediaGroup({ title: "a-B", tvgId: "" }));
  assertEquals(mediaGroup({ title: "x", tvgId: "Ch.1 " }), mediaGroup({ title: "y", tvgId: "ch.1" }));
  assertNotEquals(mediaGroup({ title: "ch1", tvgId: "" }), mediaGroup({ title: "x", tvgId: "ch1" }));
  const item = { infohash: "", contentId: null, url: "http://a/", title: "t" };
  const { hash, hashV2 } = await contentHashes(item);
  assertEquals([hash.length, hashV2.length], [40, 64]);
  assertEquals(await contentHashes({ ...item, title: "other" }), { hash, hashV2 });
  assertNotEquals((await contentHashes({ ...item, url: "http://b/" })).hash, hash);
  assertNotEquals((await contentHashes({ ...item, url: null, contentId: "http://a/" })).hash, hash);
});
