/** The tuner's front, asked as Jellyfin and Plex ask. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Engine } from "../../src/engine.ts";
import { until } from "../support/until.ts";
import { seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { ADDRESSES, TOKEN, withEngine } from "./support.ts";

const FRONT = { fronts: ["hdhomerun"] } as const;
const PATHS = ["/discover.json", "/lineup.json", "/lineup_status.json", "/device.xml", "/auto/v1"];

type Fetch = (
  path: string,
  from?: keyof typeof ADDRESSES,
  headers?: Record<string, string>,
  method?: string,
) => Promise<Response>;

const fetcher = (engine: Pick<Engine, "fetch">): Fetch => (path, from, headers = {}, method = "GET") =>
  engine.fetch(new Request(`http://192.168.7.5:6878${path}`, { headers, method }), {
    remote: { host: ADDRESSES[from ?? "intranet"], port: 1 },
  });

/** libhdhomerun's own check, bit by bit. */
function isValidId(id: number): boolean {
  const table = [0xa, 0x5, 0xf, 0x6, 0x7, 0xc, 0x1, 0xb, 0x9, 0x2, 0x8, 0xd, 0x4, 0x3, 0xe, 0x0];
  const nibble = (shift: number) => (id >>> shift) & 0x0f;
  return (table[nibble(28)]! ^ nibble(24) ^ table[nibble(20)]! ^ nibble(16) ^ table[nibble(12)]! ^ nibble(8) ^
    table[nibble(4)]! ^ nibble(0)) === 0;
}

test("--front hdhomerun describes a tuner that stays the same, and a lineup of the library's channels", async () => {
  await withEngine(async ({ engine, call }) => {
    const get = fetcher(engine);
    const found = await (await get("/discover.json")).json();
    assertEquals([found.BaseURL, found.LineupURL], ["http://192.168.7.5:6878", "http://192.168.7.5:6878/lineup.json"]);
    assertMatch(found.DeviceID, /^[0-9A-F]{8}$/);
    assert(isValidId(Number.parseInt(found.DeviceID, 16)), found.DeviceID);
    assert(found.TunerCount > 0);
    assertEquals((await (await get("/discover.json")).json()).DeviceID, found.DeviceID);
    assertEquals(await (await get("/lineup.json")).json(), []);
    const { ScanInProgress, ScanPossible } = await (await get("/lineup_status.json")).json();
    assertEquals([ScanInProgress, ScanPossible], [0, 1]);
    const scan = await engine.fetch(new Request("http://192.168.7.5:6878/lineup.post?scan=start", { method: "POST" }), {
      remote: { host: ADDRESSES.intranet, port: 1 },
    });
    assertEquals(scan.status, 200);

    const token = { token: TOKEN };
    await call("playlist_add_item", { ...token, title: "News <1>", infohash: "1".repeat(40), is_live: "1" });
    await call("playlist_add_item", { ...token, title: "Film", infohash: "2".repeat(40), is_live: "0" });
    assertEquals(await (await get("/lineup.json")).json(), [
      { GuideNumber: "1", GuideName: "News <1>", URL: "http://192.168.7.5:6878/auto/v1" },
    ]);
    const xml = await (await get("/device.xml")).text();
    assertMatch(xml, /<URLBase>http:\/\/192\.168\.7\.5:6878<\/URLBase>/);
    assert(xml.includes(`<serialNumber>${found.DeviceID}</serialNumber>`));
    assertEquals((await get("/auto/v99")).status, 404);
    assertEquals((await get("/auto/x1")).status, 404);
  }, FRONT);
});

test("the tuner is not there unless asked for, and then for the local network and no page of another origin", async () => {
  await withEngine(async ({ engine }) => {
    for (const path of PATHS) assertEquals((await fetcher(engine)(path)).status, 404, path);
  });
  await withEngine(async ({ engine, call }) => {
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    const get = fetcher(engine);
    for (const path of PATHS) {
      assertEquals((await get(path, "internet")).status, 403, path);
      assertEquals((await get(path, "intranet", { origin: "https://page.example" })).status, 403, path);
      assertEquals((await get(path, "loopback", { "sec-fetch-site": "cross-site" })).status, 403, path);
      assertEquals((await get(path, "intranet", { host: "rebound.example" })).status, 421, path);
    }
  }, FRONT);
});

test("/auto/v<n> sends MPEG TS in the response itself", async () => {
  const seeder = await seedFiles([{ path: "clip.ts", bytes: clip("ts-188.ts") }]);
  try {
    await withEngine(async ({ engine, call }) => {
      const file = new FormData();
      file.set("file", new File([`#EXTM3U\n#EXTINF:-1 tvg-chno="5.1",One\n${seeder.magnet}\n`], "list.m3u"));
      const query = new URLSearchParams({ method: "playlist_import", token: TOKEN });
      const imported = await engine.fetch(
        new Request(`http://127.0.0.1:6878/server/api?${query}`, { method: "POST", body: file }),
      );
      const { result } = await imported.json();
      await until("the list is imported", async () => {
        const { state } = (await call("get_task", { token: TOKEN, task_id: String(result.task_id) })).result;
        assert(state !== "failed");
        return state === "done";
      });
      const get = fetcher(engine);
      const [{ URL: url }] = await (await get("/lineup.json")).json();
      assertEquals(url, "http://192.168.7.5:6878/auto/v5.1");
      const head = await get("/auto/v5.1", "intranet", {}, "HEAD");
      assertEquals([head.status, head.headers.get("content-type"), await head.text()], [200, "video/mp2t", ""]);
      assertEquals((await call("get_settings", { token: TOKEN })).result.sessions, 0);
      const response = await get("/auto/v5.1");
      assertEquals([response.status, response.headers.get("content-type")], [200, "video/mp2t"]);
      const ts = new Uint8Array(await response.arrayBuffer());
      assertEquals(ts.length % 188, 0);
      assert(ts.length > clip("ts-188.ts").length * 0.9 && ts[0] === 0x47, `${ts.length} bytes`);
    }, FRONT);
  } finally {
    await seeder.close();
  }
});

test("HEAD on /auto/v<n> says what GET would of a channel that does not start", async () => {
  await withEngine(async ({ engine, call }) => {
    const item = { token: TOKEN, title: "Dead", infohash: "1".repeat(40), is_live: "1" };
    const { result: id } = await call("playlist_add_item", item);
    const get = fetcher(engine);
    const answers = ["GET", "HEAD"].map(async (method) => {
      const { status, headers } = await get(`/auto/v${id}`, "intranet", {}, method);
      return [status, headers.get("content-type")];
    });
    assertEquals(await Promise.all(answers), Array(2).fill([504, "text/plain; charset=utf-8"]));
  }, { ...FRONT, startTimeoutMs: 500 });
});
