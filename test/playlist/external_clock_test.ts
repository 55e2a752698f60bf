/** Slow servers, and clocks that were wrong. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { believedTime } from "../../src/playlist/external/vanished-time.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { listOf, useListServer, withLists } from "./external-support.ts";

const { server, add, added } = useListServer();
const DAY_S = 86_400;

test("slow servers keep neither other lists nor the user's own imports waiting", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items }) => {
    const good = listOf(["Good", "http://h/good"]);
    server.behaviour.raw = ({ url }, response) => {
      if (url === "/good") response.end(good);
      else response.writeHead(200).write("#EXTM3U\n");
    };
    for (let i = 0; i < 7; i++) {
      await lists.addExternal(added({ name: `slow ${i}`, url: `${server.url}/slow${i}`, updateInterval: 60 }), false);
    }
    clock.advance(61_000);
    await lists.start();
    await until("the slow ones", () => server.requests.length === 7);
    const id = await lists.addExternal(added({ name: "good", url: `${server.url}/good`, updateInterval: 60 }), false);
    clock.advance(61_000);
    await lists.start();
    await until("the good one", async () => (await lists.external.get(id))[0]!.lastUpdate > 0);
    const all = [lists.updateAllExternal(), lists.updateAllExternal()];
    const urls = [0, 1].map((i) => lists.importUrl(`${server.url}/import${i}`, "", true));
    const own = await lists.import(await lists.keep(new Blob([listOf(["Own", "http://h/own"])]).stream()), "", true);
    await lists.tasks.ended(own);
    assertEquals([...(await items()).keys()], ["Good", "Own"]);
    for (const task of [...all, ...urls]) lists.tasks.cancel(task);
  });
});

test("the schedule does not believe a next update that a clock ahead has stored", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, store }) => {
    server.behaviour.text = listOf(["One", "http://h/1"]);
    const id = await add(lists, { updateInterval: 3600 });
    const ahead = Math.floor(clock.now() / 1000) + 400 * DAY_S;
    const db = await store.open();
    await db.updateTable("external_playlists").set({ next_update: ahead }).execute();
    clock.advance(1000);
    await lists.start();
    const next = async () => (await lists.external.get(id))[0]!.nextUpdate;
    await until("the update", async () => await next() === Math.floor(clock.now() / 1000) + 3600);
    assertEquals(server.requests.length, 2);
    // An hour and the jitter are within its interval.
    await db.updateTable("external_playlists").set({ next_update: Math.floor(clock.now() / 1000) + 3960 }).execute();
    await lists.start();
    assertEquals([server.requests.length, await next()], [2, Math.floor(clock.now() / 1000) + 3960]);
  });
});

test("believedTime() begins the time of vanished items again after a jump of the clock", async () => {
  await withLists(new FakeClock(), async ({ lists, store }) => {
    server.behaviour.text = listOf(["A", "http://h/a"], ["B", "http://h/b"], ["C", "http://h/c"]);
    await add(lists);
    const db = await store.open();
    const week = 7 * DAY_S;
    const at = async () =>
      (await db.selectFrom("playlist_items").select("vanished_at").orderBy("id").execute()).map((row) =>
        row.vanished_at
      );
    const vanished = (...times: (number | null)[]) =>
      Promise.all(
        times.map((vanished_at, i) =>
          db.updateTable("playlist_items").set({ vanished_at }).where("id", "=", i + 1).execute()
        ),
      );
    let now = 1_000_000_000;
    await db.deleteFrom("settings").execute();
    await vanished(now - week, now, null);
    assertEquals(await believedTime(store, now, week), true);
    now += week;
    assertEquals([await believedTime(store, now, week), await at()], [true, [now - 2 * week, now - week, null]]);
    // One start with a clock that is a month ahead, and one with the right clock again.
    for (const clock of [now + 30 * DAY_S, now + 60]) {
      assertEquals([await believedTime(store, clock, week), await at()], [false, [clock, clock, null]]);
    }
    await vanished(now + 300 * DAY_S, now - 60, null);
    assertEquals([await believedTime(store, now + 120, week), await at()], [true, [now + 120, now - 60, null]]);
  });
});
