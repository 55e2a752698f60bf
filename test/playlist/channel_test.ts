import { test } from "node:test";
import { sql } from "kysely";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { itemWithNumber, NUMBER_COLUMNS, numberOf } from "../../src/playlist/channel-numbers.ts";
import { Channels } from "../../src/playlist/channel.ts";
import { selectorOf } from "../../src/playlist/export.ts";
import { analysisQuery } from "../../src/playlist/learn.ts";
import { type NewItem, Playlist } from "../../src/playlist/items.ts";
import { FakeClock } from "../support/fake-clock.ts";

async function withLibrary(body: (library: { store: Store; playlist: Playlist; channels: Channels }) => Promise<void>) {
  const store = createStore(await loadPorts(), { kind: "memory" });
  try {
    await body({ store, playlist: new Playlist(store, new FakeClock()), channels: new Channels(store) });
  } finally {
    await store.close();
  }
}
const hash = (digit: number) => String(digit).repeat(40);
const item = (title: string, digit: number, more: Partial<NewItem> = {}): NewItem => ({
  title,
  infohash: hash(digit),
  transportType: "bt",
  isLive: 1,
  ...more,
});

/** Sets the number that a list gave an item. */
async function number(store: Store, id: number, text: string): Promise<void> {
  const db = await store.open();
  await db.updateTable("playlist_items").set({ imported: JSON.stringify({ attributes: { "tvg-chno": text } }) })
    .where("id", "=", id).execute();
}

test("Channels.members() returns the named item, the one that played last, favourites, then the oldest", async () => {
  await withLibrary(async ({ playlist, channels }) => {
    const [one, two, three, four] = [
      await playlist.add(item("News HD", 1)),
      await playlist.add(item("NEWS 4K", 2)),
      await playlist.add(item("News", 3)),
      await playlist.add(item("Néws SD", 4)),
    ];
    await playlist.add(item("Sport", 5));
    const ids = async (name: Parameters<Channels["members"]>[0]) => (await channels.members(name)).map(({ id }) => id);
    assertEquals(await ids({ group: "name:news" }), [one, two, three, four]);
    await playlist.setFlag("is_favorite", [four], true, {});
    assertEquals(await ids({ group: "name:news" }), [four, one, two, three]);
    const [member] = (await channels.members({ group: "name:news" })).filter(({ id }) => id === three);
    channels.played(member!);
    assertEquals(await ids({ group: "name:news" }), [three, four, one, two]);
    assertEquals(await ids({ item: two }), [two, three, four, one]);
    assertEquals(member!.selector, ["infohash", hash(3)]);
  });
});

test("Channels.members() returns what peers share first or last, as set, and else keeps the order", async () => {
  await withLibrary(async ({ store, playlist, channels }) => {
    const byHttp = { infohash: "", transportType: "direct" };
    const [one, two, three, four] = [
      await playlist.add(item("News", 1)),
      await playlist.add(item("News HD", 2, { ...byHttp, url: "http://a.example/live" })),
      await playlist.add(item("News 4K", 3)),
      await playlist.add(item("News SD", 4, { ...byHttp, url: "http://b.example/live" })),
    ];
    const ids = async (from: Channels, name: Parameters<Channels["members"]>[0]) =>
      (await from.members(name)).map(({ id }) => id);
    assertEquals(await ids(channels, { item: four }), [four, one, two, three]);
    assertEquals(await ids(new Channels(store, "peers-first"), { item: four }), [one, three, four, two]);
    const last = new Channels(store, "peers-last");
    assertEquals(await ids(last, { group: "name:news" }), [two, four, one, three]);
    assertEquals(await ids(last, { item: three }), [two, four, three, one]);
  });
});

test("Channels.members() leaves out items that are disabled, deleted or not playable by this engine", async () => {
  await withLibrary(async ({ playlist, channels }) => {
    const [one, two, three] = [
      await playlist.add(item("News", 1)),
      await playlist.add(item("News", 2)),
      await playlist.add(item("News", 3)),
    ];
    const web = await playlist.add({ title: "News", url: "http://h/news.m3u8", transportType: "hls", isLive: 1 });
    await playlist.add({ title: "News", url: "http://h/news.mpd", transportType: "dash", isLive: 1 });
    await playlist.add({ title: "News", url: "http://h/news.mp4", transportType: "direct", isLive: 0 });
    await playlist.add({ title: "News", url: "rtmp://h/news", transportType: "direct", isLive: 1 });
    await playlist.add({ title: "News", transportType: "bt", isLive: 1, autoSearch: true });
    await playlist.remove([two], {});
    await playlist.setFlag("enabled", [three], false, {});
    assertEquals((await channels.members({ group: "name:news" })).map(({ id }) => id), [one, web]);
    const alone = (await channels.members({ item: three })).map(({ id }) => id);
    assertEquals(alone, [three, one, web], "asked for by itself");
    assertEquals(await channels.members({ item: two }), []);
    assertEquals(await channels.members({ item: 999 }), []);
    assertEquals(await channels.members({ group: "name:nothing" }), []);
  });
});

test("Channels.members() returns at most 16 items", async () => {
  await withLibrary(async ({ playlist, channels }) => {
    for (let i = 0; i < 20; i++) await playlist.add(item("News", 1 + i % 9));
    assertEquals((await channels.members({ group: "name:news" })).length, 16);
  });
});

test("numberOf() keeps the numbers of lists, and gives every other item a unique one that leads back to it", async () => {
  await withLibrary(async ({ store, playlist }) => {
    const ids: number[] = [];
    for (let i = 0; i < 8; i++) ids.push(await playlist.add(item(`Channel ${i}`, 1 + i)));
    // A number given twice; one equal to another item's id; the number which that id then gets; not a number.
    for (const [at, text] of [[0, "7"], [1, "7"], [2, "5"], [3, "7.1"], [5, "HD 5"]] as const) {
      await number(store, ids[at]!, text);
    }
    const db = await store.read();
    const { given_number, is_id_given } = NUMBER_COLUMNS;
    const rows = await db.selectFrom("playlist_items")
      .select(["id", given_number.as("given_number"), is_id_given.as("is_id_given")]).orderBy("id").execute();
    const numbers = await Promise.all(rows.map((row) => numberOf(db, row)));
    assertEquals(numbers, ["7", "2", "5", "7.1", "5.1", "6", "7.2", "8"]);
    for (const [at, id] of ids.entries()) assertEquals(await itemWithNumber(db, numbers[at]!), id);
    const others = ["", "x", "5.3", "7.3", "-1", "1e3", "2.1"];
    assertEquals(await Promise.all(others.map((text) => itemWithNumber(db, text))), Array(7).fill(null));
    await playlist.setFlag("enabled", [ids[0]!], false, {});
    assertEquals(await itemWithNumber(db, "7"), ids[1], "the next item that a list gave the number has it now");
  });
});

test("numberOf() leaves a channel its number while a list lacks the item, and gives it to no other", async () => {
  await withLibrary(async ({ store, playlist }) => {
    const ids = [await playlist.add(item("A", 1)), await playlist.add(item("B", 2))];
    for (const id of ids) await number(store, id, "9");
    const db = await store.open();
    await db.updateTable("playlist_items").set({ vanished_at: 5, enabled: 0 }).where("id", "=", ids[0]!).execute();
    const { given_number, is_id_given } = NUMBER_COLUMNS;
    const row = await db.selectFrom("playlist_items")
      .select(["id", given_number.as("given_number"), is_id_given.as("is_id_given")]).where("id", "=", ids[1]!)
      .executeTakeFirstOrThrow();
    assertEquals([await numberOf(db, row), await itemWithNumber(db, "9")], ["2", ids[0]]);
    const { rows } = await sql<{ detail: string }>`EXPLAIN QUERY PLAN SELECT ${given_number} FROM playlist_items
      WHERE id = 1`.execute(db);
    assert(rows.some(({ detail }) => detail.includes("playlist_items_by_number")), JSON.stringify(rows));
  });
});

test("Channels.lineup() has channels whose oldest item has nothing to play yet, and no folders of files", async () => {
  await withLibrary(async ({ playlist, channels }) => {
    await playlist.add({ title: "News", transportType: "bt", isLive: -1, autoSearch: true });
    await playlist.add(item("News HD", 1));
    await playlist.add(item("Season", 2, { isLive: -1, isMulti: true }));
    await playlist.add(item("Unknown", 3, { isLive: -1 }));
    assertEquals((await channels.lineup()).map(({ title }) => title), ["News HD", "Unknown"]);
  });
});

test("Channels.lineup() has one entry per channel, by number, with the title of its oldest item, and no films", async () => {
  await withLibrary(async ({ store, playlist, channels }) => {
    const news = await playlist.add(item("News HD", 1));
    await playlist.add(item("News 4K", 2));
    await playlist.add(item("A film", 3, { isLive: 0 }));
    const sport = await playlist.add(item("Sport & more", 4, { isLive: -1 }));
    const web = await playlist.add({ title: "Web", url: "http://h/web.m3u8", transportType: "hls", isLive: 1 });
    await playlist.add({ title: "Dash", url: "http://h/web.mpd", transportType: "dash", isLive: 1 });
    await number(store, sport, "101");
    const lineup = await channels.lineup();
    assertEquals(lineup, [
      { number: String(news), title: "News HD" },
      { number: String(web), title: "Web" },
      { number: "101", title: "Sport & more" },
    ]);
    assertEquals(await Promise.all(lineup.map((entry) => channels.itemOf(entry.number))), [news, web, sport]);
    assert(await channels.itemOf("102") === 102, "an id that nobody has yet leads to no members");
    assertEquals(await channels.members({ item: 102 }), []);
  });
});

test("selectorOf() and analysisQuery() keep what a magnet says besides the ids that are known by now", () => {
  const magnet = `magnet:?xt=urn:btih:${hash(1)}&tr=http://tracker.example/announce&x.pe=192.0.2.1:6881`;
  const item = { url: magnet, content_id: hash(2), infohash: hash(1) };
  assertEquals(selectorOf(item), ["magnet", magnet]);
  assertEquals(analysisQuery(item), magnet);
  assertEquals(selectorOf({ ...item, url: null }), ["content_id", hash(2)]);
  assertEquals(selectorOf({ ...item, url: null, content_id: null }), ["infohash", hash(1)]);
});
