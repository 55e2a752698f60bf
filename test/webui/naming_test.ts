import { test } from "node:test";
import { assertEquals } from "@std/assert";
import {
  infohashOf,
  isId,
  isListName,
  itemParams,
  itemStream,
  listAddress,
  nameOf,
  offeredFiles,
  placeOf,
  playHash,
  versionsOf,
} from "../../src/webui/naming.ts";
import { filterOf, libraryHash } from "../../src/webui/library-filter.ts";

const MAGNET = "magnet:?xt=urn:btih:0123456789012345678901234567890123456789&tr=udp://a";

for (
  const [pasted, expected] of [
    ["", null],
    ["   ", null],
    [` ${MAGNET} `, { stream: { magnet: MAGNET } }],
    ["MAGNET:?xt=urn:btih:x", { stream: { magnet: "MAGNET:?xt=urn:btih:x" } }],
    ["a".repeat(40), { query: "a".repeat(40) }],
    ["A".repeat(64), { stream: { magnet: `magnet:?xt=urn:btmh:1220${"a".repeat(64)}` } }],
    ["https://example.org/a.torrent", { query: "https://example.org/a.torrent" }],
  ] as const
) {
  test(`nameOf() returns what to ask for when "${pasted.slice(0, 24)}" was pasted`, () => {
    assertEquals(nameOf(pasted), expected as ReturnType<typeof nameOf>);
  });
}

test("infohashOf() reads the infohash of a magnet or an id, and nothing else", () => {
  assertEquals(infohashOf({ stream: { magnet: MAGNET } }), "0123456789".repeat(4));
  assertEquals(infohashOf({ stream: { magnet: `magnet:?dn=a&xt=urn:btih:${"A".repeat(40)}` } }), "a".repeat(40));
  assertEquals(infohashOf({ stream: { magnet: "magnet:?xt=urn:btmh:1220" } }), null);
  assertEquals(infohashOf({ stream: { magnet: "magnet:?xt=urn:btih:0123" } }), null);
  const v2 = `magnet:?xt=urn:btmh:1220${"Ab".repeat(32)}`;
  assertEquals(infohashOf({ stream: { magnet: v2 } }), "ab".repeat(20));
  assertEquals(infohashOf({ stream: { magnet: `${v2}&xt=urn:btih:${"c".repeat(40)}` } }), "c".repeat(40));
  assertEquals(infohashOf({ query: "B".repeat(40) }), "b".repeat(40));
  assertEquals(infohashOf({ query: "https://example.org/a.torrent" }), null);
});

for (
  const [form, topic] of [
    ["base32", "xt=urn:btih:AERUKZ4JVPG66AJDIVTYTK6N54ASGRLH"],
    ["base32 in small letters", "xt=urn:btih:aerukz4jvpg66ajdivtytk6n54asgrlh&tr=udp://a"],
    ["percent-encoding", "dn=a&xt=urn%3Abtih%3A0123456789abcdef0123456789ABCDEF01234567"],
    ["a numbered field after one of another kind", "XT.1=urn:btmh:1220&xt.2=urn:btih:AERUKZ4JVPG66AJDIVTYTK6N54ASGRLH"],
  ] as const
) {
  test(`infohashOf() reads the infohash of a magnet in ${form}`, () => {
    assertEquals(infohashOf({ stream: { magnet: `magnet:?${topic}` } }), "0123456789abcdef0123456789abcdef01234567");
  });
}

test("versionsOf() names version 2 and both versions, and says nothing of version 1", () => {
  const infohash = "ab".repeat(20);
  assertEquals(versionsOf({ infohash }), null);
  assertEquals(versionsOf({ infohash, infohash_v2: "ab".repeat(32) }), "BitTorrent v2");
  assertEquals(versionsOf({ infohash, infohash_v2: "cd".repeat(32) }), "BitTorrent v1 + v2");
});

test("placeOf() reads what playHash() made, and takes anything else for the room that plays", () => {
  const place = { room: "play", query: `${MAGNET}#x?y`, file: null, atS: 0 } as const;
  assertEquals(placeOf(playHash(place.query)), place);
  assertEquals(placeOf(playHash(place.query, 12, 600.7)), { ...place, file: 12, atS: 600 });
  assertEquals(placeOf("#/play?q=a&file=-1&t=99999999"), { ...place, query: "a" });
  assertEquals(placeOf("#/library"), { room: "library", query: null, file: null, atS: 0 });
  for (const hash of ["", "#", "#/", "#/other", "#library?"]) {
    assertEquals(placeOf(hash).query, null, hash);
  }
});

test("offeredFiles() lists playable files in natural order, and all when none is", () => {
  const files = ["E10.mkv", "readme.txt", "e2.MKV", "E1.mkv"].map((filename) => ({ filename }));
  assertEquals(offeredFiles(files).map(({ filename }) => filename), ["E1.mkv", "e2.MKV", "E10.mkv"]);
  assertEquals(offeredFiles([{ filename: "b.bin" }, { filename: "a.bin" }]).map(({ filename }) => filename), [
    "a.bin",
    "b.bin",
  ]);
});

test("listAddress() puts one entry into a list when the title has line breaks", () => {
  const [, text] = listAddress("a\r\nb\u2028c", "http://x/y?z=1").split(",", 2);
  assertEquals(decodeURIComponent(text!), "#EXTM3U\n#EXTINF:-1,a  b c\nhttp://x/y?z=1\n");
});

test("isId() and isListName() know ids and lists", () => {
  assertEquals([isId("A".repeat(40)), isId("a".repeat(39)), isId("g".repeat(40))], [true, false, false]);
  assertEquals([isListName("a.M3U8"), isListName("a.m3u"), isListName("m3u.txt")], [true, true, false]);
});

test("filterOf() reads what libraryHash() made, and shows everything for a bare room", () => {
  const filter = { query: "a&b", category: "Films #1", onlyFavourites: true, byChannel: true };
  assertEquals(filterOf(libraryHash(filter)), filter);
  const all = { query: "", category: "", onlyFavourites: false, byChannel: false };
  assertEquals([libraryHash(all), filterOf("#/library")], ["#/library", all]);
});

test("itemStream() keeps what a magnet says besides its infohash", () => {
  const item = { infohash: "0".repeat(40), content_id: "1".repeat(40), url: MAGNET, transport_type: "bt" };
  assertEquals(itemStream(item), { magnet: MAGNET });
  assertEquals(itemStream({ ...item, url: "https://example.org/a.torrent" }), { infohash: item.infohash });
  assertEquals(itemStream({ ...item, infohash: "", url: null }), { content_id: item.content_id });
  const address = { infohash: "", content_id: null, url: "https://example.org/a" };
  assertEquals(itemStream({ ...address, transport_type: "bt" }), { url: address.url });
  assertEquals(itemStream({ ...address, transport_type: "hls" }), null);
});

test("itemParams() keeps the file and the link of what plays", () => {
  const infohash = "0".repeat(40);
  assertEquals(itemParams({ magnet: MAGNET, _idx: "3" }, infohash), { infohash, magnet: MAGNET, file_index: "3" });
  const url = "https://example.org/a.torrent";
  assertEquals(itemParams({ url }, infohash), { infohash, url });
  assertEquals(itemParams({ url: infohash }, infohash), { infohash });
  assertEquals(itemParams({ content_id: infohash, _idx: "0" }, infohash), { infohash, file_index: "0" });
});
