/** The effects of a refresh of an external playlist on its items. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { applyEntries, markVanished } from "../../src/playlist/external/apply.ts";
import { match } from "../../src/playlist/external/match.ts";
import { clearStage, stage } from "../../src/playlist/external/stage.ts";
import { exportM3u } from "../../src/playlist/export.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { fails, listOf, useListServer, withLists } from "./external-support.ts";

const { server, add, added } = useListServer();
const DAY_MS = 86_400_000;

test("a refresh adds new items, updates changed ones, and keeps the user's edits", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, playlist, items }) => {
    server.behaviour.text = listOf(
      ["Fav", "http://h/fav", ' tvg-logo="http://l/1"'],
      ["Off", "http://h/off"],
      ["Lock", "http://h/lock"],
      ["Name", "http://h/name", ' tvg-id="n"'],
      ["Plain", "http://h/plain", ' group-title="G"'],
    );
    const id = await add(lists);
    const first = await items();
    assertEquals([...first.keys()], ["Fav", "Off", "Lock", "Name", "Plain"]);
    assert([...first.values()].every((item) => item.external_playlist_id === id));
    const at = (title: string) => first.get(title)!.id;
    await playlist.setFlag("is_favorite", [at("Fav")], true);
    await playlist.update(at("Fav"), { tvgLogo: "data:image/png;base64,AA==", tags: ["mine"], poster: "http://p/" });
    await playlist.setFlag("enabled", [at("Off")], false);
    await playlist.setFlag("locked", [at("Lock")], true);
    await playlist.update(at("Name"), { title: "My name" });
    server.behaviour.text = listOf(
      ["Fav 2", "http://h/fav", ' tvg-logo="http://l/2" group-title="New"'],
      ["Off", "http://h/off?token=2"],
      ["Lock 2", "http://h/lock"],
      ["Name", "http://h/name?token=2", ' tvg-id="n"'],
      ["Plain 2", "http://h/plain", ' group-title="H"'],
      ["Added", "http://h/added"],
    );
    await lists.updateExternal(id);
    const second = await items();
    assertEquals([...second.keys()], ["Fav 2", "Off", "Lock", "My name", "Plain 2", "Added"]);
    const [fav, off, lock, name, plain] = [...second.values()];
    assertEquals([fav!.id, fav!.is_favorite, fav!.tvg_logo, fav!.tags, fav!.category], [
      at("Fav"),
      true,
      "data:image/png;base64,AA==",
      ["mine"],
      "New",
    ]);
    // Their addresses changed; the names say which they are.
    assertEquals([off!.id, off!.enabled, off!.url], [at("Off"), false, "http://h/off?token=2"]);
    assertEquals([name!.id, name!.url], [at("Name"), "http://h/name?token=2"]);
    assertEquals([lock!.id, lock!.locked], [at("Lock"), true]);
    assertEquals([plain!.id, plain!.category], [at("Plain"), "H"]);
  });
});

test("a refresh keeps the category, guide id and address that the user gave an item, and so does the exported list", async () => {
  await withLists(new FakeClock(), async ({ lists, playlist, items, store }) => {
    const text = listOf(["One", "http://h/one", ' tvg-id="1" group-title="G"'], ["Two", "http://h/two"]);
    server.behaviour.text = text;
    const list = await add(lists);
    const { id } = (await items()).get("One")!;
    await playlist.update(id, { category: "Mine", tvgId: "one.example", address: "http://mine/one.mp4" });
    const exported = async () => {
      let all = "";
      const request = { playbackBase: "http://e/engine", output: "getstream", logoUrl: () => "" } as const;
      for await (const part of exportM3u(store, request)) all += part;
      return all;
    };
    const written = /tvg-id="one\.example" group-title="Mine".*,One\nhttp:\/\/mine\/one\.mp4/;
    assertMatch(await exported(), written);
    server.behaviour.text = `${text}#EXTINF:-1,Three\nhttp://h/three\n`;
    await lists.updateExternal(list);
    const all = await items();
    const one = all.get("One")!;
    assertEquals([one.id, one.category, one.tvg_id, one.url], [id, "Mine", "one.example", "http://mine/one.mp4"]);
    assertEquals(all.size, 3);
    assertMatch(await exported(), written);
  });
});

test("entries with one address, or one name, keep to their items by their order", async () => {
  await withLists(new FakeClock(), async ({ lists, items, playlist, store }) => {
    server.behaviour.text = listOf(["A", "http://h/1"], ["B", "http://h/1"], ["C", "http://h/2"], ["C", "http://h/3"]);
    const id = await add(lists);
    const db = await store.open();
    const rows = () => db.selectFrom("playlist_items").select(["id", "title", "url"]).orderBy("id").execute();
    const before = await rows();
    await playlist.update(before[1]!.id, { title: "mine" });
    server.behaviour.text = listOf(
      ["A", "http://h/1"],
      ["B", "http://h/1"],
      ["C", "http://h/9"],
      ["C", "http://h/2"],
      ["C", "http://h/3"],
    );
    await lists.updateExternal(id);
    assertEquals((await rows()).slice(0, 4), before.map((row, i) => i === 1 ? { ...row, title: "mine" } : row));
    assertEquals((await rows())[4]!.url, "http://h/9");
    assertEquals((await items()).get("C")?.url, "http://h/3", "the last one in the list");
  });
});

test("a vanished item is disabled, comes back as it was, and goes to the trash after 7 days unless favourite or locked", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items, playlist, store }) => {
    const all: [string, string][] = ["Stay", "Go", "Fav", "Lock", "Off", "Back"].map((n) => [n, `http://h/${n}`]);
    server.behaviour.text = listOf(...all);
    const id = await add(lists);
    const first = await items();
    const at = (title: string) => first.get(title)!.id;
    await playlist.setFlag("is_favorite", [at("Fav")], true);
    await playlist.setFlag("locked", [at("Lock")], true);
    await playlist.setFlag("enabled", [at("Off")], false);
    server.behaviour.text = listOf(all[0]!);
    await lists.updateExternal(id);
    const enabled = async () =>
      Object.fromEntries([...(await items()).values()].map(({ title, enabled }) => [title, enabled]));
    assertEquals(await enabled(), { Stay: true, Go: false, Fav: false, Lock: true, Off: false, Back: false });
    clock.advance(3 * DAY_MS);
    server.behaviour.text = listOf(all[0]!, all[4]!, all[5]!);
    await lists.updateExternal(id);
    assertEquals(await enabled(), { Stay: true, Go: false, Fav: false, Lock: true, Off: false, Back: true });
    clock.advance(4 * DAY_MS - 60_000);
    await lists.updateExternal(id);
    assert("Go" in await enabled(), "not before its time");
    clock.advance(60_000);
    await lists.updateExternal(id);
    await until("the trash", async () => !("Go" in await enabled()));
    assertEquals(await enabled(), { Stay: true, Fav: false, Lock: true, Off: false, Back: true });
    server.behaviour.text = listOf(...all);
    await lists.updateExternal(id);
    assertEquals(await enabled(), { Stay: true, Go: true, Fav: true, Lock: true, Off: false, Back: true });
    const ids = new Map([...(await items()).values()].map((item) => [item.title, item.id]));
    assertEquals(ids.get("Go"), at("Go"));
    // Deleted by the user is another thing: it stays in the trash, and does not come back once that is emptied.
    await playlist.remove([at("Go")]);
    await lists.updateExternal(id);
    assert(!("Go" in await enabled()));
    await playlist.clearTrash();
    await lists.updateExternal(id);
    assert(!("Go" in await enabled()));
    const { count } = await (await store.open()).selectFrom("external_entries").select((eb) =>
      eb.fn.countAll<number>().as("count")
    ).executeTakeFirstOrThrow();
    assertEquals(count, 0);
  });
});

test("type, category and name have their effects, and an edit takes hold at once", async () => {
  await withLists(new FakeClock(), async ({ lists, items }) => {
    server.behaviour.text = listOf(["One", "http://h/1", ' group-title="G"'], ["Film", "http://h/2.mp4"]);
    const content = await add(lists);
    assertEquals([...(await items()).values()].map((item) => [item.is_live, item.category, item.subcategory]), [
      [-1, "G", ""],
      [0, null, ""],
    ]);
    await lists.editExternal(content, { category: "TV", name: "n", updateInterval: 60 });
    assertEquals([...(await items()).values()].map((item) => [item.category, item.subcategory]), [["TV", "G"], [
      "TV",
      "",
    ]]);
    await lists.updateExternal(content);
    assertEquals([...(await items()).values()].map((item) => [item.category, item.subcategory]), [["TV", "G"], [
      "TV",
      "",
    ]]);
    await lists.editExternal(content, { category: "", name: "n", updateInterval: 60 });
    assertEquals([...(await items()).values()].map((item) => [item.category, item.subcategory]), [["G", ""], [
      null,
      "",
    ]]);
    await lists.deleteExternal(content);
    assertEquals((await items()).size, 0);
    await add(lists, { type: "broadcast", category: "Live" });
    assertEquals([...(await items()).values()].map((item) => [item.is_live, item.category]), [[1, "Live"], [
      0,
      "Live",
    ]]);
  });
});

test("deleting a list deletes all its items, including locked and trashed ones, and nothing else", async () => {
  await withLists(new FakeClock(), async ({ lists, items, playlist, store }) => {
    server.behaviour.text = listOf(["One", "http://h/1"], ["Two", "http://h/2"], ["Three", "http://h/3"]);
    await playlist.add({ title: "Own", transportType: "bt", isLive: -1 });
    const id = await add(lists);
    const other = await add(lists, { name: "other" });
    const mine = [...(await items()).values()].filter((item) => item.external_playlist_id === id);
    const db = await store.open();
    const ids = await db.selectFrom("playlist_items").select("id").where("external_playlist_id", "=", id).execute();
    await playlist.setFlag("locked", [ids[0]!.id], true);
    await playlist.remove([ids[1]!.id]);
    assert(mine.length <= 3);
    await lists.deleteExternal(id);
    const left = await db.selectFrom("playlist_items").select("external_playlist_id").orderBy("id").execute();
    assertEquals(left.map((row) => row.external_playlist_id), [-1, other, other, other]);
    await fails(() => lists.updateExternal(id), /no external playlist/);
    await fails(() => lists.deleteExternal(id), /no external playlist/);
  });
});

test("a list that is deleted while it is fetched leaves no rows", async () => {
  await withLists(new FakeClock(), async ({ lists, items, store }) => {
    let go = () => {};
    server.behaviour.raw = (_request, response) => {
      response.write('#EXTM3U url-tvg="http://g/"\n#EXTINF:-1,One\nhttp://h/1\n');
      go = () => void response.end("#EXTINF:-1,Two\nhttp://h/2\n");
    };
    const id = await lists.addExternal(added(), false);
    const update = lists.updateExternal(id);
    await until("the request", () => server.requests.length === 1);
    await lists.deleteExternal(id);
    go();
    await update;
    assertEquals([(await items()).size, await lists.guides(), await lists.external.get()], [0, [], []]);
    const db = await store.open();
    assertEquals(await db.selectFrom("external_entries").select("position").execute(), []);
  });
});

test("of entries that are alike in address, title and group the first counts, however long these are", async () => {
  await withLists(new FakeClock(), async ({ lists, store }) => {
    for (const long of ["", "x".repeat(300)]) {
      server.behaviour.text = listOf(
        ["A", `http://h/1${long}`],
        ["A", `http://h/1${long}`],
        ["B", `http://h/1${long}`],
        ["A", `http://h/1${long}`, ' group-title="G"'],
        ["A", `http://h/2${long}`],
      );
      const id = await add(lists);
      const rows = await (await store.open()).selectFrom("playlist_items").select(["title", "category"])
        .where("external_playlist_id", "=", id).orderBy("id").execute();
      assertEquals(rows.map(({ title, category }) => [title, category]), [
        ["A", null],
        ["B", null],
        ["A", "G"],
        ["A", null],
      ]);
    }
  });
});

test("an update rejects with conflict and disables nothing when another engine replaced its entries", async () => {
  await withLists(new FakeClock(), async ({ lists, items, store }) => {
    const never = new AbortController().signal;
    const text = listOf(...Array.from({ length: 300 }, (_, i) => [`T${i}`, `http://h/${i}`] as [string, string]));
    server.behaviour.text = text;
    const id = await add(lists);
    const before = [...(await items()).values()];
    const read = (part: string) =>
      stage(store, {
        id,
        body: new Blob([part]).stream(),
        baseUrl: "http://h/",
        maxBytes: 2 ** 20,
        facts: { category: "", isBroadcast: false },
        report: () => {},
        signal: never,
      });
    // Unchanged entries are not staged.
    const changed = text.replaceAll("http://h/", "http://h/x");
    const staged = await read(changed + "http://h/new\n");
    const { rows } = staged;
    const { matched, lost } = await match(store, id, staged, never);
    assertEquals([rows, matched], [301, 300]);
    // The other one has begun to read, has read some of it, and all of it without having looked for the items.
    const others = [() => clearStage(store, id), () => read(listOf(["T0", "http://h/0"])), () => read(changed)];
    for (const interfere of others) {
      await interfere();
      await fails(() => markVanished(store, id, 1, { rows, matched, lost }), /another engine/);
    }
    assertEquals([...(await items()).values()], before);
    await clearStage(store, id);
    await fails(() => applyEntries(store, id, { ...staged, sortKeys: new Map() }, 1, never), /another engine/);
    assertEquals([...(await items()).values()], before);
    await lists.updateExternal(id);
    assertEquals([...(await items()).values()], before);
  });
});
