/** When external playlists are fetched. */
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { listOf, useListServer, withLists } from "./external-support.ts";

const { server, added } = useListServer();
const DAY_MS = 86_400_000;

test("the schedule updates by the interval, backs off after failures, and ignores manual lists", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items, store }) => {
    server.behaviour.text = listOf(["One", "http://h/1"]);
    const id = await lists.addExternal(added({ updateInterval: 600 }), false);
    await lists.addExternal(added({ name: "manual", url: `${server.url}/manual` }), false);
    const asked = () => server.requests.length;
    const settled = async (requests: number) => {
      await until(`${requests} requests`, () => asked() === requests);
      const db = await store.open();
      await until("the next timer", async () => {
        const row = await db.selectFrom("external_playlists").select("next_update").where("id", "=", id)
          .executeTakeFirstOrThrow();
        // While an update runs, the table has the end of its claim, and the timer is the update's deadline.
        return clock.nextTimerMs === row.next_update * 1000 - clock.now() && clock.pendingTimers === 1;
      });
    };
    await settled(0);
    await clock.advanceAsync(599_000);
    assertEquals(asked(), 0);
    await clock.advanceAsync(1000);
    await settled(1);
    assertEquals([...(await items()).keys()], ["One"]);
    const second = Math.floor(clock.now() / 1000);
    assertEquals((await lists.external.get(id)).map((list) => [list.lastUpdate, list.nextUpdate]), [[
      second,
      second + 600,
    ]]);
    server.behaviour.status = 503;
    await clock.advanceAsync(600_000);
    await settled(2);
    for (const [i, waitS] of [60, 120, 240].entries()) {
      await clock.advanceAsync(waitS * 1000 - 1000);
      assertEquals(asked(), 2 + i, "not before its time");
      await clock.advanceAsync(1000);
      await settled(3 + i);
    }
    assertEquals([...(await items()).keys()], ["One"]);
    assertEquals(server.requests.filter(({ path }) => path === "/manual"), []);
    await lists.editExternal(id, { category: "", name: "n", updateInterval: 0 });
    await clock.advanceAsync(DAY_MS);
    assertEquals(asked(), 5);
    assertEquals((await lists.external.get(id))[0]!.nextUpdate, 0);
  });
});

test("an update that a fault of the engine ends says so, is logged with its stack, and is tried again", async () => {
  const clock = new FakeClock();
  let opened = 0;
  const beforeOpen = () => {
    if (opened++ === 0) throw new TypeError("object null is not iterable");
  };
  await withLists(clock, async ({ lists, items, store, logged }) => {
    server.behaviour.text = listOf(["One", "http://h/1"]);
    const id = await lists.addExternal(added({ updateInterval: 600 }), false);
    const db = await store.open();
    /** Updates the list when its time has come. */
    const next = async (what: string, look: () => Promise<boolean>) => {
      await until("the next timer", async () => {
        const { next_update } = await db.selectFrom("external_playlists").select("next_update").where("id", "=", id)
          .executeTakeFirstOrThrow();
        return clock.nextTimerMs === next_update * 1000 - clock.now() && clock.pendingTimers === 1;
      });
      await clock.advanceAsync(clock.nextTimerMs!);
      await until(what, look);
    };
    await next("the failure", async () => (await lists.external.get(id))[0]!.lastError === "internal error");
    assertMatch(logged.join("\n"), /error an external playlist was not updated .*TypeError: object null.*"stack":/);
    await next("the next try", async () => (await items()).has("One"));
  }, { beforeOpen });
});

test("an engine that starts again takes up the schedule", async () => {
  const directory = await temporaryDirectory();
  try {
    const clock = new FakeClock();
    server.behaviour.text = listOf(["One", "http://h/1"]);
    await withLists(clock, async ({ lists }) => void await lists.addExternal(added({ updateInterval: 60 }), false), {
      stateDir: directory.path,
    });
    clock.advance(DAY_MS);
    await withLists(clock, async ({ lists, items }) => {
      await lists.start();
      await until("the list that is due", async () => (await items()).size === 1);
    }, { stateDir: directory.path });
  } finally {
    await directory.remove();
  }
});

test("of two engines on one database one updates a list that is due", async () => {
  const directory = await temporaryDirectory();
  try {
    const clock = new FakeClock();
    server.behaviour.text = listOf(["One", "http://h/1"]);
    const options = { stateDir: directory.path };
    await withLists(clock, async (one) => {
      await one.lists.addExternal(added({ updateInterval: 60 }), false);
      clock.advance(DAY_MS);
      await withLists(clock, async (two) => {
        await Promise.all([one.lists.start(), two.lists.start()]);
        await until("the list", async () => (await two.items()).size === 1);
      }, options);
    }, options);
    assertEquals(server.requests.length, 1);
  } finally {
    await directory.remove();
  }
});

test("update_all reports failures and continues", async () => {
  await withLists(new FakeClock(), async ({ lists, items }) => {
    server.behaviour.text = listOf(["One", "http://h/1"], ["bad", "javascript:alert(1)"]);
    await lists.addExternal(added({ name: "dead", url: "http://127.0.0.1:9/" }), false);
    await lists.addExternal(added({ name: "good" }), false);
    const task = lists.updateAllExternal();
    await lists.tasks.ended(task);
    const status = lists.tasks.status(task);
    assertEquals([status.state, status.done, status.total, status.errorCount], ["done", 2, 2, 2]);
    assertMatch(status.errors[0]!.message, /^dead: /);
    assertEquals([status.errors[1]!.line, status.errors[1]!.message], [5, "good: not an address that can be played"]);
    assertEquals([...(await items()).keys()], ["One"]);
  });
});
