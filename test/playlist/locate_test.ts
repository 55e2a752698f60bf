import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { type LocatedItem, locateItem } from "../../src/playlist/locate.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";
const MAGNET = `magnet:?xt=urn:btih:${ID}&dn=x`;
const nothing = {
  content_type: "unknown",
  content_id: null,
  infohash: "",
  url: null,
  file_index: null,
  is_live: -1,
} as const;

test("locateItem() derives an item's fields from its address", () => {
  const table: [string, Partial<LocatedItem>][] = [
    [ID.toUpperCase(), { transport_type: "bt", content_id: ID }],
    [`any:?content_id=${ID}`, { transport_type: "bt", content_id: ID }],
    [`any:?infohash=${ID}`, { transport_type: "bt", infohash: ID }],
    [`any://${ID}`, { transport_type: "bt", content_id: ID }],
    [MAGNET, { transport_type: "bt", infohash: ID, url: MAGNET }],
    ["magnet:?xt=broken", { transport_type: "bt", url: "magnet:?xt=broken" }],
    [`http://127.0.0.1:6878/engine/getstream?id=${ID}&infohash=x`, { transport_type: "bt", content_id: ID }],
    [`http://box:1/engine/manifest.m3u8?infohash=${ID}`, { transport_type: "bt", infohash: ID }],
    [
      `http://box/engine/getstream?url=${encodeURIComponent("http://h/a.torrent")}`,
      { transport_type: "bt", url: "http://h/a.torrent" },
    ],
    [
      `http://box/engine/getstream?magnet=${encodeURIComponent(MAGNET)}`,
      { transport_type: "bt", infohash: ID, url: MAGNET },
    ],
    [
      `http://box/engine/getfile?magnet=${encodeURIComponent(MAGNET)}&_idx=7`,
      { transport_type: "bt", infohash: ID, url: MAGNET, file_index: 7 },
    ],
    [`http://box/tv/manifest.m3u8?infohash=${ID}&_idx=0`, { transport_type: "bt", infohash: ID, file_index: 0 }],
    ["http://box/film?_idx=3", { transport_type: "direct", url: "http://box/film?_idx=3" }],
    [`http://box/engine/getstream?infohash=${ID}&_idx=-1`, { transport_type: "bt", infohash: ID }],
    ["http://box/engine/getstream?id=bad", { transport_type: "bt", url: "http://box/engine/getstream?id=bad" }],
    ["https://h/a.torrent?x=1", { transport_type: "bt", url: "https://h/a.torrent?x=1" }],
    ["http://h/film.mpd?x", { transport_type: "dash", url: "http://h/film.mpd?x" }],
    ["http://h/live.m3u8|User-Agent=x", { transport_type: "hls", url: "http://h/live.m3u8|User-Agent=x" }],
    ["http://h/film.MKV?x", { transport_type: "direct", url: "http://h/film.MKV?x", content_type: "vod", is_live: 0 }],
    ["udp://@239.0.0.1:1", { transport_type: "direct", url: "udp://@239.0.0.1:1", content_type: "live", is_live: 1 }],
    ["http://h/stream/1", { transport_type: "direct", url: "http://h/stream/1" }],
    ["nonsense", { transport_type: "direct", url: "nonsense" }],
  ];
  for (const [address, fields] of table) {
    assertEquals({ ...locateItem(address) }, { ...nothing, ...fields } as LocatedItem, address);
  }
});

test("locateItem() takes a duration for content that ends", () => {
  assertEquals([locateItem("http://h/x.m3u8", 60).is_live, locateItem("http://h/x.m3u8", 0).is_live], [0, -1]);
  assertEquals(locateItem(ID, 60).content_type, "vod");
});

test("locateItem() takes radio stations, cameras and channels for no files because of how their addresses end", () => {
  const endless = [
    "live.mp3",
    "stream.aac",
    "radio.ogg",
    ";stream.mp3",
    "pid/x/stream.mp4",
    "axis/live.mpeg",
    "live/u/p/1.mkv",
  ];
  for (const path of endless) assertEquals(locateItem(`http://h:8000/${path}`).is_live, -1, path);
  for (const path of ["alive.mp3", "films/Oblivion.mkv", "streamline.mp4", "movie/u/p/1.mkv"]) {
    assertEquals(locateItem(`http://h/${path}`).is_live, 0, path);
  }
  assertEquals(locateItem("http://h/live.mp3", 60).is_live, 0);
});
