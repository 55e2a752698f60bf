/** The playlist and its index of titles after many items were deleted, by either method. */
import { test } from "node:test";
import { sql } from "kysely";
import { assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { deleteItems } from "../../src/playlist/delete-rows.ts";
import { entryFields } from "../../src/playlist/entry.ts";
import { GroupNames } from "../../src/playlist/group-names.ts";
import { insertRows } from "../../src/playlist/item-rows.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** Enough for the table to be emptied. */
const MANY = 2500;
const FACTS = { header: {}, category: "", isBroadcast: false, groups: new GroupNames() };

async function withItems(count: number, body: (store: Store, playlist: Playlist) => Promise<void>): Promise<void> {
  const store = createStore(await loadPorts(), { kind: "memory" });
  try {
    const entries = Array.from({ length: count }, (_, i) => {
      const title = `${i % 3 === 0 ? "Opéra" : "Sport"} ${i}`;
      const entry = { url: `http://h/${i}`, title, durationSeconds: -1, attributes: {}, group: "G", directives: [] };
      return entryFields(entry, FACTS);
    });
    const shared = { owner: "", external_playlist_id: -1, allow_private: 0, now: 1 };
    await insertRows(await store.open(), entries, shared);
    await body(store, new Playlist(store, new FakeClock()));
  } finally {
    await store.close();
  }
}

async function allRows(store: Store) {
  const db = await store.open();
  return await db.selectFrom("playlist_items").selectAll().orderBy("id").execute();
}

/** Throws unless the index of titles matches the items. */
async function checkIndex(store: Store): Promise<void> {
  await sql`INSERT INTO playlist_search(playlist_search, rank) VALUES ('integrity-check', 1)`.execute(
    await store.open(),
  );
}

test("deleteItems() leaves the other items and their titles as they were", async () => {
  // By one and one, then by emptying the table, with some that stay and with none.
  for (const [count, last] of [[600, 500], [MANY, MANY - 300], [MANY, MANY]] as const) {
    await withItems(count, async (store, playlist) => {
      const before = await allRows(store);
      const db = await store.open();
      await db.transaction().execute((trx) => deleteItems(trx, (eb) => eb("id", "<=", last)));
      assertEquals(await allRows(store), before.slice(last));
      await checkIndex(store);
      const isLeft = ({ title }: { title: string }) => title.startsWith("Opéra");
      assertEquals(await playlist.count({ query: "opera" }), before.slice(last).filter(isLeft).length);
      const id = await playlist.add({ title: "New opera", transportType: "bt", isLive: -1 });
      assertEquals(id, count + 1);
      await checkIndex(store);
    });
  }
});

test("deleteItems() deletes nothing when its transaction fails", async () => {
  await withItems(MANY, async (store, playlist) => {
    const before = await allRows(store);
    const db = await store.open();
    await assertRejects(() =>
      db.transaction().execute(async (trx) => {
        await deleteItems(trx, (eb) => eb("search_text", "like", "sport%"));
        await deleteItems(trx, (eb) => eb.lit(true));
        throw new Error("the disk is full");
      })
    );
    assertEquals(await allRows(store), before);
    assertEquals(
      await playlist.count({ query: "sport" }),
      before.filter(({ title }) => title.startsWith("Sport")).length,
    );
    await checkIndex(store);
  });
});
