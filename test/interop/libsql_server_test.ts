/** Several engines over one real libSQL server (`sqld`), as `--database-url` and `--database-token` have it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { EngineOptions } from "../../src/engine.ts";
import { MillraceError } from "../../src/errors.ts";
import { startListServer } from "../playlist/external-support.ts";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { run } from "../platform/support.ts";
import { start } from "../support/process.ts";
import { freePort } from "../support/tracker.ts";
import { until } from "../support/until.ts";

// deno-lint-ignore no-explicit-any -- the tests look into it
type Any = any;

const TOKEN = "0123456789abcdef".repeat(4);
let directory: { path: string; remove(): Promise<void> };
let server: Awaited<ReturnType<typeof startServer>>;
let databaseUrl: string;
let databaseToken: string;

const encode = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));
const urlSafe = (text: string) => text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** The server's key, and a token (RFC 7519, EdDSA) that it lets in. */
async function credentials(): Promise<{ key: string; token: string }> {
  const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]) as CryptoKeyPair;
  const text = (value: unknown) => urlSafe(encode(new TextEncoder().encode(JSON.stringify(value))));
  const signed = `${text({ alg: "EdDSA", typ: "JWT" })}.${text({ a: "rw" })}`;
  const signature = await crypto.subtle.sign("Ed25519", pair.privateKey, new TextEncoder().encode(signed));
  return {
    key: urlSafe(encode(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)))),
    token: `${signed}.${urlSafe(encode(new Uint8Array(signature)))}`,
  };
}

async function startServer(data: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const address = `127.0.0.1:${await freePort()}`;
  const url = `http://${address}`;
  const server = start("sqld", [
    ...["-d", data, "--http-listen-addr", address, "--no-welcome"],
    ...["--auth-jwt-key-file", join(directory.path, "key")],
  ], { cwd: directory.path });
  let ended = false;
  void server.exited.then(() => ended = true);
  await until("sqld answers", async () => {
    if (ended) throw new Error(`sqld ended or is not installed: ${server.output().slice(-500)}`);
    return await fetch(`${url}/health`).then(async (response) => (await response.text(), true), () => false);
  });
  return { url, stop: async () => void await server.stop() };
}

before(async () => {
  directory = await temporaryDirectory();
  const { key, token } = await credentials();
  databaseToken = token;
  await writeFile(join(directory.path, "key"), key);
  server = await startServer(join(directory.path, "data"));
  databaseUrl = server.url;
});
after(async () => {
  await server?.stop();
  await directory?.remove();
});

async function withEngines(
  count: number,
  body: (engines: readonly ServedEngine[]) => Promise<void>,
  options: EngineOptions = {},
): Promise<void> {
  // At once: each finds an empty database and wants to make the tables.
  const engines = await Promise.all(
    Array.from({ length: count }, () => serveEngine({ ...options, accessToken: TOKEN, databaseUrl, databaseToken })),
  );
  try {
    await body(engines);
  } finally {
    for (const engine of engines) await engine.close();
  }
}

async function call(
  engine: ServedEngine,
  method: string,
  params: Record<string, string> = {},
  body?: string,
): Promise<Any> {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  const init: RequestInit = body === undefined ? {} : { method: "POST", body };
  const { result, error } = await (await fetch(`${engine.url}/server/api?${query}`, init)).json();
  assertEquals(error, null, method);
  return result;
}

test("engines on one libSQL server see each other's items, searches, imports and settings", async () => {
  // The first test: the server is empty, and all three make the tables.
  await withEngines(3, async ([one, two, three]) => {
    await call(three!, "playlist_get");
    await call(one!, "playlist_add_item", { title: "Télé Une", video_url: "http://h/1" });
    assertEquals((await call(two!, "search", { query: "tele" })).results[0].name, "Télé Une");
    const list = Array.from({ length: 1500 }, (_, i) => `#EXTINF:-1,Channel ${i}\nhttp://h/c/${i}\n`).join("");
    const { task_id } = await call(two!, "playlist_import", {}, list);
    await until(
      "the import",
      async () => (await call(two!, "get_task", { task_id: String(task_id) })).state === "done",
    );
    const { total_items, playlist } = await call(one!, "playlist_get", { query: "channel 14" });
    // Each word anywhere: all numbers with 14 in them.
    assertEquals([total_items, playlist.length], [134, 134]);
    assertEquals((await call(one!, "playlist_get")).playlist.length, 1501);
    await call(two!, "playlist_clear", { owner: "" });
    assertEquals((await call(one!, "playlist_get")).total_items, 0);
  });
});

test("an external playlist on a libSQL server is refreshed by either engine", async () => {
  const source = await startListServer();
  try {
    await withEngines(2, async ([one, two]) => {
      source.behaviour.text = "#EXTM3U\n#EXTINF:-1,A\nhttp://h/a\n#EXTINF:-1,B\nhttp://h/b\n";
      const list = { type: "content", category: "", name: "n", url: `${source.url}/l`, update_interval: "3600" };
      const id = String(await call(one!, "external_playlist_add", { ...list, update_now: "0" }));
      await call(one!, "external_playlist_update", { id });
      const { playlist } = await call(two!, "playlist_get");
      assertEquals(playlist.map((item: { title: string }) => item.title), ["A", "B"]);
      await call(two!, "playlist_update_item", { id: String(playlist[0].id), title: "Mine" });
      source.behaviour.text = "#EXTM3U\n#EXTINF:-1,A2\nhttp://h/a\n#EXTINF:-1,C\nhttp://h/c\n";
      await call(two!, "external_playlist_update", { id });
      const items = (await call(one!, "playlist_get")).playlist;
      assertEquals(items.map((item: { title: string; enabled: boolean }) => [item.title, item.enabled]), [
        ["Mine", true],
        ["B", false],
        ["C", true],
      ]);
      await call(one!, "external_playlist_delete", { id });
      assertEquals((await call(two!, "playlist_get")).total_items, 0);
    });
  } finally {
    await source.close();
  }
});

test("engines on one libSQL server wait for each other's writes and lose none", async () => {
  await withEngines(2, async (engines) => {
    await Promise.all(engines.flatMap((engine, which) =>
      Array.from(
        { length: 30 },
        (_, i) => call(engine, "playlist_add_item", { title: `${which} ${i}`, video_url: `http://h/${which}/${i}` }),
      )
    ));
    const { playlist } = await call(engines[0]!, "playlist_get");
    assertEquals(new Set(playlist.map((item: { id: number }) => item.id)).size, 60);
  });
  await withEngines(1, async ([engine]) => {
    assertEquals((await call(engine!, "playlist_get")).total_items, 60, "kept on the server");
  });
});

test("an engine on a libSQL server lets in whom another engine of it allowed, and refuses them again", async () => {
  await withEngines(2, async ([one, two]) => {
    const fromAfar = async () => {
      const response = await fetch(`${two!.url}/server/api?method=get_settings&token=${TOKEN}`, {
        headers: { "x-forwarded-for": "203.0.113.9" },
      });
      await response.body?.cancel();
      return response.status;
    };
    assertEquals(await fromAfar(), 403);
    await call(one!, "set_allow_remote_access", { value: "1" });
    await until("two lets them in", async () => await fromAfar() === 200);
    await call(one!, "set_allow_remote_access", { value: "0" });
    await until("two refuses them", async () => await fromAfar() === 403);
  }, { trustProxy: ["127.0.0.1"] });
});

test("millrace backup and restore carry the data of a libSQL server into a file and back", async () => {
  const kept = join(directory.path, "kept");
  const flags = (
    state: string,
  ) => ["--state-dir", state, "--database-url", databaseUrl, "--database-token", databaseToken];
  const file = join(directory.path, "server.backup");
  let items: Any;
  await withEngines(1, async ([engine]) => {
    const list = Array.from({ length: 450 }, (_, i) => `#EXTINF:-1 group-title="a;b",C ${i}\nhttp://h/b/${i}\n`).join(
      "",
    );
    const { task_id } = await call(engine!, "playlist_import", {}, list);
    await until(
      "the import",
      async () => (await call(engine!, "get_task", { task_id: `${task_id}` })).state === "done",
    );
    items = await call(engine!, "playlist_get");
    assertEquals((await run(["backup", file, ...flags(kept)])).stderr, "");
    const refused = await run(["restore", file, ...flags(join(directory.path, "other"))]);
    assert(/the database holds data already/.test(refused.stderr), refused.stderr);
  });
  // Into a file, and from there into a second, empty server.
  const inFile = await run(["restore", file, "--state-dir", join(directory.path, "from-server")]);
  assertEquals(inFile.stderr, "");
  const second = await startServer(join(directory.path, "second"));
  try {
    const again = join(directory.path, "file.backup");
    assertEquals((await run(["backup", again, "--state-dir", join(directory.path, "from-server")])).stderr, "");
    const target = ["--state-dir", join(directory.path, "to-server"), "--database-url", second.url];
    assertEquals((await run(["restore", again, ...target, "--database-token", databaseToken])).stderr, "");
    const engine = await serveEngine({ accessToken: TOKEN, databaseUrl: second.url, databaseToken });
    try {
      assertEquals(await call(engine, "playlist_get"), items);
      assertEquals((await call(engine, "search", { query: "c 449" })).results[0].name, "C 449");
    } finally {
      await engine.close();
    }
  } finally {
    await second.stop();
  }
});

test("the start fails when a libSQL server refuses the token, and the server's own text is not repeated", async () => {
  const error = await assertRejects(
    () => serveEngine({ accessToken: TOKEN, databaseUrl, databaseToken: `${databaseToken}x` }),
    MillraceError,
  ) as MillraceError;
  assert(error.message.startsWith("--database-url: "), error.message);
  assert(!error.message.includes(databaseToken));
});
