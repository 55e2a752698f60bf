import { chmod, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { EndlessClip } from "../playback/live-support.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { serveWeb } from "../support/web.ts";
import { TOKEN, withEngine } from "./support.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";

test("open_in_player answers code 5 for a player that is not in reach, over HTTP", async () => {
  const served = await serveEngine();
  try {
    const call = async (query: string) => {
      const response = await fetch(`${served.url}/server/api?method=open_in_player&${query}`);
      const { result, error } = await response.json();
      assertEquals([response.status, result], [200, undefined], query);
      return error;
    };
    const table: [string, number, RegExp][] = [
      [`player_id=tv&infohash=${ID}`, 5, /player_id.*get_available_players/],
      [`player_id=tv&content_id=${ID}`, 5, /player_id/],
      [`player_id=tv&url=http://example.org/x.torrent`, 5, /player_id/],
      [`infohash=${ID}`, 2, /player_id/],
      [`player_id=&infohash=${ID}`, 3, /player_id/],
      ["player_id=tv", 2, /selector/],
      ["player_id=tv&infohash=xyz", 3, /infohash/],
      ["player_id=tv&content_id=xyz", 3, /content_id/],
    ];
    for (const [query, code, says] of table) {
      const error = await call(query);
      assertEquals(error.code, code, `${query}: ${error.message}`);
      assertMatch(error.message, says);
    }
  } finally {
    await served.close();
  }
});

test("methods of players need no token, yet no page of another origin starts or steers a player with them", async () => {
  await withEngine(async ({ call }) => {
    const calls = [
      ["open_in_player", { player_id: "tv", infohash: ID }],
      ["get_player_status", { player_id: "tv" }],
      ["control_player", { player_id: "tv", command: "stop" }],
    ] as const;
    // A request from a page whose browser does not say which page it is, as for a picture at an address of the local network.
    const untold = { "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0" };
    for (const [method, params] of calls) {
      assertEquals((await call(method, params)).error?.code, 5, method);
      for (const headers of [{ origin: "https://page.example" }, { "sec-fetch-site": "cross-site" }, untold]) {
        assertEquals((await call(method, params, { headers })).error?.code, 4, `${method} ${JSON.stringify(headers)}`);
      }
      for (const headers of [{ origin: "http://127.0.0.1:6878", ...untold }, { "sec-fetch-site": "same-origin" }]) {
        assertEquals((await call(method, params, { headers })).error?.code, 5, `${method} ${JSON.stringify(headers)}`);
      }
    }
  });
});

test("a program of the engine's machine is listed for callers there, and refused to others", async () => {
  await withEngine(async ({ call }) => {
    const listed = async (from: "loopback" | "intranet", headers = {}) => {
      const { result } = await call("get_available_players", {}, { from, headers });
      return result.players.map(({ id }: { id: string }) => id);
    };
    assertEquals(await listed("loopback"), ["program:mpv"]);
    assertEquals(await listed("intranet"), []);
    assertEquals(await listed("loopback", { origin: "https://tv.example" }), [], "a page that may use public methods");
    const open = await call("open_in_player", { player_id: "program:mpv", infohash: ID }, { from: "intranet" });
    assertEquals(open.error?.code, 4);
    assertMatch(open.error!.message, /engine's own machine/);
    assertEquals((await call("get_player_status", { player_id: "program:mpv" })).result, {
      state: "idle",
      position: null,
      duration: null,
      volume: null,
    });
    assertEquals((await call("control_player", { player_id: "program:mpv", command: "pause" })).error?.code, 8);
    assertEquals((await call("control_player", { player_id: "program:mpv", command: "seek" })).error?.code, 2);
    assertEquals((await call("control_player", { player_id: "program:mpv", command: "eject" })).error?.code, 3);
    assertEquals((await call("control_player", { player_id: "program:mpv", command: "volume" })).error?.code, 2);
    const loud = { player_id: "program:mpv", command: "volume", volume: "101" };
    assertEquals((await call("control_player", loud)).error?.code, 3);
  }, { playerPrograms: ["mpv"], allowOrigins: ["https://tv.example"] });
});

test("open_in_player plays items and addresses that come by HTTP, elsewhere for those with the token alone", async () => {
  await withEngine(async ({ call }) => {
    const fields = { token: TOKEN, title: "News", video_url: "http://a.example/live", is_live: "1" };
    const item = String((await call("playlist_add_item", fields)).result);
    for (const named of [{ item }, { direct_url: "http://a.example/live" }] as Record<string, string>[]) {
      const params = { player_id: "tv", ...named };
      const code = async (more: Record<string, string>, from: "loopback" | "intranet") =>
        (await call("open_in_player", { ...params, ...more }, { from })).error?.code;
      // 5: it got as far as the player, which there is none of.
      assertEquals([await code({}, "loopback"), await code({}, "intranet")], [5, 4]);
      assertEquals([await code({ token: TOKEN }, "intranet"), await code({ token: "0".repeat(64) }, "intranet")], [
        5,
        4,
      ]);
    }
    const missing = await call("open_in_player", { player_id: "tv", item: "99" });
    assertMatch(missing.error!.message, /nothing by that number/);
  });
});

test("open_in_player gives a player the stream of an item that comes by HTTP, from the next address where one fails", async () => {
  const { path, remove } = await temporaryDirectory();
  const web = await serveWeb((request, response) => {
    if (request.url !== "/live") return void response.writeHead(404).end();
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(3000));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  // It notes that it was started, and ends.
  const program = `${path}/mpv`;
  await writeFile(program, `#!/bin/sh\necho started >> '${path}/log'\n`);
  await chmod(program, 0o755);
  const served = await serveEngine({ accessToken: TOKEN, playerPrograms: [program] });
  try {
    const call = async (method: string, params: Record<string, string>) =>
      await (await fetch(`${served.url}/server/api?${new URLSearchParams({ method, token: TOKEN, ...params })}`))
        .json();
    const fields = { title: "News", is_live: "1" };
    const { result: item } = await call("playlist_add_item", { ...fields, video_url: `${web.base}/gone` });
    await call("playlist_add_item", { ...fields, title: "News HD", video_url: `${web.base}/live` });
    const { error } = await call("open_in_player", { player_id: "program:mpv", item: String(item) });
    // The stream was there, so that the program was started, which then ended.
    assertMatch(error.message, /mpv did not start: it ended at once/);
    assertEquals(await readFile(`${path}/log`, "utf8"), "started\n");
    assertEquals(web.asked.map(({ url }) => url), ["/gone", "/live"]);
  } finally {
    await served.close();
    await web.close();
    await remove();
  }
});
