import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { accessToken, loadAccessToken, randomToken } from "../../src/account/access-token.ts";
import { MillraceError } from "../../src/errors.ts";
import { METHODS } from "../../src/http/api/registry.ts";
import { ADDRESSES, type CalledEngine, TOKEN, withEngine } from "./support.ts";

/** Public and remote flags as section 4.4 gives them, by hand: an error in the registry must not hide. */
const FLAGS: Readonly<Record<string, readonly [isPublic: boolean, isRemote: boolean]>> = {
  get_api_access_token: [true, false],
  set_allow_remote_access: [false, false],
  set_allow_intranet_access: [false, false],
  get_status: [true, true],
  get_network_connection_status: [true, true],
  get_available_players: [true, true],
  get_media_files: [true, true],
  get_content_id: [true, true],
  analyze_content: [true, true],
  analyze_content_multi: [true, true],
  get_channel_icon: [true, true],
  parse_m3u_playlist: [true, true],
  playlist_add_item: [false, true],
  playlist_update_item: [false, true],
  playlist_delete_item: [false, true],
  playlist_delete_items: [false, true],
  playlist_restore_item: [false, true],
  playlist_trash_get: [false, true],
  playlist_trash_clear: [false, true],
  playlist_get: [false, true],
  playlist_clear: [false, true],
  playlist_item_set_favorite: [false, true],
  playlist_item_set_enabled: [false, true],
  playlist_items_set_enabled: [false, true],
  playlist_item_set_locked: [false, true],
  playlist_item_set_auto_search: [false, true],
};

test("the registry's flags are those of section 4.4", () => {
  const flags = Object.fromEntries(METHODS.map((method) => [method.name, [method.public, method.remote]]));
  assertEquals(flags, FLAGS as never);
});

test("every method × address × token × settings is let in or refused as sections 4.4 and 5 say", async () => {
  await withEngine(async ({ engine, call }) => {
    for (const [intranet, internet] of [[true, false], [false, false], [true, true], [false, true]] as const) {
      engine.access.setAllowed("intranet", intranet);
      engine.access.setAllowed("internet", internet);
      for (const [method, [isPublic, isRemote]] of Object.entries(FLAGS)) {
        for (const from of Object.keys(ADDRESSES) as (keyof typeof ADDRESSES)[]) {
          for (const token of [undefined, "f".repeat(64), TOKEN]) {
            const allowed = from === "loopback" || (isRemote && (from === "intranet" ? intranet : internet));
            // A bad value stops every method before it does anything; reading it comes after the access check.
            const { status, error } = await call(method, { ...BREAKING, ...(token === undefined ? {} : { token }) }, {
              from,
            });
            const where = `${method} ${from} ${token} ${intranet} ${internet}`;
            assertEquals(status, allowed ? 200 : 403, where);
            const denied = !allowed || (!isPublic && token !== TOKEN);
            assertEquals(error?.code === 4, denied, where);
          }
        }
      }
    }
  });
});

/** Values that no method takes where it has such a parameter. */
const BREAKING = { id: "x", value: "x", ids: "x", player_id: "" };

test("get_api_access_token refuses whatever a browser sends for another origin (B23)", async () => {
  await withEngine(async ({ call }) => {
    const table: [Record<string, string>, boolean][] = [
      [{}, true],
      [{ origin: "http://127.0.0.1:6878" }, true],
      [{ "sec-fetch-site": "same-origin" }, true],
      [{ origin: "http://127.0.0.1:6878", "sec-fetch-site": "same-origin" }, true],
      [{ origin: "http://127.0.0.1:9999" }, false],
      [{ origin: "http://localhost:6878" }, false],
      [{ origin: "https://evil.example" }, false],
      [{ origin: "null" }, false],
      [{ "sec-fetch-site": "cross-site" }, false],
      [{ "sec-fetch-site": "same-site" }, false],
      [{ "sec-fetch-site": "none" }, false],
    ];
    for (const [headers, served] of table) {
      const answer = await call("get_api_access_token", {}, { headers });
      assertEquals(answer.result?.token, served ? TOKEN : undefined, JSON.stringify(headers));
      if (!served) assertEquals(answer.error?.code, 4);
      assertEquals(answer.headers.get("access-control-allow-origin"), null);
    }
  });
});

test("pages of other origins read only what is marked so", async () => {
  await withEngine(async ({ call }) => {
    for (const { name, openToPages, public: isPublic } of METHODS) {
      const headers = { origin: "https://page.example" };
      const answer = await call(name, { ...BREAKING, token: TOKEN }, { headers });
      if (!isPublic) assertEquals(answer.error?.code, 4, name);
      const open = answer.headers.get("access-control-allow-origin");
      assertEquals(open, openToPages && answer.error === null ? "*" : null, name);
      assert(!openToPages || isPublic, name);
    }
  });
});

test("an AccessToken matches itself alone", () => {
  const token = accessToken(TOKEN);
  const table: [string, boolean][] = [
    [TOKEN, true],
    ["", false],
    [TOKEN.slice(0, 63), false],
    [`${TOKEN}0`, false],
    [TOKEN.replace(/.$/, "0"), false],
    [TOKEN.replace(/^./, "f"), false],
    [TOKEN.toUpperCase(), false],
  ];
  for (const [candidate, same] of table) assertEquals(token.matches(candidate), same, candidate);
  assertMatch(randomToken().value, /^[0-9a-f]{64}$/);
  assertNotEquals(randomToken().value, randomToken().value);
  assert(!assertThrows(() => accessToken("hunter2"), MillraceError).message.includes("hunter2"));
});

test("loadAccessToken() keeps the token for the owner's eyes and never replaces a damaged file", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-token-"));
  try {
    const { files } = await loadPorts();
    const made = await loadAccessToken(files, `${directory}/state`);
    const path = join(directory, "state", "access-token");
    assertEquals((await stat(path)).mode & 0o777, 0o600);
    assertEquals((await loadAccessToken(files, `${directory}/state`)).value, made.value);
    await writeFile(path, "damaged");
    const error = await assertRejects(() => loadAccessToken(files, `${directory}/state`), MillraceError);
    assertEquals((error as MillraceError).code, "corrupt");
    assertEquals(await readFile(path, "utf8"), "damaged");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("who is let in survives a restart, and takes effect at once", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-access-"));
  const status = async (call: CalledEngine["call"], from: "intranet" | "internet") =>
    (await call("get_network_connection_status", {}, { from })).status;
  try {
    await withEngine(async ({ call }) => {
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [200, 403]);
      const set = { token: TOKEN };
      assertEquals((await call("set_allow_intranet_access", { ...set, value: "0" })).result, "ok");
      assertEquals((await call("set_allow_remote_access", { ...set, value: "1" })).result, "ok");
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [403, 200]);
      assertEquals((await call("set_allow_remote_access", set)).error?.code, 2);
      assertEquals((await call("set_allow_remote_access", { ...set, value: "maybe" })).error?.code, 3);
    }, { stateDir: directory });
    await withEngine(async ({ call }) => {
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [403, 200]);
      await call("set_allow_intranet_access", { token: TOKEN, value: "1" });
      await call("set_allow_remote_access", { token: TOKEN, value: "0" });
    }, { stateDir: directory });
    await withEngine(async ({ call }) => {
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [200, 403]);
    }, { stateDir: directory });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("an engine without a state directory keeps settings for its run", async () => {
  await withEngine(async ({ call }) => {
    assertEquals((await call("set_allow_remote_access", { token: TOKEN, value: "True" })).result, "ok");
    assertEquals((await call("get_network_connection_status", {}, { from: "internet" })).status, 200);
  });
});

test("an engine does not start on a damaged database, and says which", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-access-"));
  try {
    await writeFile(join(directory, "millrace.db"), "no database ".repeat(100));
    const error = await assertRejects(() => withEngine(async () => {}, { stateDir: directory }), MillraceError);
    assertMatch((error as Error).message, /millrace\.db: the database is damaged/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
