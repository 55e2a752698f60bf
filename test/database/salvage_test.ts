/** What is left of a library whose database file is damaged. */
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { importList } from "../../src/playlist/import.ts";
import { Playlist } from "../../src/playlist/items.ts";
import type { Clock } from "../../src/ports.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { noise, seededBelow } from "../support/random.ts";

const PAGE_BYTES = 4096;
const ITEMS = 2000;
/** Of this many bytes anywhere in a file one is changed: several in each page. */
const BYTES_PER_DAMAGE = 400;
/** Keeps the process alive, as the engine's timers do not. */
const clock: Clock = {
  ...(await loadPorts()).clock,
  setTimeout(fn, delayMs) {
    const timer = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** A library as a file: `items`, a list, settings and a position. */
async function library(path: string, items = ITEMS): Promise<Buffer> {
  const store = createStore({ ...await loadPorts(), clock }, { kind: "file", path });
  const db = await store.open();
  for (let i = 0; i < 5; i++) await db.insertInto("settings").values({ key: `k${i}`, value: `"${i}"` }).execute();
  await db.insertInto("external_playlists").values({
    ...{
      type: "content",
      category: "tv",
      name: "list",
      url: "http://h/l",
      login: "",
      password: "",
      update_interval: 60,
    },
    ...{ updated_at: 1, last_update: 1, next_update: 2, failures: 0, last_error: "", etag: "e", last_modified: "m" },
    ...{ digest: "d", allow_private: 0 },
  }).execute();
  await db.insertInto("positions").values({
    ...{ infohash: "a".repeat(40), file_index: 0, position_s: 5, duration_s: 9, updated_at: 1 },
  }).execute();
  const lines = Array.from({ length: items }, (_, i) => {
    return `#EXTINF:-1,Film ${i}\nmagnet:?xt=urn:btih:${i.toString(16).padStart(40, "0")}\n`;
  });
  const list = new TextEncoder().encode(`#EXTM3U\n${lines.join("")}`);
  const open = () => new Blob([list]).stream();
  const { signal } = new AbortController();
  const progress = { done: 0, total: -1, skipped: 0, signal, report: () => {} };
  await importList(store, clock, { open, owner: "", allowPrivate: false }, progress);
  await store.close();
  return await readFile(path);
}

/** Opens the file as an engine does; `body` sees what is left, and the one error that was logged. */
async function reopened(path: string, body: (store: Store, said: string, fields: unknown) => Promise<void>) {
  const errors: [string, unknown][] = [];
  const log = {
    log: (level: string, message: string, fields?: unknown) => level === "error" && void errors.push([message, fields]),
    child: () => log,
  };
  const store = createStore({ ...await loadPorts(), clock, log }, { kind: "file", path }, { replacesDamaged: true });
  try {
    await store.open();
    assertEquals(errors.length, 1);
    await body(store, ...errors[0]!);
  } finally {
    await store.close();
  }
}

async function countOf(store: Store): Promise<number> {
  const db = await store.open();
  const { count } = await db.selectFrom("playlist_items").select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

test("createStore() keeps what can be read of a damaged file, and the file", async () => {
  const { path: directory, remove } = await temporaryDirectory();
  try {
    const good = await library(join(directory, "good.db"));
    const pages = good.length / PAGE_BYTES;
    // Pages with items, anywhere in the file.
    const withItems = Array.from({ length: pages }, (_, i) => i).filter((i) => {
      return good.subarray(i * PAGE_BYTES, (i + 1) * PAGE_BYTES).includes("Film 1") && i > 40;
    });
    assert(withItems.length > 20, `${withItems.length} of ${pages}`);
    const overwritten = withItems.filter((_, i) => i % 10 === 5);
    const damages: Record<string, (bytes: Buffer) => Buffer> = {
      "pages of items": (bytes) => {
        for (const i of overwritten) bytes.set(noise(PAGE_BYTES), i * PAGE_BYTES);
        return bytes;
      },
      "a torn end": (bytes) => bytes.subarray(0, Math.floor(pages * 0.9) * PAGE_BYTES),
    };
    for (const [name, damage] of Object.entries(damages)) {
      const folder = join(directory, name);
      const path = join(folder, "millrace.db");
      await (await loadPorts()).files.makeDirectory(folder);
      const damaged = damage(Buffer.from(good));
      await writeFile(path, damaged);
      await reopened(path, async (store, said, fields) => {
        assertEquals(
          said,
          "the database was damaged: what can be read of playlists, accounts and settings was kept",
          name,
        );
        const { kept, rows } = fields as { kept: string; rows: Record<string, number> };
        assertEquals(damaged.equals(await readFile(kept)), true, name);
        const count = await countOf(store);
        assert(count > ITEMS * 0.5, `${name}: ${count} items`);
        assertEquals([rows["playlist_items"], rows["settings"], rows["external_playlists"]], [count, 5, 1], name);
        const db = await store.open();
        const list = await db.selectFrom("external_playlists").selectAll().executeTakeFirstOrThrow();
        assertEquals([list.name, list.etag, list.last_modified, list.digest], ["list", "", "", ""]);
        // It is a whole database: items are found and added, and keep their numbers.
        const playlist = new Playlist(store, clock);
        const id = await playlist.add({ title: "New", infohash: "f".repeat(40), transportType: "bt", isLive: 0 });
        const { last } = await db.selectFrom("playlist_items").select((eb) => eb.fn.max("id").as("last"))
          .executeTakeFirstOrThrow();
        assertEquals(id, last);
        const some = await db.selectFrom("playlist_items").select(["id", "title"]).where("id", "<=", 20).execute();
        for (const item of some) assertEquals(item.title, `Film ${item.id - 1}`);
      });
      assertEquals(existsSync(`${path}.salvaged`), false);
      // The next start finds a sound database.
      const again = createStore({ ...await loadPorts(), clock }, { kind: "file", path });
      assert(await countOf(again) > ITEMS * 0.5);
      await again.close();
    }
  } finally {
    await remove();
  }
});

test("createStore() opens a file however it is damaged", async () => {
  const { path: directory, remove } = await temporaryDirectory();
  try {
    const good = await library(join(directory, "good.db"), ITEMS / 4);
    const below = seededBelow(7);
    for (let round = 0; round < 12; round++) {
      const path = join(directory, `${round}`, "millrace.db");
      await (await loadPorts()).files.makeDirectory(dirname(path));
      const bytes = Buffer.from(good);
      // The tail of each file, and in half of them the schema.
      const from = round % 2 === 0 ? PAGE_BYTES : 0;
      for (let i = 0; i < bytes.length / BYTES_PER_DAMAGE; i++) bytes[from + below(bytes.length - from)] = below(256);
      await writeFile(path, bytes);
      await reopened(path, async (store, _said, fields) => {
        const { rows = {} } = fields as { rows?: Record<string, number> };
        assertEquals(rows["playlist_items"] ?? 0, await countOf(store));
        let text = "";
        for await (const part of new Playlist(store, clock).json()) text += part;
        JSON.parse(`[${text}]`);
      });
      assert((await readdir(dirname(path))).some((name) => name.startsWith("millrace.db.damaged-")));
    }
  } finally {
    await remove();
  }
});
