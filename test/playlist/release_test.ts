/** Responses that cannot be used because something in the engine fails: their connections must be closed. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { MillraceError } from "../../src/errors.ts";
import { Lists } from "../../src/playlist/lists.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";

const log = { log() {}, child: () => log };

/** Lists whose files or database fail as soon as a response arrives. */
async function withFailing(
  part: "files" | "database",
  use: (lists: Lists, cancelled: () => boolean) => Promise<void>,
): Promise<void> {
  const clock = new FakeClock();
  const real = createStore(await loadPorts(), { kind: "memory" });
  const files = new MemoryFiles(clock);
  let isBroken = false;
  let isCancelled = false;
  const broken = () => new MillraceError("io", "broken");
  const store: Store = {
    open: () => isBroken && part === "database" ? Promise.reject(broken()) : real.open(),
    read: () => store.open(),
    snapshot: async () => ({ db: await store.open(), release: () => Promise.resolve() }),
    isRemote: real.isRemote,
    mayHoldData: () => real.mayHoldData(),
    wasReplaced: false,
    close: () => real.close(),
  };
  files.hook = () => {
    if (isBroken && part === "files") throw broken();
  };
  const lists = new Lists({
    store,
    files,
    stateDir: "/state",
    clock,
    log,
    sealer: { seal: (text) => Promise.resolve(text), open: (text) => Promise.resolve(text) },
    random: () => 0,
    open: (url) => {
      isBroken = true;
      const body = new ReadableStream<Uint8Array>({ cancel: () => void (isCancelled = true) }, { highWaterMark: 0 });
      return Promise.resolve({ status: 200, headers: new Headers(), url, isPublic: true, body });
    },
  });
  try {
    await use(lists, () => isCancelled);
  } finally {
    isBroken = false;
    await lists.close();
    await store.close();
  }
}

test("Lists.importUrl() lets an answer go that cannot be kept aside", async () => {
  await withFailing("files", async (lists, cancelled) => {
    const task = lists.importUrl("http://h/l.m3u", "", false);
    await lists.tasks.ended(task);
    assertEquals([lists.tasks.status(task).state, cancelled()], ["failed", true]);
  });
});

test("Lists.updateExternal() lets an answer go when the database fails", async () => {
  await withFailing("database", async (lists, cancelled) => {
    const id = await lists.addExternal({
      type: "content",
      category: "",
      name: "n",
      url: "http://h/l.m3u",
      updateInterval: 0,
      allowPrivate: false,
    }, false);
    await assertRejects(() => lists.updateExternal(id), MillraceError, "broken");
    assertEquals(cancelled(), true);
  });
});
