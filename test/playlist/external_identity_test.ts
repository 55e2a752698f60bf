/** An item of an external list stays the same item while its address, its title or both change. */
import { test } from "node:test";
import { sql } from "kysely";
import { assertEquals, assertNotEquals } from "@std/assert";
import { ItemChecks } from "../../src/playlist/checks.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { listOf, type TestLists, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();

type Entry = [title: string, url: string, extra: string];

/** Channels A to C with this token in their addresses. */
const withToken = (token: number, ids = true): Entry[] =>
  ["A", "B", "C"].map((name) => [name, `http://h/${name}.m3u8?token=${token}`, ids ? ` tvg-id="${name}.tv"` : ""]);

const titles = async ({ items }: TestLists) => [...(await items()).keys()];

test("a channel deleted for good stays away although its address gets new tokens, and with it no other of its name", async () => {
  for (const ids of [true, false]) {
    await withLists(new FakeClock(), async (all) => {
      const { lists, playlist, items } = all;
      const twin: Entry = ["A", "http://h/twin.m3u8", ids ? ' tvg-id="A.tv"' : ""];
      server.behaviour.text = listOf(...withToken(1, ids));
      const id = await add(lists);
      await playlist.remove([(await items()).get("A")!.id]);
      await playlist.clearTrash();
      for (const token of [2, 3]) {
        server.behaviour.text = listOf(...withToken(token, ids));
        await lists.updateExternal(id);
        assertEquals(await titles(all), ["B", "C"], `token ${token}`);
      }
      server.behaviour.text = listOf(...withToken(4, ids), twin);
      await lists.updateExternal(id);
      assertEquals(await titles(all), ["B", "C", "A"]);
      assertEquals((await items()).get("A")!.url, twin[1]);
      // Now the other address is the one that was deleted.
      server.behaviour.text = listOf(twin, ...withToken(4, ids));
      await lists.updateExternal(id);
      assertEquals((await items()).get("A")!.url, twin[1]);
    });
  }
});

test("a channel whose title and address both change is known by a tvg-id that it alone has", async () => {
  await withLists(new FakeClock(), async ({ lists, playlist, items }) => {
    const pair: Entry[] = [["P", "http://h/p1", ' tvg-id="p"'], ["Q", "http://h/q1", ' tvg-id="p"']];
    const none: Entry[] = [["N", "http://h/n1", ' tvg-id="N/A"']];
    server.behaviour.text = listOf(...withToken(1), ...pair, ...none);
    const id = await add(lists);
    const before = await items();
    await playlist.update(before.get("A")!.id, { title: "Mine" });
    await playlist.setFlag("is_favorite", [before.get("A")!.id, before.get("B")!.id], true);
    server.behaviour.text = listOf(
      ["A HD", "http://h/A.m3u8?token=2", ' tvg-id="A.TV"'],
      ["B HD", "http://h/B.m3u8?token=2", ' tvg-id="B.tv"'],
      ["C HD", "http://h/C.m3u8?token=2", ' tvg-id="other.tv"'],
      ["R", "http://h/r1", ' tvg-id="p"'],
      ["M", "http://h/m1", ' tvg-id="N/A"'],
    );
    await lists.updateExternal(id);
    const after = [...(await items()).values()].filter(({ enabled }) => enabled);
    assertEquals(after.map((item) => [item.title, item.is_favorite]), [
      ["Mine", true],
      ["B HD", true],
      ["C HD", false],
      ["R", false],
      ["M", false],
    ]);
    assertEquals(after.slice(0, 2).map((item) => item.id), [before.get("A")!.id, before.get("B")!.id]);
    for (const item of after.slice(2)) assertNotEquals([...before.values()].some(({ id }) => id === item.id), true);
  });
});

test("hashes and what checks found out outlast new tokens", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items, store, playlist }) => {
    const log = { log() {}, child: () => log };
    const probe = () => Promise.resolve({ state: "alive", peers: null, message: "" } as const);
    const checks = new ItemChecks({ store, clock, log, tasks: lists.tasks, probe });
    const hashes = async () => [...(await items()).values()].map((item) => [item.hash, item.hash_v2]);
    server.behaviour.text = listOf(...withToken(1));
    const id = await add(lists);
    await lists.tasks.ended(checks.sweep({}));
    const ids = [...(await items()).values()].map((item) => item.id);
    const [first, found] = [await hashes(), await checks.get(ids)];
    assertEquals(found.map(({ state }) => state), ["alive", "alive", "alive"]);
    server.behaviour.text = listOf(
      ["A", "http://h/A?2", ' tvg-id="A.tv" tvg-logo="http://l/a"'],
      ...withToken(2).slice(1),
    );
    await lists.updateExternal(id);
    assertEquals([await hashes(), await checks.get(ids)], [first, found]);
    assertEquals((await playlist.icon({ hash: first[0]![0]! }))?.url, "http://l/a");
    assertEquals((await playlist.icon({ hash: first[0]![1]! }))?.url, "http://l/a");
    clock.advance(1000);
    await lists.tasks.ended(checks.sweep({}));
    assertEquals(
      (await checks.get(ids)).map(({ checkedAt }) => checkedAt),
      found.map(({ checkedAt }) => checkedAt + 1),
    );
    server.behaviour.text = listOf(...withToken(1));
    await lists.updateExternal(id);
    assertEquals(await hashes(), first);
  });
});

test("a refresh stages only entries that changed, and leaves the items of all others as they are", async () => {
  await withLists(new FakeClock(), async ({ lists, items, store, playlist }) => {
    const entries: Entry[] = Array.from({ length: 300 }, (_, i) => [`T${i}`, `http://h/${i}`, ` tvg-id="t${i}"`]);
    server.behaviour.text = listOf(...entries);
    const id = await add(lists, { category: "C" });
    const before = await items();
    const staged: number[] = [];
    const db = await store.open();
    await sql`CREATE TABLE watched (position INTEGER)`.execute(db);
    await sql`CREATE TRIGGER watch AFTER INSERT ON external_entries WHEN new.hash <> ''
      BEGIN INSERT INTO watched VALUES (new.position); END`.execute(db);
    const refreshed = async () => {
      await lists.updateExternal(id);
      const { rows } = await sql<{ count: number }>`SELECT count(*) AS count FROM watched`.execute(db);
      await sql`DELETE FROM watched`.execute(db);
      staged.push(rows[0]!.count);
    };
    await playlist.setFlag("locked", [before.get("T3")!.id], true);
    await playlist.remove([before.get("T4")!.id]);
    server.behaviour.text = listOf(
      ["T0", "http://h/0?new", ' tvg-id="t0"'],
      ...entries.slice(1, 299),
      ["Added", "http://h/added", ""],
    );
    await refreshed();
    const after = await items();
    assertEquals([after.get("T0")!.url, after.get("T299")!.enabled, after.get("Added")!.enabled], [
      "http://h/0?new",
      false,
      true,
    ]);
    assertEquals([after.has("T4"), after.get("T1")!.id], [false, before.get("T1")!.id]);
    // The item that vanished comes back, a locked one that changed does not change before it is unlocked.
    server.behaviour.text = listOf(
      ...entries.map((entry, i): Entry => i === 3 ? ["T3", "http://h/3?new", ' tvg-id="t3"'] : entry),
    );
    await refreshed();
    assertEquals((await items()).get("T299")!.enabled, true);
    assertEquals((await items()).get("T3")!.url, "http://h/3");
    await playlist.setFlag("locked", [before.get("T3")!.id], false);
    await refreshed();
    assertEquals((await items()).get("T3")!.url, "http://h/3?new");
    await lists.editExternal(id, { category: "D", name: "n", updateInterval: 0 });
    await refreshed();
    assertEquals((await items()).get("T1")!.category, "D");
    assertEquals(staged, [2, 3, 1, 300]);
  });
});
