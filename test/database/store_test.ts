import { existsSync } from "node:fs";
import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createClient } from "@libsql/client";
import { Kysely, sql } from "kysely";
import { loadPorts } from "../../platform/detect.ts";
import { storeDialect } from "../../src/database/dialect.ts";
import { libsqlClient } from "../../src/database/sql-client.ts";
import { currentVersion, migrate, MIGRATIONS } from "../../src/database/migrations.ts";
import type { Schema } from "../../src/database/schema.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { type ErrorCode, MillraceError } from "../../src/errors.ts";
import type { Clock } from "../../src/ports.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { openDatabase } from "../support/database.ts";

/** Keeps the process alive: the engine's timers do not, and nothing else runs here. */
const clock: Clock = {
  ...(await loadPorts()).clock,
  setTimeout(fn, delayMs) {
    const timer = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};
const ports = { ...await loadPorts(), clock };

async function withPath(body: (path: string, open: () => Store) => Promise<void>): Promise<void> {
  const directory = await temporaryDirectory();
  const stores: Store[] = [];
  const path = join(directory.path, "state dir %20", "millrace.db");
  try {
    await body(path, () => {
      const store = createStore(ports, { kind: "file", path });
      stores.push(store);
      return store;
    });
  } finally {
    for (const store of stores) await store.close();
    await directory.remove();
  }
}

const put = async (store: Store, key: string, value: string) =>
  void await (await store.open()).insertInto("settings").values({ key, value }).execute();
const keys = async (store: Store) =>
  (await (await store.open()).selectFrom("settings").select("key").orderBy("key").execute()).map(({ key }) => key);

async function rejects(store: Store, code: ErrorCode, what = ""): Promise<void> {
  const error = await assertRejects(() => store.open(), MillraceError, "", what);
  assertEquals((error as MillraceError).code, code, what);
}

test("createStore() creates the file at the first use, for the owner only, and keeps its data", async () => {
  await withPath(async (path, open) => {
    const first = open();
    assertEquals([await first.mayHoldData(), existsSync(path)], [false, false]);
    await put(first, "a", "1");
    assertEquals((await stat(path)).mode & 0o077, 0);
    const db = await first.open();
    const { rows } = await sql<{ journal_mode: string }>`PRAGMA journal_mode`.execute(db);
    assertEquals(rows[0]?.journal_mode, "wal");
    await first.close();
    await rejects(first, "closed");
    const second = open();
    assertEquals([await second.mayHoldData(), await keys(second)], [true, ["a"]]);
  });
});

test("a store in memory works the same and shares no data", async () => {
  const [one, two] = [createStore(ports, { kind: "memory" }), createStore(ports, { kind: "memory" })];
  await put(one, "a", "1");
  assertEquals([await keys(one), await keys(two)], [["a"], []]);
  await one.close();
  await two.close();
});

test("a transaction is all or nothing, and other statements wait for it", async () => {
  await withPath(async (_path, open) => {
    const store = open();
    const db = await store.open();
    const failed = await assertRejects(() =>
      db.transaction().execute(async (trx) => {
        await trx.insertInto("settings").values({ key: "a", value: "1" }).execute();
        await trx.insertInto("settings").values({ key: "a", value: "2" }).execute();
      }), MillraceError);
    assertEquals((failed as MillraceError).code, "conflict");
    assertEquals(await keys(store), []);
    const slow = db.transaction().execute(async (trx) => {
      await trx.insertInto("settings").values({ key: "b", value: "1" }).execute();
      await new Promise((resolve) => setTimeout(resolve, 5));
      await trx.insertInto("settings").values({ key: "c", value: "1" }).execute();
    });
    const seen = keys(store);
    await slow;
    assertEquals(await seen, ["b", "c"]);
  });
});

test("two engines on one file wait for each other's writes", async () => {
  await withPath(async (_path, open) => {
    const [one, two] = [open(), open()];
    await Promise.all([one.open(), two.open()]);
    const work = [one, two].flatMap((store, which) =>
      Array.from({ length: 25 }, async (_, i) => {
        await (await store.open()).transaction().execute(async (trx) => {
          await trx.insertInto("settings").values({ key: `${which}-${i}`, value: "" }).execute();
          await trx.updateTable("settings").set({ value: "x" }).where("key", "=", `${which}-${i}`).execute();
        });
      })
    );
    await Promise.all(work);
    assertEquals([(await keys(one)).length, (await keys(two)).length], [50, 50]);
  });
});

test("a damaged, foreign or newer database is refused and left unchanged", async () => {
  await withPath(async (path, open) => {
    const whole = open();
    const db = await whole.open();
    for (let i = 0; i < 200; i++) {
      await db.insertInto("settings").values({ key: `k${i}`, value: "v".repeat(200) }).execute();
    }
    await whole.close();
    const good = await readFile(path);
    assert(good.length > 40_000, "data is missing from the main file after a close");
    const damage: [string, ErrorCode, (file: string) => Promise<unknown>][] = [
      ["not a database", "corrupt", (file) => writeFile(file, "This is a letter to my landlord.\n".repeat(300))],
      ["cut short", "corrupt", (file) => truncate(file, good.length - 4096 * 3)],
      ["overwritten", "corrupt", (file) => writeFile(file, new Uint8Array(good).fill(0xa5, 4096))],
      ["newer", "conflict", (file) => edit(file, "UPDATE schema_version SET version = 1000")],
      ["another program's", "config", (file) => edit(file, "DROP TABLE schema_version")],
      ["of no version", "config", (file) => edit(file, "UPDATE schema_version SET version = 'x'")],
    ];
    for (const [name, code, spoil] of damage) {
      // A separate file, because SQLite keeps state about a file that it found damaged.
      const file = `${path}.${name}`;
      await writeFile(file, good);
      await spoil(file);
      const before = await readFile(file);
      const store = createStore(ports, { kind: "file", path: file });
      await rejects(store, code, name);
      await store.close();
      assert(before.equals(await readFile(file)), `${name}: the file changed`);
    }
    assertEquals((await keys(open())).length, 200);
  });
});

async function edit(path: string, statement: string): Promise<void> {
  const client = await openDatabase(path);
  await client.execute(statement);
  await client.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  client.close();
}

test("migrate() upgrades every earlier version to the newest and keeps the data", async () => {
  for (let from = 0; from <= MIGRATIONS.length; from++) {
    const db = new Kysely<Schema>({
      dialect: storeDialect(libsqlClient(createClient({ url: ":memory:" })), ports.clock),
    });
    await migrate(db, from);
    if (from > 0) await db.insertInto("settings").values({ key: "kept", value: "1" }).execute();
    await Promise.all([migrate(db), migrate(db)]);
    assertEquals(await currentVersion(db), MIGRATIONS.length);
    const rows = await db.selectFrom("settings").selectAll().execute();
    assertEquals(rows, from > 0 ? [{ key: "kept", value: "1" }] : []);
    await db.destroy();
  }
});

test("migrate() recomputes the names of earlier versions' items and makes them searchable", async () => {
  // Version 3 recomputes the names; items added by it already have the new ones.
  for (let from = 2; from < 3; from++) {
    const db = new Kysely<Schema>({
      dialect: storeDialect(libsqlClient(createClient({ url: ":memory:" })), ports.clock),
    });
    await migrate(db, from);
    for (let i = 1; i <= 1201; i++) {
      await sql`INSERT INTO playlist_items (owner, title, description, poster, subcategory, tags, tvg_id, tvg_name, tvg_logo,
        infohash, content_type, transport_type, is_live, is_favorite, is_multi_vod, is_multi_tfile, is_wrapped_url, locked,
        auto_search, enabled, is_deleted, external_playlist_id, media_group, hash, hash_v2, created_at, updated_at)
        VALUES ('', ${i === 1 ? "Télé 5 HD" : `c${i}`}, '', '', '', '[]', ${
        i === 2 ? "X.tv" : ""
      }, '', '', '', 'unknown',
        'bt', -1, 0, 0, 0, 0, 0, 0, 1, 0, -1, 'name:old', 'h', 'h2', 5, 6)`.execute(db);
    }
    await migrate(db);
    const groups = await db.selectFrom("playlist_items").select("media_group").where("id", "in", [1, 2, 1201])
      .execute();
    assertEquals(groups.map((row) => row.media_group), ["name:tele5", "id:x.tv", "name:c1201"]);
    const { rows } = await sql<
      { rowid: number }
    >`SELECT rowid FROM playlist_search WHERE playlist_search MATCH '"tele"'`
      .execute(db);
    assertEquals(rows.map(({ rowid }) => rowid), [1]);
    await sql`INSERT INTO playlist_search(playlist_search, rank) VALUES ('integrity-check', 1)`.execute(db);
    await db.destroy();
  }
});

test("a migration that fails changes nothing", async () => {
  const db = new Kysely<Schema>({
    dialect: storeDialect(libsqlClient(createClient({ url: ":memory:" })), ports.clock),
  });
  await sql`CREATE TABLE schema_version (version INTEGER NOT NULL)`.execute(db);
  await db.insertInto("schema_version").values({ version: 0 }).execute();
  await sql`CREATE TABLE settings (key TEXT)`.execute(db);
  await assertRejects(() => migrate(db), MillraceError);
  assertEquals(await currentVersion(db), 0);
  await db.destroy();
});
