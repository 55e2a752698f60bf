import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { contentId } from "../../src/metainfo/content-id.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { add, ID, item, titles, withPlaylist } from "./playlist-support.ts";

/** Section 2.8 by hand: field → types as seen. */
const FIELDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["title", "description", "poster", "tvg_id", "tvg_name", "tvg_logo", "subcategory", "infohash"].map((
      n,
    ) => [n, "string"]),
  ),
  ...Object.fromEntries(
    ["display_title", "category", "languages", "countries", "url", "content_id"].map((n) => [n, "string?"]),
  ),
  ...Object.fromEntries(
    ["is_favorite", "is_multi_vod", "is_multi_tfile", "locked", "is_deleted", "auto_search", "enabled"].map(
      (n) => [n, "boolean"],
    ),
  ),
  ...Object.fromEntries(
    ["id", "is_live", "is_wrapped_url", "external_playlist_id", "created_at", "updated_at"].map((n) => [n, "number"]),
  ),
  tags: "list",
  file_index: "number?",
  content_type: "string",
  transport_type: "string",
};
const LISTED: Readonly<Record<string, string>> = {
  ...FIELDS,
  icons: "list",
  hash: "string",
  hash_v2: "string",
  show_autosearch: "boolean",
};

function assertFields(item: Record<string, unknown>, fields: Readonly<Record<string, string>>): void {
  assertEquals(Object.keys(item).sort(), Object.keys(fields).sort());
  for (const [name, type] of Object.entries(fields)) {
    const value = item[name];
    if (type === "list") assert(Array.isArray(value) && value.every((one) => typeof one === "string"), name);
    else if (type === "string?") assert(value === null || typeof value === "string", name);
    else if (type === "number?") assert(value === null || typeof value === "number", name);
    else assertEquals(typeof value, type, name);
  }
}

test("playlist_add_item stores every parameter, and listings have every field of section 2.8", async () => {
  await withPlaylist(async (call) => {
    const { result: id } = await call("playlist_add_item", {
      title: "Première",
      description: "d",
      content_id: ID(1),
      infohash: ID(2),
      category: "news",
      subcategory: "world",
      tags: '["a","b,c"]',
      poster: "http://x/p.png",
      auto_search: "1",
      is_live: "1",
    });
    const { result } = await call("playlist_get");
    assertEquals(result.total_items, 1);
    const [one] = result.playlist;
    assertFields(one, LISTED);
    const expected = {
      id,
      title: "Première",
      description: "d",
      content_id: ID(1),
      infohash: ID(2),
      category: "news",
      subcategory: "world",
      tags: ["a", "b,c"],
      poster: "http://x/p.png",
      icons: ["http://x/p.png"],
      auto_search: true,
      show_autosearch: true,
      is_live: 1,
      content_type: "live",
      transport_type: "bt",
      url: null,
      enabled: true,
      locked: false,
      is_favorite: false,
      is_deleted: false,
      external_playlist_id: -1,
      is_wrapped_url: 0,
    };
    for (const [name, value] of Object.entries(expected)) assertEquals(one[name], value, name);
    assert(Math.abs(one.created_at - Date.now() / 1000) < 60 && one.updated_at === one.created_at);
    await call("playlist_delete_item", { id: String(id) });
    const [gone] = (await call("playlist_trash_get")).result.data;
    assertFields(gone, FIELDS);
    assertEquals([gone.id, gone.is_deleted], [id, true]);
  });
});

test("playlist_add_item takes a content id as `id`, too", async () => {
  await withPlaylist(async (call) => {
    const { result } = await call("playlist_add_item", { title: "One", id: ID(3) });
    assertEquals((await item(call, result)).content_id, ID(3));
    const { result: other } = await call("playlist_add_item", { title: "Two", id: ID(3), content_id: ID(4) });
    assertEquals((await item(call, other)).content_id, ID(4));
  });
});

test("playlist_add_item takes addresses, transport files and logos", async () => {
  await withPlaylist(async (call) => {
    for (const [name, type] of [["hls_manifest_url", "hls"], ["dash_manifest_url", "dash"], ["video_url", "direct"]]) {
      const { result: id } = await call("playlist_add_item", { [name!]: `https://x.example/${name}` });
      const one = await item(call, id);
      assertEquals([one.transport_type, one.url, one.title, one.is_live], [
        type,
        `https://x.example/${name}`,
        `https://x.example/${name}`,
        -1,
      ]);
    }
    const file = new Uint8Array(readFileSync(new URL("../fixtures/multi-padded.torrent", import.meta.url)));
    const metainfo = await parseTransportFile(file);
    const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3);
    const { result: id } = await call("playlist_add_item", {}, { file, logo_file: png });
    const one = await item(call, id);
    assertEquals([one.title, one.infohash, one.content_id, one.is_live, one.content_type], [
      metainfo.name,
      metainfo.infohashHex,
      await contentId(metainfo),
      0,
      "vod",
    ]);
    assertEquals(one.icons, [one.tvg_logo]);
    const { result: again } = await call("playlist_add_item", { infohash: metainfo.infohashHex });
    assertEquals([(await item(call, again)).hash, (await item(call, again)).hash_v2], [one.hash, one.hash_v2]);
    assertMatch(one.hash, /^[0-9a-f]{40}$/);
    assertMatch(one.hash_v2, /^[0-9a-f]{64}$/);
    const svg = new TextEncoder().encode("<svg onload='alert(1)'/>");
    assertEquals(
      (await call("playlist_add_item", { title: "x", content_id: ID(1) }, { logo_file: svg })).error?.code,
      3,
    );
    assertEquals((await call("playlist_add_item", {}, { file: svg })).error?.code, 3);
  });
});

test("playlist methods refuse missing, wrong and unknown values", async () => {
  await withPlaylist(async (call) => {
    const table: [string, Record<string, string>, number][] = [
      ["playlist_add_item", { title: "x" }, 2],
      ["playlist_add_item", { auto_search: "1" }, 2],
      ["playlist_add_item", { content_id: "x" }, 3],
      ["playlist_add_item", { content_id: ID(1), infohash: "x" }, 3],
      ["playlist_add_item", { content_id: ID(1), is_live: "2" }, 3],
      ["playlist_add_item", { content_id: ID(1), tags: "x" }, 3],
      ["playlist_add_item", { video_url: "javascript:alert(1)" }, 3],
      ["playlist_add_item", { content_id: ID(1), poster: "file:///etc/passwd" }, 3],
      ["playlist_update_item", {}, 2],
      ["playlist_update_item", { id: "1" }, 5],
      ["playlist_update_item", { id: "1", title: "" }, 3],
      ["playlist_delete_item", { id: "1" }, 5],
      ["playlist_delete_item", { id: "0" }, 3],
      ["playlist_delete_items", {}, 2],
      ["playlist_delete_items", { ids: "1,x" }, 3],
      ["playlist_delete_items", { ids: "1" }, 5],
      ["playlist_restore_item", { id: "1" }, 5],
      ["playlist_item_set_favorite", { id: "1" }, 2],
      ["playlist_item_set_favorite", { id: "1", value: "1" }, 5],
      ["playlist_item_set_enabled", { id: "1", value: "x" }, 3],
      ["playlist_items_set_enabled", { ids: "1", value: "1" }, 5],
      ["playlist_item_set_locked", { id: "1", value: "1" }, 5],
      ["playlist_item_set_auto_search", { id: "1", value: "1" }, 2],
      ["playlist_item_set_auto_search", { id: "1", value: "1", owner: "me" }, 5],
      ["playlist_get", { offset: "-1" }, 3],
    ];
    for (const [method, params, code] of table) {
      assertEquals((await call(method, params)).error?.code, code, `${method} ${JSON.stringify(params)}`);
    }
    assertEquals((await call("playlist_get")).result, { total_items: 0, playlist: [] });
  });
});

test("playlist_get pages, searches and filters", async () => {
  await withPlaylist(async (call) => {
    const names = ["One", "Two 100%", "Three_3", "four"];
    const ids: number[] = [];
    for (const [i, name] of names.entries()) {
      ids.push(await add(call, name, { category: i % 2 === 0 ? "even" : "odd" }));
    }
    await call("playlist_item_set_favorite", { id: String(ids[1]), value: "1" });
    const table: [Record<string, string>, string[], number][] = [
      [{}, names, 4],
      [{ limit: "2" }, names.slice(0, 2), 4],
      [{ offset: "3" }, ["four"], 4],
      [{ offset: "1", limit: "2" }, names.slice(1, 3), 4],
      [{ limit: "0" }, [], 4],
      [{ query: "o" }, ["One", "Two 100%", "four"], 3],
      [{ query: "%" }, ["Two 100%"], 1],
      [{ query: "_" }, ["Three_3"], 1],
      [{ query: "'; DROP TABLE playlist_items; --" }, [], 0],
      [{ query: "\\" }, [], 0],
      [{ category: "odd" }, ["Two 100%", "four"], 2],
      [{ category: "odd", query: "f", limit: "1" }, ["four"], 1],
      [{ is_favorite: "1" }, ["Two 100%"], 1],
      [{ is_favorite: "0", category: "odd" }, ["four"], 1],
    ];
    for (const [params, expected, total] of table) {
      const { result } = await call("playlist_get", params);
      const got = result.playlist.map((one: { title: string }) => one.title);
      assertEquals([got, result.total_items], [expected, total], JSON.stringify(params));
    }
  });
});

test("playlist_get_categories counts items by category, without items in the trash or without a category", async () => {
  await withPlaylist(async (call) => {
    for (const category of ["b", "a", "b"]) await add(call, "in", { category });
    await add(call, "without");
    const trashed = await add(call, "away", { category: "c" });
    await call("playlist_delete_item", { id: String(trashed) });
    const { result } = await call("playlist_get_categories");
    assertEquals(result.categories, [{ name: "a", items: 1 }, { name: "b", items: 2 }]);
  });
});

test("playlist_get_version returns another number after an item was added, changed, trashed or deleted", async () => {
  await withPlaylist(async (call) => {
    const version = async () => (await call("playlist_get_version")).result.version as number;
    const seen = [await version()];
    const id = String(await add(call, "a"));
    for (const method of ["playlist_item_set_favorite", "playlist_delete_item", "playlist_trash_clear"]) {
      seen.push(await version());
      assertEquals(await version(), seen.at(-1));
      assertEquals((await call(method, { id, value: "1" })).error, null);
    }
    seen.push(await version());
    assertEquals(new Set(seen).size, 5);
  });
});

test("the playlist outlives the engine; get_status says that it is there", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-playlist-"));
  try {
    await withPlaylist(async (call) => void await add(call, "kept"), { stateDir: directory });
    await withPlaylist(async (call) => {
      const { result } = await call("get_status");
      assertEquals(result.playlist_loaded, true);
      assertEquals(Object.keys(result.version).sort(), ["code", "platform", "version"]);
      assertEquals(await titles(call), ["kept"]);
    }, { stateDir: directory });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("texts of any kind come back as they were sent", async () => {
  await withPlaylist(async (call) => {
    const nasty = ["'", '"', "\\", "');--", "%00", "\u0001", "😀", "<script>", "\r\nX: y", "🏳️‍🌈", "ａｂｃ", "null"];
    for (const text of nasty) await add(call, text, { description: text, tags: JSON.stringify([text]) });
    const { result } = await call("playlist_get");
    assertEquals(result.playlist.map((one: { title: string }) => one.title), nasty);
    assertEquals(result.playlist.map((one: { tags: string[] }) => one.tags[0]), nasty);
  });
});

test("a logo that was sent along is listed by an address, which changes when the logo does", async () => {
  await withPlaylist(async (call) => {
    const picture = (last: number) => Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, last);
    const { result: id } = await call("playlist_add_item", { title: "One", content_id: ID(1) }, {
      logo_file: picture(1),
    });
    await add(call, "Two", { poster: "http://p/x.png" });
    const one = await item(call, id);
    assertMatch(one.tvg_logo, /^http:\/\/127\.0\.0\.1:6878\/server\/api\?method=get_channel_icon&id=\d+&v=\d+$/);
    assertEquals(one.icons, [one.tvg_logo]);
    assert(!JSON.stringify((await call("playlist_get")).result).includes("data:"));
    const { results } = (await call("search", { query: "One" })).result;
    assertEquals(results[0].items[0].icons, one.icons);
    await call("playlist_delete_item", { id: String(id) });
    const [deleted] = (await call("playlist_trash_get")).result.data;
    assertEquals(new URL(deleted.tvg_logo).searchParams.get("id"), String(id));
  });
});
