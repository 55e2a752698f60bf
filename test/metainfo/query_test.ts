import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { type ContentQuery, readContentQuery } from "../../src/metainfo/query.ts";
import { seededBelow } from "../support/random.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";
const MAGNET = `magnet:?xt=urn:btih:${ID}`;

test("readContentQuery() recognises ids, magnets, URIs of any scheme, playback URLs and other URLs", () => {
  const content: ContentQuery = { kind: "content_id", id: ID };
  const infohash: ContentQuery = { kind: "infohash", id: ID };
  const url = (text: string): ContentQuery => ({ kind: "url", url: text });
  const table: [string, ContentQuery | null][] = [
    [ID, content],
    [` ${ID.toUpperCase()}\n`, content],
    [MAGNET, { kind: "magnet", magnet: MAGNET }],
    ["AB".repeat(32), { kind: "magnet", magnet: `magnet:?xt=urn:btmh:1220${"ab".repeat(32)}` }],
    [`any-scheme://${ID}`, content],
    [`any.scheme+2://${ID}/`, content],
    [`own:?content_id=${ID}&x=1`, content],
    [`own:?infohash=${ID}`, infohash],
    [`own:?infohash=${ID}&content_id=${ID}`, content],
    [`http://box:6878/engine/getstream?id=${ID}&infohash=x`, content],
    [`http://box:6878/engine/getstream?content_id=${ID}`, content],
    [`https://box/sub/path/alias/manifest.m3u8?infohash=${ID}&format=json`, infohash],
    [`http://box/engine/getstream?magnet=${encodeURIComponent(MAGNET)}`, { kind: "magnet", magnet: MAGNET }],
    [`http://box/engine/getstream?url=http://a/b&magnet=${encodeURIComponent(MAGNET)}`, url("")],
    [`http://box/engine/getstream?id=short&infohash=${ID}`, url("")],
    [`http://box/engine/other?id=${ID}`, url("")],
    ["https://a.example/x.m3u8", url("")],
    ["http://", null],
    ["ftp://a/x", null],
    [`own:?content_id=short`, null],
    [`${ID}0`, null],
    ["", null],
    ["hello world", null],
  ];
  for (const [text, expected] of table) {
    assertEquals(readContentQuery(text), expected?.kind === "url" ? url(text) : expected, text);
  }
});

test("readContentQuery() never throws on any text", () => {
  const below = seededBelow(9);
  const pieces = [
    "http",
    "://",
    ":",
    "?",
    "content_id=",
    "infohash=",
    ID,
    "/engine/getstream",
    "&",
    "%",
    "magnet:",
    "[",
    " ",
    "\0",
  ];
  for (let round = 0; round < 5000; round++) {
    let text = "";
    for (let i = below(8); i >= 0; i--) text += pieces[below(pieces.length)];
    readContentQuery(text);
  }
});
