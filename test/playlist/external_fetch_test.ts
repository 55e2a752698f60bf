/** How external playlists are fetched, what goes wrong at that, and what becomes of passwords. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { fails, listOf, type ListServer, startListServer, useListServer, withLists } from "./external-support.ts";

const { server, add, added } = useListServer();

/** 280 MB of long lines. */
const BOMB = gzipSync(Buffer.alloc(280_000_000, `#${"x".repeat(100_000)}\n`));

test("a failure wipes nothing: statuses, damage, pages, empty and endless lists, bombs", async () => {
  const endless = Buffer.alloc(1 << 20, `#EXTINF:-1,x\nhttp://h/y\n#${"x".repeat(50_000)}\n`);
  const cases: [string, Partial<ListServer["behaviour"]>, RegExp][] = [
    ["401", { credentials: "a:b" }, /answered 401: check login/],
    ["404", { status: 404 }, /answered 404/],
    ["500", { status: 500 }, /answered 500/],
    ["304 unasked", { status: 304 }, /answered 304/],
    ["a web page", { text: "<!DOCTYPE html><html>" }, /web page/],
    ["an HLS manifest", { text: "#EXTM3U\n#EXT-X-TARGETDURATION:5\n" }, /HLS manifest/],
    ["empty", { text: "#EXTM3U\n" }, /no entries/],
    ["cut off", {
      raw: (_request, response) => {
        response.writeHead(200, { "content-length": "1000" });
        response.write(listOf(["X", "http://h/x"]));
        setTimeout(() => response.destroy(), 20);
      },
    }, /./],
    ["damaged gzip", {
      raw: (_request, response) => void response.end(gzipSync(listOf(["X", "http://h/x"])).subarray(0, 30)),
    }, /./],
    ["a bomb", { raw: (_request, response) => void response.end(BOMB) }, /unpacks to more|larger than/],
    ["a packed bomb", {
      raw: (_request, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(BOMB),
    }, /larger than/],
    ["endless", {
      raw: (_request, response) => {
        const more = () => {
          while (!response.destroyed && response.write(endless));
        };
        response.on("drain", more);
        more();
      },
    }, /larger than/],
    ["redirects in a circle", {
      raw: (_request, response) => void response.writeHead(302, { location: "/again" }).end(),
    }, /redirects/],
  ];
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items, store }) => {
    const good = listOf(["One", "http://h/1"], ["Two", "http://h/2"]);
    server.behaviour.text = good;
    const id = await add(lists, { updateInterval: 3600 });
    const before = [...(await items()).values()];
    const { lastUpdate } = (await lists.external.get(id))[0]!;
    clock.advance(1000);
    for (const [what, behaviour, message] of cases) {
      Object.assign(server.behaviour, { text: good, credentials: null, status: null, raw: null }, behaviour);
      await fails(() => lists.updateExternal(id), message).catch((error) => {
        throw new Error(`${what}: ${error.message}`);
      });
      assertEquals([...(await items()).values()], before, what);
    }
    const row = await (await store.open()).selectFrom("external_playlists").selectAll().executeTakeFirstOrThrow();
    assertEquals([row.last_update, row.failures], [lastUpdate, cases.length]);
    // Backed off: a minute, doubled with each failure, at most six hours.
    assertEquals(row.next_update, Math.floor(clock.now() / 1000) + 6 * 3600);
    Object.assign(server.behaviour, { text: good, raw: null });
    await lists.updateExternal(id);
    const now = Math.floor(clock.now() / 1000);
    assertEquals((await lists.external.get(id)).map((list) => [list.lastUpdate, list.nextUpdate]), [[
      now,
      now + 3600,
    ]]);
  });
});

test("an update gives up on a server that is silent or never ends, and all updates end with the engine", async () => {
  const silent: ((response: ServerResponse) => void)[] = [
    () => {},
    (response) => void response.writeHead(200).write("#EXTM3U\n#EXTINF:-1,X\nhttp://h/x\n"),
  ];
  for (const answer of silent) {
    const clock = new FakeClock();
    await withLists(clock, async ({ lists, items }) => {
      server.requests.length = 0;
      server.behaviour.raw = (_request, response) => answer(response);
      const id = await lists.addExternal(added({ updateInterval: 60 }), false);
      const update = fails(() => lists.updateExternal(id), /did not come in time/);
      await until("the request", () => server.requests.length === 1);
      clock.advance(10 * 60_000);
      await update;
      assertEquals((await items()).size, 0);
      const ending = fails(() => lists.updateExternal(id), /closing/);
      await until("another request", () => server.requests.length >= 2);
      await lists.close();
      await ending;
    });
  }
});

test("conditional requests, gzip, redirects and HTTP Basic", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items }) => {
    Object.assign(server.behaviour, {
      text: listOf(["One", "relative/1"]),
      etag: '"v1"',
      lastModified: "Sat, 01 Nov 2025 00:00:00 GMT",
      gzip: true,
      credentials: "me:pass: wörd",
    });
    const url = `${server.url}/moved`;
    const id = await add(lists, { url, login: "me", password: "pass: wörd", updateInterval: 3600 });
    assertEquals((await items()).get("One")?.url, `${server.url}/relative/1`);
    clock.advance(3600_000);
    await lists.start();
    await until("the update", async () => (await lists.external.get(id))[0]!.lastUpdate === clock.now() / 1000);
    const last = server.requests[server.requests.length - 1]!;
    assertEquals([last.path, last.headers["if-none-match"]], ["/list.m3u", '"v1"']);
    assertEquals(last.headers["if-modified-since"], "Sat, 01 Nov 2025 00:00:00 GMT");
    assertEquals((await items()).size, 1);
    server.behaviour.etag = '"v2"';
    server.behaviour.lastModified = null;
    server.behaviour.text = listOf(["Two", "http://h/2"]);
    await lists.updateExternal(id);
    assertEquals([...(await items()).values()].map(({ title, enabled }) => [title, enabled]), [["One", false], [
      "Two",
      true,
    ]]);
    // An edit asks for the whole list again.
    await lists.editExternal(id, { category: "", name: "n", updateInterval: 0 });
    await lists.updateExternal(id);
    assertEquals(server.requests[server.requests.length - 1]!.headers["if-none-match"], undefined);
  });
});

test("an update by hand fetches the list from a server whose ETag never changes", async () => {
  await withLists(new FakeClock(), async ({ lists, items }) => {
    server.behaviour.text = listOf(["One", "http://h/1"]);
    server.behaviour.etag = '"constant"';
    const id = await add(lists);
    server.behaviour.text = listOf(["Two", "http://h/1"]);
    await lists.updateExternal(id);
    assertEquals([...(await items()).keys()], ["Two"]);
    server.behaviour.text = listOf(["Three", "http://h/1"]);
    await lists.tasks.ended(lists.updateAllExternal());
    assertEquals([...(await items()).keys()], ["Three"]);
  });
});

test("credentials do not follow a redirect to another origin", async () => {
  const other = await startListServer();
  try {
    await withLists(new FakeClock(), async ({ lists }) => {
      other.behaviour.text = listOf(["One", "http://h/1"]);
      server.behaviour.raw = (_request, response) =>
        void response.writeHead(302, { location: `${other.url}/list.m3u` }).end();
      await add(lists, { login: "me", password: "secret" });
      assertEquals(server.requests[0]!.headers.authorization, `Basic ${btoa("me:secret")}`);
      assertEquals(other.requests[0]!.headers.authorization, undefined);
    });
  } finally {
    await other.close();
  }
});

test("a private address is fetched only when the one who added it may name it", async () => {
  await withLists(new FakeClock(), async ({ lists }) => {
    const id = await lists.addExternal(added({ allowPrivate: false }), false);
    await fails(() => lists.updateExternal(id), /private network/);
    assertEquals(server.requests, []);
  });
});

test("passwords are encrypted at rest, never returned, never logged, and bound to their list", async () => {
  const directory = await temporaryDirectory();
  const stateDir = join(directory.path, "state");
  try {
    server.behaviour.credentials = "me:hunter2!";
    server.behaviour.text = listOf(["One", "http://h/1"]);
    await withLists(new FakeClock(), async ({ lists, store, logged }) => {
      const url = server.url.replace("://", "://me:hunter2%21@") + "/list.m3u";
      const id = await add(lists, { url });
      const [shown] = await lists.external.get(id);
      assertEquals([shown!.url, shown!.login, "password" in shown!], [`${server.url}/list.m3u`, "me", false]);
      const db = await store.open();
      const row = await db.selectFrom("external_playlists").selectAll().executeTakeFirstOrThrow();
      assertMatch(row.password, /^v1:[0-9a-f]{60,}$/);
      server.behaviour.status = 500;
      await fails(() => lists.updateExternal(id), /500/);
      assert(!JSON.stringify([row, logged, shown]).includes("hunter2"), JSON.stringify(logged));
      server.behaviour.status = null;
      // Editing with the returned values keeps the password; an empty login removes both.
      const edit = { category: "", name: "x", updateInterval: 0 };
      await lists.editExternal(id, { ...edit, login: "me", password: "" });
      await lists.updateExternal(id);
      await lists.editExternal(id, { ...edit, login: "" });
      await fails(() => lists.updateExternal(id), /401/);
      await lists.editExternal(id, { ...edit, login: "me", password: "hunter2!" });
      await lists.updateExternal(id);
      // Write access to the database is not enough to send the password elsewhere.
      await db.updateTable("external_playlists").set({ url: `${server.url}/evil.m3u` }).execute();
      await fails(() => lists.updateExternal(id), /sealed with another key/);
      await db.updateTable("external_playlists").set({ url: `${server.url}/list.m3u` }).execute();
    }, { stateDir });
    const key = join(stateDir, "secret-key");
    assertEquals((await stat(key)).mode & 0o777, 0o600);
    await withLists(new FakeClock(), ({ lists }) => lists.updateExternal(1), { stateDir });
    await writeFile(key, `${"0".repeat(64)}\n`);
    await withLists(new FakeClock(), async ({ lists }) => {
      await fails(() => lists.updateExternal(1), /enter it again/);
    }, { stateDir });
    assert(!(await readFile(join(stateDir, "t.db"))).includes("hunter2"));
  } finally {
    await directory.remove();
  }
});

test("a list of more than 64 MiB is read, packed for the way or not", async () => {
  const text = listOf(["One", "http://h/1"]) + `#${"x".repeat(100_000)}\n`.repeat(700) + "http://h/2\n";
  assert(text.length > 64 * 2 ** 20);
  for (const gzip of [false, true]) {
    await withLists(new FakeClock(), async ({ lists, items }) => {
      Object.assign(server.behaviour, { text, gzip });
      await add(lists);
      assertEquals([...(await items()).keys()], ["One", "2"]);
    });
  }
});
