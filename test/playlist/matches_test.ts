import { test } from "node:test";
import { sql } from "kysely";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { Categories } from "../../src/playlist/categories.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { type ItemFilter, selectionOf } from "../../src/playlist/listing.ts";
import { type ItemSelection, libraryVersion, matchesOf } from "../../src/playlist/matches.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** More than one look has. */
const COUNT = 12_000;

async function withLibrary(body: (store: Store, playlist: Playlist) => Promise<void>): Promise<void> {
  const store = createStore(await loadPorts(), { kind: "memory" });
  try {
    await body(store, new Playlist(store, new FakeClock()));
  } finally {
    await store.close();
  }
}

/** Multiplies the item: `COUNT` items, of three channels in turn, of ten categories, every fourth a "rare" one. */
async function fill(store: Store, playlist: Playlist): Promise<void> {
  const id = await playlist.add({ title: "Channel", transportType: "bt", isLive: 1, infohash: "a".repeat(40) });
  const db = await store.open();
  const { rows } = await sql<{ name: string }>`SELECT name FROM pragma_table_info('playlist_items')`.execute(db);
  const own: Record<string, string> = {
    title: "'Channel ' || n.i",
    search_text: "'channel ' || n.i || iif(n.i % 4 = 0, ' rare', '')",
    media_group: "'group ' || (n.i % 3)",
    category: "'category ' || (n.i % 10)",
  };
  const names = rows.map(({ name }) => name).filter((name) => name !== "id");
  await sql`INSERT INTO playlist_items (${sql.raw(names.join(", "))})
    WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ${COUNT})
    SELECT ${sql.raw(names.map((name) => own[name] ?? name).join(", "))} FROM n, playlist_items WHERE id = ${id}`
    .execute(db);
}

/** What `matchesOf` should find, read in one statement. */
async function plainly(store: Store, { where }: ItemSelection): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`SELECT id FROM playlist_items WHERE ${where} ORDER BY id`.execute(
    await store.read(),
  );
  return rows.map(({ id }) => id);
}

test("Matches.of() finds the same items in turns as one statement, for words that few, many or all titles have", async () => {
  await withLibrary(async (store, playlist) => {
    await fill(store, playlist);
    const filters: ItemFilter[] = [
      {},
      { query: "channel" },
      { query: "rare" },
      { query: "11999" },
      { query: "ra" },
      { query: "nowhere" },
      { query: "channel", category: "category 3" },
      { category: "category 4" },
      { trash: true },
    ];
    for (const filter of filters) {
      const selection = selectionOf(filter);
      const found = [...await matchesOf(store).of(await store.read(), selection)];
      assertEquals(found, await plainly(store, selection), JSON.stringify(filter));
    }
    const selection = { ...selectionOf({ query: "channel" }), perChannel: true };
    const heads = [...await matchesOf(store).of(await store.read(), selection)];
    assertEquals(heads, [1, 2, 3, 4], "the oldest of each channel");
    assertEquals([...await matchesOf(store).of(await store.read(), { ...selection, limit: 2 })], [1, 2]);
  });
});

test("Matches.of() looks again only after an item was added, changed, moved to the trash or deleted", async () => {
  await withLibrary(async (store, playlist) => {
    const ids: number[] = [];
    for (let i = 0; i < 3; i++) ids.push(await playlist.add({ title: `One ${i}`, transportType: "bt", isLive: 1 }));
    const db = await store.read();
    const find = () => matchesOf(store).of(db, selectionOf({ query: "one" }));
    const changes: [what: string, change: () => Promise<unknown>, count: number][] = [
      ["added", () => playlist.add({ title: "One more", transportType: "bt", isLive: 1 }), 4],
      ["renamed", () => playlist.update(ids[0]!, { title: "Two" }), 3],
      ["moved", () => playlist.remove([ids[1]!]), 2],
      ["deleted", () => playlist.clearTrash(), 2],
    ];
    let known = await find();
    for (const [what, change, count] of changes) {
      assert(await find() === known, `nothing changed before: ${what}`);
      const version = await libraryVersion(db);
      await change();
      assert(await libraryVersion(db) > version, what);
      known = await find();
      assertEquals(known.length, count, what);
    }
  });
});

test("Matches.of() lets other work run between its looks, and does not keep what changed meanwhile", async () => {
  await withLibrary(async (store, playlist) => {
    await fill(store, playlist);
    const db = await store.read();
    let isFound = false;
    const finding = matchesOf(store).of(db, selectionOf({})).finally(() => isFound = true);
    await playlist.update(COUNT, { title: "Renamed" });
    assertEquals(isFound, false, "the change did not wait for the end");
    const first = await finding;
    const second = await matchesOf(store).of(db, selectionOf({}));
    assert(first !== second);
    assertEquals(second.length, COUNT);
  });
});

test("Categories.of() counts in turns what one statement counts, and again after a change", async () => {
  await withLibrary(async (store, playlist) => {
    await fill(store, playlist);
    await playlist.setFlag("enabled", [12, 22, 7], false, {});
    await playlist.remove([13, 14, 15]);
    const categories = new Categories(store);
    const plainly = async (where: string) => {
      const { rows } = await sql<{ name: string; items: number }>`SELECT category AS name, count(*) AS items
        FROM playlist_items WHERE is_deleted = 0 AND category <> '' ${
        sql.raw(where)
      } GROUP BY category ORDER BY category`
        .execute(await store.read());
      return rows;
    };
    assertEquals(await categories.of(null), await plainly(""));
    const enabled = sql`enabled = 1`;
    const before = await categories.of(enabled);
    assertEquals(before, await plainly("AND enabled = 1"));
    assert(await categories.of(enabled) === before);
    await playlist.setFlag("enabled", [12], true, {});
    assertEquals(await categories.of(enabled), await plainly("AND enabled = 1"));
  });
});
