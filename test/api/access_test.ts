import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertThrows } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { accessToken, loadAccessToken, randomToken, rotateAccessToken } from "../../src/account/access-token.ts";
import { MillraceError } from "../../src/errors.ts";
import type { Logger } from "../../src/ports.ts";
import { METHODS } from "../../src/http/api/registry.ts";
import { FROM } from "../support/caller.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { ADDRESSES, type ServedApi, TOKEN, withEngine, withServed } from "./support.ts";

/** Public and remote flags as section 4.4 gives them, by hand: an error in the registry must not hide. */
const FLAGS: Readonly<Record<string, readonly [isPublic: boolean, isRemote: boolean]>> = {
  get_api_access_token: [true, false],
  set_allow_remote_access: [false, false],
  set_allow_intranet_access: [false, false],
  get_status: [true, true],
  get_network_connection_status: [true, true],
  check_auth: [false, true],
  sign_in: [false, true],
  sign_out: [false, true],
  get_available_players: [true, true],
  open_in_player: [true, true],
  get_media_files: [true, true],
  get_content_id: [true, true],
  analyze_content: [true, true],
  analyze_content_multi: [true, true],
  analyze_deferred_playlist_items: [true, true],
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
  playlist_import: [false, true],
  external_playlist_add: [false, true],
  external_playlist_delete: [false, true],
  external_playlist_update: [false, true],
  external_playlist_edit: [false, true],
  external_playlist_get: [false, true],
  update_all_external_playlists: [false, true],
  // Our own that are not private and open to other machines.
  get_player_status: [true, true],
  control_player: [true, true],
  broadcast_start: [false, false],
  broadcast_stop: [false, false],
};

/** Flags that a method must have: those by hand. Our own methods are private, and say themselves whether they are remote. */
const flagsOf = ({ name, remote }: (typeof METHODS)[number]) => FLAGS[name] ?? [false, remote] as const;

test("the registry's flags are those of section 4.4, and a method of our own that is not listed by hand is private", () => {
  for (const method of METHODS) assertEquals([method.public, method.remote], [...flagsOf(method)], method.name);
  assertEquals(Object.keys(FLAGS).filter((name) => METHODS.every((method) => method.name !== name)), []);
});

/** Expected access, by hand from sections 4.4 and 5 and the address rule. S: served. T: HTTP 200 with code 4. A: HTTP 403 with code 4. */
const RULES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // The three letters: without a token, with a wrong one, with the right one.
  "public, remote": {
    "loopback": "S S S",
    "intranet, intranet allowed": "S S S",
    "intranet, intranet refused": "A A A",
    "internet, internet allowed": "S S S",
    "internet, internet refused": "A A A",
  },
  "private, remote": {
    "loopback": "T T S",
    "intranet, intranet allowed": "T T S",
    "intranet, intranet refused": "A A A",
    "internet, internet allowed": "T T S",
    "internet, internet refused": "A A A",
  },
  "public, not remote": {
    "loopback": "S S S",
    "intranet, intranet allowed": "A A A",
    "intranet, intranet refused": "A A A",
    "internet, internet allowed": "A A A",
    "internet, internet refused": "A A A",
  },
  "private, not remote": {
    "loopback": "T T S",
    "intranet, intranet allowed": "A A A",
    "intranet, intranet refused": "A A A",
    "internet, internet allowed": "A A A",
    "internet, internet refused": "A A A",
  },
};
/** Engine settings as [intranet, internet]: all four combinations, so that neither setting can be mistaken for the other. */
const SETTINGS = [[true, false], [false, false], [true, true], [false, true]] as const;
const TOKENS = [undefined, "f".repeat(64), TOKEN];

test("every method × address × token × settings is let in or refused as sections 4.4 and 5 say, over HTTP", async () => {
  await withServed(async ({ url, engine }) => {
    for (const [intranet, internet] of SETTINGS) {
      engine.access.setAllowed("intranet", intranet);
      engine.access.setAllowed("internet", internet);
      for (const [from, host] of Object.entries(ADDRESSES)) {
        const setting = from === "intranet" ? intranet : internet;
        const row = from === "loopback" ? from : `${from}, ${from} ${setting ? "allowed" : "refused"}`;
        for (const one of METHODS) {
          const { name: method } = one;
          const [isPublic, isRemote] = flagsOf(one);
          const rule = RULES[`${isPublic ? "public" : "private"}, ${isRemote ? "remote" : "not remote"}`]![row]!;
          const got = await Promise.all(TOKENS.map(async (token) => {
            // A bad value stops every method before it does anything; reading it comes after the access check.
            const query = new URLSearchParams({ method, ...BREAKING, ...(token === undefined ? {} : { token }) });
            const response = await fetch(`${url}/server/api?${query}`, { headers: { [FROM]: host } });
            const { error } = await response.json();
            return response.status === 403 && error?.code === 4 ? "A" : error?.code === 4 ? "T" : "S";
          }));
          assertEquals(got.join(" "), rule, `${method}: ${row}`);
        }
      }
    }
  });
});

test("everything else obeys the same address rule", async () => {
  await withServed(async ({ url, engine }) => {
    const paths = [
      "/engine/getstream?infohash=x",
      "/engine/manifest.m3u8?infohash=x",
      "/engine/getfile?infohash=x",
      `/engine/m/${"0".repeat(40)}/${"0".repeat(32)}.m3u8`,
      `/engine/r/${"0".repeat(40)}/${"0".repeat(32)}`,
      `/engine/c/${"0".repeat(40)}/0.ts`,
      `/engine/stat/${"0".repeat(40)}/${"0".repeat(32)}`,
      `/engine/cmd/${"0".repeat(40)}/${"0".repeat(32)}?method=stop`,
      `/engine/event/${"0".repeat(40)}/${"0".repeat(32)}`,
      "/webui/api/service?method=get_version",
      "/engine/playlist.m3u",
      "/search?query=x",
      "/openapi.json",
      "/.well-known/jwks.json",
      "/nothing",
    ];
    for (const [intranet, internet] of SETTINGS) {
      engine.access.setAllowed("intranet", intranet);
      engine.access.setAllowed("internet", internet);
      for (const path of paths) {
        const statuses = await Promise.all(
          Object.values(ADDRESSES).map(async (host) => {
            const response = await fetch(url + path, { headers: { [FROM]: host } });
            // The list of the playlist is refused with 403, too, but because the key is missing.
            return response.status === 403 && /access from this address/.test(await response.text());
          }),
        );
        assertEquals(statuses, [false, !intranet, !internet], path);
      }
    }
  });
});

/** Values that no method takes where it has such a parameter. */
const BREAKING = { id: "x", value: "x", ids: "x", player_id: "" };

test("get_api_access_token refuses every request that a browser sends for another origin", async () => {
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

/**
 * Pages may look for an engine: these methods report its version and whether it is online, nothing about its user. All other
 * public methods would let a page read the user's network or files (URLs are fetched from here), or list the devices in the room.
 */
const OPEN_TO_PAGES = ["get_status", "get_network_connection_status"];

test("pages of other origins can read only methods that are marked for it", async () => {
  await withEngine(async ({ call }) => {
    for (const [name, [isPublic]] of Object.entries(FLAGS)) {
      for (const origin of ["https://page.example", "null", "http://localhost:6878", "https://127.0.0.1:6878"]) {
        const answer = await call(name, { ...BREAKING, token: TOKEN }, { headers: { origin } });
        if (!isPublic) assertEquals(answer.error?.code, 4, name);
        const open = answer.headers.get("access-control-allow-origin");
        assertEquals(open, OPEN_TO_PAGES.includes(name) ? "*" : null, `${name} ${origin}`);
        assertEquals(answer.headers.get("access-control-allow-credentials"), null);
        if (open === null) assertEquals(answer.headers.get("cross-origin-resource-policy"), "same-origin", name);
      }
    }
  });
});

test("an AccessToken matches only itself", () => {
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

test("loadAccessToken() keeps the token for the owner's eyes, and sets a damaged file aside", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-token-"));
  try {
    const logged: unknown[] = [];
    const log: Logger = { log: (level, _message, fields) => void logged.push([level, fields?.kept]), child: () => log };
    const ports = { ...await loadPorts(), log };
    const load = () => loadAccessToken(ports, `${directory}/state`);
    const made = await load();
    const path = join(directory, "state", "access-token");
    assertEquals((await stat(path)).mode & 0o777, 0o600);
    assertEquals((await load()).value, made.value);
    const damages = [
      () => writeFile(path, "damaged"),
      () => writeFile(path, ""),
      () => writeFile(path, made.value.slice(0, 20)),
      () => writeFile(path, new Uint8Array(5000).fill(0xa5)),
      () => rm(path).then(() => mkdir(path)),
    ];
    for (const [i, damage] of damages.entries()) {
      const running = await load();
      await damage();
      const next = i % 2 === 0 ? await load() : (await running.refresh(), running);
      assertMatch(next.value, /^[0-9a-f]{64}$/);
      assertNotEquals(next.value, made.value);
      assertEquals((await load()).value, next.value);
      assertEquals((await readdir(join(directory, "state"))).length, i + 2, "the damaged one is kept");
      assertMatch(String(logged[i]), /^error,.*access-token\.damaged-/);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("an AccessToken adopts a token written to its file, and makes one for all processes when the file is gone", async () => {
  const { path: directory, remove } = await temporaryDirectory();
  try {
    const ports = await loadPorts();
    const { files } = ports;
    const token = await loadAccessToken(ports, directory);
    const first = token.value;
    const rotated = await rotateAccessToken(files, directory);
    assertEquals([token.matches(first), token.matches(rotated.value)], [true, false]);
    await token.refresh();
    assertEquals([token.matches(first), token.matches(rotated.value)], [false, true]);
    await rm(join(directory, "access-token"));
    await Promise.all(Array.from({ length: 20 }, () => token.refresh()));
    const kept = (await readFile(join(directory, "access-token"), "utf8")).trim();
    assertNotEquals(kept, rotated.value);
    assertEquals(token.value, kept);
    const fixed = accessToken(TOKEN);
    await fixed.refresh();
    assertEquals(fixed.value, TOKEN);
  } finally {
    await remove();
  }
});

test("access settings changed over HTTP take effect at once and survive a restart", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-access-"));
  const status = async (call: ServedApi["call"], from: "intranet" | "internet") =>
    (await call("get_network_connection_status", {}, { from })).status;
  try {
    await withServed(async ({ call }) => {
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [200, 403]);
      const set = { token: TOKEN };
      assertEquals((await call("set_allow_intranet_access", { ...set, value: "0" })).result, "ok");
      assertEquals((await call("set_allow_remote_access", { ...set, value: "1" })).result, "ok");
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [403, 200]);
      assertEquals((await call("set_allow_remote_access", set)).error?.code, 2);
      assertEquals((await call("set_allow_remote_access", { ...set, value: "maybe" })).error?.code, 3);
    }, { stateDir: directory });
    await withServed(async ({ call }) => {
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [403, 200]);
      await call("set_allow_intranet_access", { token: TOKEN, value: "1" });
      await call("set_allow_remote_access", { token: TOKEN, value: "0" });
    }, { stateDir: directory });
    await withServed(async ({ call }) => {
      assertEquals([await status(call, "intranet"), await status(call, "internet")], [200, 403]);
    }, { stateDir: directory });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("an engine without a state directory keeps settings for its run", async () => {
  await withServed(async ({ call }) => {
    assertEquals((await call("set_allow_remote_access", { token: TOKEN, value: "True" })).result, "ok");
    assertEquals((await call("get_network_connection_status", {}, { from: "internet" })).status, 200);
  });
});

test("an engine whose database was damaged lets no other machine in until the user allows it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-access-"));
  const status = async (call: ServedApi["call"]) =>
    (await call("get_network_connection_status", {}, { from: "intranet" })).status;
  try {
    await writeFile(join(directory, "millrace.db"), "no database ".repeat(100));
    for (let starts = 0; starts < 2; starts++) {
      await withServed(async ({ call }) => assertEquals(await status(call), 403), { stateDir: directory });
    }
    await withServed(async ({ call }) => {
      assertEquals((await call("set_allow_intranet_access", { token: TOKEN, value: "1" })).result, "ok");
      assertEquals(await status(call), 200);
    }, { stateDir: directory });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a refusal says what a reverse proxy has to send", async () => {
  const message = async (trustProxy: string[], headers: Record<string, string>) => {
    let text = "";
    await withEngine(async ({ call }) => {
      const { status, error } = await call("get_status", { token: TOKEN }, { from: "intranet", headers });
      assertEquals(status, 403);
      text = error!.message;
    }, { trustProxy });
    return text;
  };
  assertMatch(await message([], { "x-forwarded-for": "8.8.8.8" }), /see --trust-proxy/);
  assertMatch(await message([ADDRESSES.intranet], { via: "1.1 proxy" }), /have it send X-Forwarded-For/);
  assertMatch(await message([ADDRESSES.intranet], {}), /trusted proxy, but has none of X-Forwarded-For/);
});
