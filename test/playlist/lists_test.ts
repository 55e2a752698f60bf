import { test } from "node:test";
import { assertEquals, assertNotEquals } from "@std/assert";
import { foldText, mediaGroup, normalizedName, searchText } from "../../src/database/names.ts";
import { toHex } from "../../src/bytes/hex.ts";
import { contentHashes } from "../../src/playlist/identity.ts";

test("normalizedName() leaves out writing, diacritics and words for the quality", () => {
  const table: [string, string][] = [
    ["ＮＥＷＳ - One (HD)!", "newsone"],
    ["News One FHD", "newsone"],
    ["News One [UHD/4K]", "newsone"],
    ["NEWS ONE 1080p HEVC 50 fps", "newsone"],
    ["Néws Öne Full HD", "newsone"],
    ["News One +1", "newsone+1"],
    ["Canal+ HD", "canal+"],
    ["Первый канал HD", "первыйканал"],
    ["Дождь Ёлка", "дождьелка"],
    ["हिन्दी समाचार", "हिन्दीसमाचार"],
    ["HD", "hd"],
    ["4K UHD", "4kuhd"],
    ["HDTV Sport", "hdtvsport"],
    ["Shades", "shades"],
    ["H.265 test x264", "test"],
    ["Sport 720", "sport"],
    ["!!!", ""],
  ];
  for (const [name, normal] of table) assertEquals(normalizedName(name), normal.normalize("NFC"), name);
  assertEquals(foldText("ＣＡＦÉ й"), "cafe й");
});

test("foldText() writes letters of all alphabets as people search for them", () => {
  const table: [string, string][] = [
    ["Łódź Żółć", "lodz zolc"],
    ["Straße FUSSBALL", "strasse fussball"],
    ["Ærø Øst œuvre", "aero ost oeuvre"],
    ["Đài Việt Þór", "dai viet thor"],
    ["İstanbul IŞIK ıspanak", "istanbul isik ispanak"],
    ["ΕΛΛΆΣ Ελλάς", "ελλασ ελλασ"],
    ["قناة الأولى", "قناة الاولي"],
    ["الْعَرَبِيَّة ـ", "العربية "],
    ["עָרוּץ", "ערוץ"],
    ["てれび ﾃﾚﾋﾞ", "テレビ テレビ"],
    ["हिन्दी", "हिन्दी"],
    ["Й й", "й й"],
  ];
  for (const [text, folded] of table) assertEquals(foldText(text), folded.normalize("NFC"), text);
  assertEquals(mediaGroup({ title: "Polsat Łódź HD", tvgId: "" }), mediaGroup({ title: "polsat lodz", tvgId: "" }));
});

test("searchText() has the other ways in which people write a title in further lines", () => {
  const table: [string, string][] = [
    ["Kanal 5", "kanal 5"],
    ["Łódź", "lodz"],
    ["Ærø", "aero\naro\naeroe"],
    ["Köln Ärger", "koln arger\nkoeln aerger"],
    ["Ko\u0308ln", "koln\nkoeln"],
    ["Þór", "thor\ntor"],
  ];
  for (const [title, text] of table) assertEquals(searchText(title), text, title);
});

test("contentHashes() answers the SHA-1 and SHA-256 of the address and its kind when an item has one", async () => {
  const item = { infohash: "", contentId: null, url: "http://a/é", title: "t" };
  const bytes = new TextEncoder().encode("url:http://a/é");
  const digest = async (name: string) => toHex(new Uint8Array(await crypto.subtle.digest(name, bytes)));
  assertEquals(contentHashes(item), { hash: await digest("SHA-1"), hashV2: await digest("SHA-256") });
});

test("mediaGroup() takes no placeholder for an id, and no name of symbols for another", () => {
  const group = (title: string, tvgId = "") => mediaGroup({ title, tvgId });
  for (
    const none of [
      "",
      "N/A",
      " n.a. ",
      "NA",
      "0",
      "00",
      "null",
      "None",
      "-",
      "--",
      "(no tvg-id)",
      "undefined",
      "#",
      "Unknown",
    ]
  ) {
    assertEquals(group("News", none), group("News"), none);
  }
  for (const id of ["1", "10", "n", "nan.tv", "none.uk", "null2", "zero"]) assertEquals(group("News", id), `id:${id}`);
  assertNotEquals(group("★★★"), group("---"));
  assertEquals(group("★★★"), group(" ★★★ "));
});

test("mediaGroup() and contentHashes() depend on what makes items the same", () => {
  assertEquals(mediaGroup({ title: "A b", tvgId: "" }), mediaGroup({ title: "a-B", tvgId: "" }));
  assertEquals(mediaGroup({ title: "x", tvgId: "Ch.1 " }), mediaGroup({ title: "y", tvgId: "ch.1" }));
  assertNotEquals(mediaGroup({ title: "ch1", tvgId: "" }), mediaGroup({ title: "x", tvgId: "ch1" }));
  const item = { infohash: "", contentId: null, url: "http://a/", title: "t" };
  const { hash, hashV2 } = contentHashes(item);
  assertEquals([hash.length, hashV2.length], [40, 64]);
  assertEquals(contentHashes({ ...item, title: "other" }), { hash, hashV2 });
  assertNotEquals((contentHashes({ ...item, url: "http://b/" })).hash, hash);
  assertNotEquals((contentHashes({ ...item, url: null, contentId: "http://a/" })).hash, hash);
});
