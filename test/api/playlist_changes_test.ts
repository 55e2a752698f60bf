/** Items in the trash, flags, locks, media groups and owners. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { add, item, titles, trash, withPlaylist } from "./playlist-support.ts";

test("items go to the trash and back, and for good (section 3.2)", async () => {
  await withPlaylist(async (call) => {
    const ids = [await add(call, "a"), await add(call, "bb"), await add(call, "ccc")];
    assertEquals((await call("playlist_delete_item", { id: String(ids[0]) })).result, "ok");
    assertEquals((await call("playlist_delete_items", { ids: `${ids[1]},999` })).error?.code, 5);
    assertEquals([await titles(call), await trash(call)], [["bb", "ccc"], ["a"]]);
    assertEquals((await call("playlist_delete_items", { ids: `${ids[1]},${ids[2]}` })).result, "ok");
    assertEquals([await titles(call), await trash(call)], [[], ["a", "bb", "ccc"]]);
    assertEquals((await call("playlist_delete_item", { id: String(ids[0]) })).error?.code, 5);
    assertEquals((await call("playlist_restore_item", { id: String(ids[1]) })).result, "ok");
    assertEquals((await call("playlist_restore_item", { id: String(ids[1]) })).error?.code, 5);
    assertEquals([await titles(call), await trash(call)], [["bb"], ["a", "ccc"]]);
    assertEquals((await call("playlist_clear")).result, "ok");
    assertEquals([await titles(call), await trash(call)], [[], ["a", "ccc"]]);
    assertEquals((await call("playlist_trash_clear")).result, "ok");
    assertEquals(await trash(call), []);
    assert(await add(call, "new") > ids[2]!, "ids are not used again");
  });
});

test("flags are set one by one and in lists", async () => {
  await withPlaylist(async (call) => {
    const [one, two] = [String(await add(call, "a")), String(await add(call, "bb"))];
    const flags = async (id: string) => {
      const { is_favorite, enabled, locked, auto_search } = await item(call, Number(id));
      return [is_favorite, enabled, locked, auto_search];
    };
    assertEquals((await call("playlist_item_set_favorite", { id: one, value: "1" })).result, true);
    assertEquals((await call("playlist_item_set_enabled", { id: one, value: "0" })).result, true);
    assertEquals((await call("playlist_item_set_auto_search", { id: one, value: "1", owner: "me" })).result, "ok");
    assertEquals((await call("playlist_item_set_locked", { id: one, value: "1" })).result, true);
    assertEquals([await flags(one), await flags(two)], [[true, false, true, true], [false, true, false, false]]);
    await call("playlist_item_set_locked", { id: one, value: "0" });
    assertEquals((await call("playlist_items_set_enabled", { ids: `${one},${two}`, value: "false" })).result, true);
    assertEquals([(await flags(one))[1], (await flags(two))[1]], [false, false]);
    await call("playlist_item_set_favorite", { id: one, value: "0" });
    assertEquals((await flags(one))[0], false);
  });
});

test("playlist_update_item changes only the given fields", async () => {
  await withPlaylist(async (call) => {
    const id = await add(call, "old", { poster: "http://x/1", tags: '["t"]', category: "c" });
    const before = await item(call, id);
    assertEquals((await call("playlist_update_item", { id: String(id), title: "new" })).result, true);
    assertEquals(await item(call, id), { ...before, title: "new", updated_at: (await item(call, id)).updated_at });
    const gif = new TextEncoder().encode("GIF89a...");
    const more = { id: String(id), poster: "", auto_search: "1", is_favorite: "1", tags: "[]" };
    assertEquals((await call("playlist_update_item", more, { logo_file: gif })).result, true);
    const { poster, auto_search, is_favorite, tags, tvg_logo, title, category } = await item(call, id);
    assertEquals([poster, auto_search, is_favorite, tags, title, category], ["", true, true, [], "new", "c"]);
    assertEquals(new URL(tvg_logo).searchParams.get("id"), String(id));
  });
});

test("playlist_update_item changes category, guide id, logo and address, and takes only what can be opened", async () => {
  await withPlaylist(async (call) => {
    const id = String(await add(call, "one", { category: "old" }));
    const infohash = "c".repeat(40);
    const words = { category: "News", tvg_id: "one.example", tvg_logo: "http://x/logo.png" };
    assertEquals((await call("playlist_update_item", { id, ...words, address: infohash })).result, true);
    const torrent = await item(call, Number(id));
    assertEquals([torrent.category, torrent.tvg_id, torrent.tvg_logo], ["News", "one.example", "http://x/logo.png"]);
    assertEquals((await call("playlist_update_item", { id, address: "http://x/one.m3u8", category: "" })).result, true);
    const { url, infohash: none, transport_type, category, tvg_id } = await item(call, Number(id));
    assertEquals([url, none, transport_type, category, tvg_id], ["http://x/one.m3u8", "", "hls", null, "one.example"]);
    for (const address of ["hello world", "", "/etc/passwd"]) {
      assertEquals((await call("playlist_update_item", { id, address })).error?.code, 3, address);
    }
  });
});

test("a locked item refuses every change but unlocking, and survives playlist_clear", async () => {
  await withPlaylist(async (call) => {
    const [locked, free] = [String(await add(call, "locked")), String(await add(call, "free"))];
    await call("playlist_item_set_locked", { id: locked, value: "1" });
    const refused: [string, Record<string, string>][] = [
      ["playlist_update_item", { id: locked, title: "x" }],
      ["playlist_delete_item", { id: locked }],
      ["playlist_delete_items", { ids: `${free},${locked}` }],
      ["playlist_item_set_favorite", { id: locked, value: "1" }],
      ["playlist_items_set_enabled", { ids: `${free},${locked}`, value: "0" }],
      ["playlist_item_set_auto_search", { id: locked, value: "1", owner: "me" }],
    ];
    for (const [method, params] of refused) {
      const { error } = await call(method, params);
      assertEquals(error, { message: `item ${locked} is locked`, code: 8 }, method);
    }
    assertEquals((await item(call, Number(free))).enabled, true);
    await call("playlist_clear");
    assertEquals(await titles(call), ["locked"]);
    await call("playlist_item_set_locked", { id: locked, value: "0" });
    assertEquals((await call("playlist_delete_item", { id: locked })).result, "ok");
  });
});

test("use_media_groups acts on all items of one channel", async () => {
  await withPlaylist(async (call) => {
    const one = String(await add(call, "News One"));
    await add(call, "NEWS-ONE!");
    await add(call, "Other");
    const groups = { id: one, use_media_groups: "1" };
    const favorites = async () =>
      (await call("playlist_get")).result.playlist.map((i: { is_favorite: boolean }) => i.is_favorite);
    await call("playlist_item_set_favorite", { ...groups, value: "1" });
    assertEquals(await favorites(), [true, true, false]);
    await add(call, "news one", { use_media_groups: "1" });
    await add(call, "News_One");
    assertEquals(await favorites(), [true, true, false, true, false]);
    await call("playlist_update_item", { ...groups, title: "Renamed", is_favorite: "0" });
    assertEquals(await favorites(), [false, false, false, false, false]);
    assertEquals(await titles(call), ["Renamed", "NEWS-ONE!", "Other", "news one", "News_One"]);
    await call("playlist_delete_item", { id: "2", use_media_groups: "1" });
    assertEquals([await titles(call), await trash(call)], [["Renamed", "Other"], [
      "NEWS-ONE!",
      "news one",
      "News_One",
    ]]);
  });
});

test("an owner sees and changes its own items and everybody's, but not those of another owner", async () => {
  await withPlaylist(async (call) => {
    const [all, ann, bob] = [
      await add(call, "all"),
      await add(call, "ann's", { owner: "ann" }),
      await add(call, "bob's it", { owner: "bob" }),
    ];
    assertEquals(await titles(call), ["all", "ann's", "bob's it"]);
    assertEquals(await titles(call, { owner: "ann" }), ["all", "ann's"]);
    assertEquals((await call("playlist_delete_items", { owner: "ann", ids: `${all},${bob}` })).error?.code, 5);
    assertEquals(
      (await call("playlist_item_set_favorite", { owner: "ann", id: String(bob), value: "1" })).error?.code,
      5,
    );
    await call("playlist_delete_items", { ids: `${ann},${bob}` });
    assertEquals(await trash(call, { owner: "ann" }), ["ann's"]);
    assertEquals((await call("playlist_restore_item", { owner: "ann", id: String(bob) })).error?.code, 5);
    await call("playlist_trash_clear", { owner: "ann" });
    assertEquals(await trash(call), ["bob's it"]);
  });
});

test("an owner deletes only its own items for good, and playlist_clear reports how many locked ones it kept", async () => {
  await withPlaylist(async (call) => {
    const all = await add(call, "all");
    const ann = await add(call, "ann's", { owner: "ann" });
    await add(call, "bob's", { owner: "bob" });
    assertEquals((await call("playlist_clear", { owner: "zed" })).result, "ok");
    assertEquals(await titles(call), ["all", "ann's", "bob's"]);
    await call("playlist_item_set_locked", { id: String(ann), value: "1" });
    const cleared = await call("playlist_clear", { owner: "ann" });
    assertEquals([cleared.result, cleared.error, cleared.notes], ["ok", null, { kept_locked: 1 }]);
    await call("playlist_delete_items", { ids: String(all) });
    await call("playlist_trash_clear", { owner: "ann" });
    assertEquals(await trash(call), ["all"]);
    const rest = await call("playlist_clear");
    assertEquals([await titles(call), rest.notes], [["ann's"], { kept_locked: 1 }]);
    await call("playlist_item_set_locked", { id: String(ann), value: "0" });
    const last = await call("playlist_clear");
    assertEquals([await titles(call), last.notes], [[], {}]);
  });
});
