import { test } from "node:test";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import { MillraceError } from "../../src/errors.ts";
import type { Logger } from "../../src/ports.ts";
import { type CheckTarget, ItemChecks, type ItemProbe } from "../../src/playlist/checks.ts";
import { type NewItem, Playlist } from "../../src/playlist/items.ts";
import { TaskList } from "../../src/playlist/tasks.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

interface Library {
  readonly clock: FakeClock;
  readonly logged: string[];
  readonly checks: ItemChecks;
  readonly tasks: TaskList;
  add(title: string, digit: number, more?: Partial<NewItem>): Promise<number>;
}

async function withLibrary(probe: ItemProbe, body: (library: Library) => Promise<void>) {
  const clock = new FakeClock();
  const logged: string[] = [];
  const store = createStore(await loadPorts(), { kind: "memory" });
  const tasks = new TaskList(clock, (_, error) => {
    throw error;
  });
  const playlist = new Playlist(store, clock);
  const add: Library["add"] = (title, digit, more = {}) =>
    playlist.add({ title, infohash: String(digit).repeat(40), transportType: "bt", isLive: 1, ...more });
  try {
    const log: Logger = { log: (_, message) => void logged.push(message), child: () => log };
    await body({ clock, logged, tasks, add, checks: new ItemChecks({ store, clock, log, tasks, probe }) });
  } finally {
    await tasks.close();
    await store.close();
  }
}

const nameOf = ({ selector }: CheckTarget) => selector[1].slice(0, 1);

test("ItemChecks.sweep() stores results with their time, and when an item was last alive", async () => {
  let peers = 3;
  const probe: ItemProbe = (wanted) => {
    if (nameOf(wanted) === "2") return Promise.reject(new MillraceError("connection_failed", "the server is gone"));
    return Promise.resolve({ state: peers > 0 ? "alive" : "silent", peers, message: peers > 0 ? "" : "no peer" });
  };
  await withLibrary(probe, async ({ clock, checks, tasks, add }) => {
    const [one, two, three] = [await add("One", 1), await add("Two", 2), await add("Three", 3)];
    const first = Math.floor(clock.now() / 1000);
    const id = checks.sweep({ ids: [one, two] });
    await tasks.ended(id);
    const { kind, state, done, total, skipped } = tasks.status(id);
    assertEquals({ kind, state, done, total, skipped }, {
      kind: "playlist_check",
      state: "done",
      done: 2,
      total: 2,
      skipped: 1,
    });
    assertEquals(await checks.get([one, two, three]), [
      { id: one, state: "alive", peers: 3, message: "", checkedAt: first, seenAt: first },
      { id: two, state: "silent", peers: 0, message: "the server is gone", checkedAt: first, seenAt: 0 },
    ]);
    peers = 0;
    await clock.advance(60_000);
    await tasks.ended(checks.sweep({ ids: [one] }));
    assertEquals(await checks.get([one]), [
      { id: one, state: "silent", peers: 0, message: "no peer", checkedAt: first + 60, seenAt: first },
    ]);
  });
});

test("ItemChecks.sweep() begins with items that were never checked, then those checked longest ago", async () => {
  const asked: string[] = [];
  const probe: ItemProbe = (wanted) => {
    asked.push(nameOf(wanted));
    return Promise.resolve({ state: "alive", peers: 1, message: "" });
  };
  await withLibrary(probe, async ({ clock, checks, tasks, add }) => {
    const [, two] = [await add("One", 1), await add("Two", 2), await add("Three", 3), await add("Same as one", 1)];
    await tasks.ended(checks.sweep({ ids: [two!] }));
    await clock.advance(1000);
    await tasks.ended(checks.sweep({ query: "one" }));
    await clock.advance(1000);
    asked.length = 0;
    await tasks.ended(checks.sweep({}));
    assertEquals(asked, ["3", "2", "1"], "each content once");
  });
});

test("ItemChecks.sweep() checks two items at once, each with a deadline, and only one sweep runs at a time", async () => {
  const waiting: string[] = [];
  const probe: ItemProbe = (wanted, signal) =>
    new Promise((_, reject) => {
      waiting.push(nameOf(wanted));
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  await withLibrary(probe, async ({ clock, checks, tasks, add }) => {
    const ids = [await add("One", 1), await add("Two", 2), await add("Three", 3), await add("Four", 4)];
    const id = checks.sweep({});
    await until("two are looked at", () => waiting.length === 2);
    assertThrows(() => checks.sweep({}), MillraceError, `task ${id} is checking`);
    await clock.advance(20_000);
    await until("the next two are", () => waiting.length === 4);
    assertEquals(waiting, ["1", "2", "3", "4"]);
    tasks.cancel(id);
    await tasks.ended(id);
    assertEquals(tasks.status(id).state, "cancelled");
    // An aborted check has no result.
    assertEquals(
      (await checks.get(ids)).map(({ id, state, message }) => ({ id, state, message })),
      ids.slice(0, 2).map((id) => ({ id, state: "silent", message: "no answer in time" })),
    );
    await tasks.ended(checks.sweep({ query: "nothing like it" }));
  });
});

test("ItemChecks.sweep() reports items without an address, and logs faults of the engine itself", async () => {
  await withLibrary(() => Promise.reject(new Error("a bug")), async ({ checks, logged, tasks, add }) => {
    const searched = await add("Searched for", 0, { infohash: "", autoSearch: true });
    const faulty = await add("Faulty", 1);
    await tasks.ended(checks.sweep({}));
    const found = await checks.get([searched, faulty]);
    assertEquals(found.map(({ state, message }) => [state, message]), [
      ["unknown", "it has no address yet"],
      ["unknown", "internal error"],
    ]);
    assertEquals(logged, ["an item could not be checked"]);
    await tasks.close();
    await assertRejects(() => Promise.resolve().then(() => checks.sweep({})), MillraceError, "closing");
  });
});
