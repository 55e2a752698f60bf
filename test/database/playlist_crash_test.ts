import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { assert, assertEquals } from "@std/assert";
import { sql } from "kysely";
import { loadPorts, runtimeName } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { PlaylistModel, titleOf, type Told } from "./playlist-model.ts";

/** Number of kills; `MILLRACE_TEST_KILLS` sets more. */
const ROUNDS = Number(process.env["MILLRACE_TEST_KILLS"] ?? 3);
/** Least and most lines that a writer prints before it is killed. */
const LINES = [20, 100] as const;

const script = fileURLToPath(new URL("./playlist-writer.ts", import.meta.url));
const flags = runtimeName() === "deno" ? ["run", "-A", "--no-check", "-q"] : [];

/** Runs the writer and kills it after some lines, at a random moment; returns what it printed. */
function killedWriter(path: string, round: number): Promise<Told[]> {
  const wanted = LINES[0] + Math.floor(Math.random() * (LINES[1] - LINES[0]));
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...flags, script, path, String(round + 1)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let told = "";
    let trouble = "";
    child.stderr.on("data", (chunk) => trouble += chunk);
    child.stdout.on("data", (chunk) => {
      told += chunk;
      if (told.split("\n").length > wanted) child.kill("SIGKILL");
    });
    child.once("close", (_code, signal) => {
      // The text after the last line break may be half a line.
      const lines = told.split("\n").slice(0, -1).map((line) => JSON.parse(line) as Told);
      if (signal === "SIGKILL" || lines.length > wanted) resolve(lines);
      else reject(new Error(`the writer ended by itself: ${trouble}`));
    });
  });
}

async function check(store: Store, model: PlaylistModel): Promise<void> {
  const db = await store.open();
  const items = await db.selectFrom("playlist_items").selectAll().execute();
  const own = items.filter((item) => item.external_playlist_id === -1);
  const addresses = own.map((item) => item.url ?? "");
  assertEquals(new Set(addresses).size, addresses.length, "an address is there twice");
  const there = new Set(addresses);
  for (const address of model.addresses) assert(there.has(address), `${address} was acknowledged and is gone`);
  const extra = addresses.filter((address) => !model.addresses.has(address));
  const { pending } = model;
  const [kind, tag, count] = pending?.slice(1) ?? [];
  // An import of one batch is there completely or not at all.
  const allowed = kind === "import"
    ? Array.from({ length: count as number }, (_, i) => `http://h/${titleOf(tag as string, i)}`)
    : kind === "add"
    ? [`http://h/${tag}`]
    : [];
  assertEquals(extra.sort(), extra.length === 0 ? [] : allowed.sort(), "an operation that never began left items");
  for (const address of extra) model.addresses.add(address);
  for (const item of items) {
    const { id } = item;
    const favorite = model.favorites.get(id) ?? false;
    if (!model.mayHaveChanged(["favorite"], id)) assertEquals(item.is_favorite === 1, favorite, `favourite of ${id}`);
    model.favorites.set(id, item.is_favorite === 1);
    const title = model.titles.get(id);
    if (title !== undefined && !model.mayHaveChanged(["title"], id)) assertEquals(item.title, title, `title of ${id}`);
    if (title !== undefined || model.mayHaveChanged(["title"], id)) model.titles.set(id, item.title);
    const deleted = model.deleted.get(id) ?? false;
    if (!model.mayHaveChanged(["remove", "restore"], id)) assertEquals(item.is_deleted === 1, deleted, `trash ${id}`);
    model.deleted.set(id, item.is_deleted === 1);
    assert(item.search_text !== "" && item.media_group !== "" && item.hash.length === 40);
  }
  const ids = new Set(items.map(({ id }) => id));
  for (const id of [...model.titles.keys(), ...model.favorites.keys()]) assert(ids.has(id), `item ${id} is gone`);
  const external = items.filter((item) => item.external_playlist_id !== -1).map((item) => item.url);
  assertEquals(new Set(external).size, external.length, "an entry of the external playlist is there twice");
  const { rows } = await sql<{ integrity_check: string }>`PRAGMA integrity_check`.execute(db);
  assertEquals(rows[0]?.integrity_check, "ok");
  await sql`INSERT INTO playlist_search(playlist_search, rank) VALUES ('integrity-check', 1)`.execute(db);
}

test("a killed engine loses no acknowledged change of the playlist, even during imports and refreshes", async () => {
  const directory = await temporaryDirectory();
  const path = join(directory.path, "millrace.db");
  const model = new PlaylistModel();
  let operations = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const lines = await killedWriter(path, round);
      operations += lines.filter(([phase]) => phase === "done").length;
      model.take(lines);
      const store = createStore(await loadPorts(), { kind: "file", path });
      await check(store, model);
      const lastRefresh = lines.findLast(([phase, kind]) => phase === "done" && kind === "refresh");
      const later = lines.slice(lines.indexOf(lastRefresh!) + 1);
      if (lastRefresh !== undefined && !later.some(([, kind]) => kind === "refresh" || kind === "remove")) {
        const db = await store.open();
        const rows = await db.selectFrom("playlist_items").select("url").where("external_playlist_id", ">", 0)
          .where("vanished_at", "is", null).execute();
        const urls = new Set(rows.map(({ url }) => url));
        for (let i = 0; i < (lastRefresh[2] as number); i++) assert(urls.has(`http://h/external/${i}`), `entry ${i}`);
      }
      await store.close();
    }
    assert(operations >= ROUNDS * 10, `${operations} operations`);
  } finally {
    await directory.remove();
  }
});
