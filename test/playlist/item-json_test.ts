import { test } from "node:test";
import type { Insertable } from "kysely";
import { assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { PlaylistItemsTable } from "../../src/database/schema.ts";
import { createStore } from "../../src/database/store.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { searchItems } from "../../src/playlist/search.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { seededBelow } from "../support/random.ts";
import { textOf } from "../support/text.ts";

type Row = Insertable<PlaylistItemsTable> & { id: number };

/** More than a page in the playlist, and some in the trash. */
const COUNT = 900;

const TEXTS = [
  "",
  "Канал 1",
  "日本語テレビ",
  "😀 é e\u0301 \u200f\u2028\u2029",
  'a "quoted" \\back\\slash/ 100%s %d',
  "\u0000\u0001\b\t\n\u000b\f\r\u001f\u007f",
  "'single' || 'quotes' {\"a\":[1]}",
  "[]",
  "null",
  "17",
  "x".repeat(3000),
  "English; Français,日本語",
];

/** Rows in which every column takes every kind of value, in all mixtures. */
function rows(): Row[] {
  const random = seededBelow(41);
  const text = () => TEXTS[random(TEXTS.length)]! + (random(3) === 0 ? TEXTS[random(TEXTS.length)]! : "");
  const maybe = () => random(3) === 0 ? null : text();
  const flag = () => random(2);
  const short = () => random(2) === 0 ? "" : text();
  return Array.from({ length: COUNT }, (_, i): Row => ({
    id: i + 1,
    owner: "",
    title: text(),
    display_title: maybe(),
    description: short(),
    poster: short(),
    category: maybe(),
    subcategory: short(),
    tags: JSON.stringify(Array.from({ length: random(3) }, text)),
    languages: maybe(),
    countries: maybe(),
    tvg_id: short(),
    tvg_name: short(),
    tvg_logo: short(),
    url: maybe(),
    content_id: random(2) === 0 ? null : "c",
    infohash: random(2) === 0 ? "" : "0123456789abcdef0123456789abcdef01234567",
    content_type: text(),
    transport_type: text(),
    is_live: random(3) - 1,
    is_favorite: flag(),
    is_multi_vod: flag(),
    is_multi_tfile: flag(),
    is_wrapped_url: flag(),
    locked: flag(),
    auto_search: random(4) === 0 ? 1 : 0,
    enabled: flag(),
    is_deleted: random(4) === 0 ? 1 : 0,
    external_playlist_id: random(2) === 0 ? -1 : random(100),
    media_group: `name:${i % 7}`,
    hash: text(),
    hash_v2: text(),
    file_index: random(2) === 0 ? null : random(1000),
    created_at: random(2 ** 31),
    updated_at: random(2 ** 31),
    search_text: "",
  }));
}

/** Section 2.8 of the HTTP API, from a row as JavaScript has it. */
function expected(row: Row): Record<string, unknown> {
  const { owner: _owner, media_group: _group, search_text: _text, hash, hash_v2, ...shared } = row;
  return {
    ...shared,
    tags: JSON.parse(row.tags),
    is_favorite: row.is_favorite === 1,
    is_multi_vod: row.is_multi_vod === 1,
    is_multi_tfile: row.is_multi_tfile === 1,
    locked: row.locked === 1,
    is_deleted: row.is_deleted === 1,
    auto_search: row.auto_search === 1,
    enabled: row.enabled === 1,
    ...(row.is_deleted === 1 ? {} : {
      icons: [row.tvg_logo, row.poster].filter((icon) => icon !== ""),
      hash,
      hash_v2,
      show_autosearch: row.auto_search === 1 || row.infohash === "" && row.content_id === null && row.url === null,
    }),
  };
}

test("an item's JSON has every value that its row has, in the playlist, the trash and searches", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const db = await store.open();
  const all = rows();
  for (let i = 0; i < all.length; i += 100) {
    await db.insertInto("playlist_items").values(all.slice(i, i + 100)).execute();
  }
  const playlist = new Playlist(store, new FakeClock());
  const listed = all.filter((row) => row.is_deleted === 0);
  const parsed = async (trash: boolean) => JSON.parse(`[${await textOf(playlist.json({ trash }))}]`);
  assertEquals(await parsed(false), listed.map(expected));
  assertEquals(await parsed(true), all.filter((row) => row.is_deleted === 1).map(expected));
  const enabled = listed.filter((row) => row.enabled === 1);
  const found = await searchItems(store, { query: "", page: 0, pageSize: COUNT, groupByChannels: false });
  assertEquals(found.results.flatMap(({ items }) => items.map((item) => JSON.parse(item))), enabled.map(expected));
  await store.close();
});

test("foundJson() has what clients of a search read, of rows with any text and any check", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const db = await store.open();
  const all = rows().map((row) => ({ ...row, enabled: 1, is_deleted: 0, media_group: `group ${row.id >> 1}` }));
  for (let i = 0; i < all.length; i += 100) {
    await db.insertInto("playlist_items").values(all.slice(i, i + 100)).execute();
  }
  const states = ["alive", "silent", "unknown"];
  const hashes = [...new Set(all.map(({ hash }) => hash))];
  const checks = new Map(hashes.slice(1).map((hash, i) => [hash, { state: states[i % 3]!, checked_at: 1000 + i }]));
  for (const [hash, check] of checks) {
    await db.insertInto("item_checks").values({ hash, peers: 0, message: "", seen_at: 0, ...check }).execute();
  }
  const request = { query: "", page: 0, pageSize: COUNT, groupByChannels: false, foundAtS: 5000 };
  const { total, results } = await searchItems(store, request);
  const parts = (text: string | null | undefined) => !text ? [] : text.split(/[,;] ?/);
  const expected = all.filter(({ infohash }) => infohash !== "").map((row) => {
    const check = checks.get(row.hash);
    const isChecked = check !== undefined && check.state !== "unknown";
    return {
      name: row.title,
      infohash: row.infohash,
      status: check?.state === "alive" ? 2 : 1,
      availability: check?.state === "silent" ? 0 : 1,
      availability_updated_at: isChecked ? check.checked_at : 5000,
      categories: row.category ? [row.category] : [],
      languages: parts(row.languages),
      countries: parts(row.countries),
      channel_id: Math.max(1, row.id & ~1),
      bitrate: 0,
    };
  });
  assertEquals(total, expected.length);
  assertEquals(results.flatMap(({ items }) => items.map((item) => JSON.parse(item))), expected);
  // Some clients take no 5000.0 for a whole number.
  for (const item of results.flatMap(({ items }) => items)) assertMatch(item, /"availability_updated_at":\d+,/);
  await store.close();
});
