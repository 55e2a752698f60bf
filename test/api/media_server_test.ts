/** Access to the media server: who gets in, what is refused, and what a control point receives. test/interop has a real one. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Engine } from "../../src/engine.ts";
import { elementsOf, readXml, textIn } from "../../src/upnp/xml.ts";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { seedFiles } from "../support/engine.ts";
import { serveWeb } from "../support/web.ts";
import { clip } from "../support/fixtures.ts";
import { ADDRESSES, TOKEN, withEngine } from "./support.ts";

const FRONT = { fronts: ["dlna"] } as const;
const CONTROL = "/dlna/control/content-directory";
const PATHS = ["/dlna/device.xml", "/dlna/content-directory.xml", "/dlna/connection-manager.xml", "/dlna/media/i1.ts"];

interface Asked {
  readonly from?: keyof typeof ADDRESSES;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly method?: string;
}

const asker =
  (engine: Pick<Engine, "fetch">) => (path: string, { from = "intranet", headers = {}, body, method }: Asked = {}) =>
    engine.fetch(
      new Request(`http://192.168.7.5:6878${path}`, {
        headers,
        method: method ?? (body === undefined ? "GET" : "POST"),
        ...(body !== undefined && { body }),
      }),
      { remote: { host: ADDRESSES[from], port: 1 } },
    );

function action(name: string, args: Record<string, string>): string {
  const values = Object.entries(args).map(([arg, value]) => `<${arg}>${value}</${arg}>`).join("");
  return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><u:${name} xmlns:u="urn:x">${values}</u:${name}></s:Body></s:Envelope>`;
}
const browse = (id: string, more: Record<string, string> = {}) =>
  action("Browse", {
    ObjectID: id,
    BrowseFlag: "BrowseDirectChildren",
    StartingIndex: "0",
    RequestedCount: "0",
    ...more,
  });

test("the media server is not there unless asked for, and then for the local network and no page of another origin", async () => {
  await withEngine(async ({ engine }) => {
    for (const path of PATHS) assertEquals((await asker(engine)(path)).status, 404, path);
    assertEquals((await asker(engine)(CONTROL, { body: browse("0") })).status, 404);
  });
  await withEngine(async ({ engine, call }) => {
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    const ask = asker(engine);
    const all: [string, Asked][] = [...PATHS.map((path): [string, Asked] => [path, {}]), [CONTROL, {
      body: browse("0"),
    }]];
    for (const [path, asked] of all) {
      const status = async (more: Asked) => (await ask(path, { ...asked, ...more })).status;
      assertEquals(await status({ from: "internet" }), 403, path);
      assertEquals(await status({ headers: { origin: "https://page.example" } }), 403, path);
      assertEquals(await status({ from: "loopback", headers: { "sec-fetch-site": "cross-site" } }), 403, path);
      assertEquals(await status({ headers: { host: "rebound.example" } }), 421, path);
      assertEquals(await status({}), path === PATHS.at(-1) ? 404 : 200, path);
    }
  }, FRONT);
});

test("the media server refuses malformed calls with UPnP's error numbers, and calls that are too large", async () => {
  await withEngine(async ({ engine }) => {
    const ask = asker(engine);
    const table: [string, string][] = [
      ["no XML", "401"],
      [action("Nothing", {}), "401"],
      [action("toString", {}), "401"],
      [action("DestroyObject", { ObjectID: "0" }), "401"],
      [action("Browse", { ObjectID: "0" }), "402"],
      [browse("0", { StartingIndex: "-1" }), "402"],
      [browse("0", { RequestedCount: "99999999999" }), "402"],
      [browse("nothing"), "701"],
      [browse("all/i1"), "701"],
      [browse(`now/${"0".repeat(40)}`), "710"],
      [action("Search", { ContainerID: "now", SearchCriteria: "*" }), "710"],
      [action("Search", { ContainerID: "0", SearchCriteria: "(" }), "708"],
    ];
    for (const [body, code] of table) {
      const response = await ask(CONTROL, { body });
      assertEquals([response.status, textIn(readXml(await response.text()), "errorCode")], [500, code], body);
    }
    assertEquals((await ask(CONTROL, { body: browse("x".repeat(20_000)) })).status, 413);
  }, FRONT);
});

test("the media server hears one machine 200 times at once, and others go on", async () => {
  await withEngine(async ({ engine }) => {
    const status = async (from: Asked["from"]) =>
      (await asker(engine)(CONTROL, { body: browse("now"), from: from! })).status;
    const all: number[] = [];
    // The allowance grows by 20 a second, so a slow machine needs more.
    for (let n = 0; n < 2000 && !all.includes(503); n++) all.push(await status("intranet"));
    assert(all.length > 200 && all.at(-1) === 503, `${all.length}`);
    assertEquals(await status("loopback"), 200);
  }, FRONT);
});

test("lists come in pages of at most 200, even if more is asked for", async () => {
  await withEngine(async ({ engine, call }) => {
    const titles = Array.from({ length: 250 }, (_, n) => `Film ${n}`);
    for (const [n, title] of titles.entries()) {
      await call("playlist_add_item", {
        token: TOKEN,
        title,
        infohash: String(n).padStart(40, "0"),
        category: `C${n % 3}`,
      });
    }
    const page = async (id: string, StartingIndex: number, RequestedCount: number) => {
      const body = browse(id, { StartingIndex: String(StartingIndex), RequestedCount: String(RequestedCount) });
      const root = readXml(await (await asker(engine)(CONTROL, { body })).text());
      const found = readXml(textIn(root, "Result"));
      assertEquals(Number(textIn(root, "NumberReturned")), found.children.length);
      return [Number(textIn(root, "TotalMatches")), [...elementsOf(found, "title")].map(({ text }) => text)] as const;
    };
    assertEquals(await page("all", 0, 0), [250, titles.slice(0, 200)]);
    assertEquals(await page("all", 0, 4_000_000_000), [250, titles.slice(0, 200)]);
    assertEquals(await page("all", 200, 0), [250, titles.slice(200)]);
    assertEquals(await page("all", 249, 5), [250, titles.slice(249)]);
    assertEquals(await page("all", 4_000_000_000, 5), [250, []]);
    assertEquals(await page("0", 1, 3), [6, ["All", "Favourites", "C0"]]);
    assertEquals(await page("0", 4, 3), [6, ["C1", "C2"]]);
    assertEquals((await page("c:C1", 0, 2))[1], ["Film 1", "Film 4"]);
  }, FRONT);
});

test("playback answers getcontentFeatures.dlna.org and sends ranges of times; others hear nothing of it", async () => {
  const seeder = await seedFiles([{ path: "clip.mp4", bytes: clip("mp4-audio-delay.mp4") }]);
  try {
    await withEngine(async ({ engine, call }) => {
      await call("analyze_content", { query: seeder.magnet });
      const { origin } = new URL("http://192.168.7.5:6878");
      const start = await asker(engine)(`/engine/getstream?magnet=${encodeURIComponent(seeder.magnet)}`);
      const path = start.headers.get("location")!.slice(origin.length);
      const get = (headers: Record<string, string>) => asker(engine)(path, { headers, method: "HEAD" });
      const wanted = { "getcontentFeatures.dlna.org": "1", "transferMode.dlna.org": "Streaming" };
      const told = await get(wanted);
      assertMatch(
        told.headers.get("contentFeatures.dlna.org") ?? "",
        /^DLNA\.ORG_OP=11;DLNA\.ORG_CI=0;DLNA\.ORG_FLAGS=017/,
      );
      assertEquals(told.headers.get("transferMode.dlna.org"), "Streaming");
      const other = await get({});
      assert(![...other.headers.keys()].some((name) => name.includes("dlna")));
      const times = (range: string) => asker(engine)(path, { headers: { "TimeSeekRange.dlna.org": range } });
      const whole = new Uint8Array(await (await asker(engine)(path)).arrayBuffer());
      const part = await times("npt=6-");
      const [, from, end, first] = /^npt=(\S+)-(\S+)\/\2 bytes=(\d+)-/.exec(
        part.headers.get("TimeSeekRange.dlna.org")!,
      )!;
      assert(Number(from) > 0 && Number(from) <= 6 && Number(end) > 6, `${from} to ${end} s`);
      assertEquals(part.status, 206);
      assertEquals(part.headers.get("content-range"), `bytes ${first}-${whole.length - 1}/${whole.length}`);
      assertEquals(new Uint8Array(await part.arrayBuffer()), whole.slice(Number(first)));
      const beginning = await times("npt=0:00:00.000-0:00:01.5");
      const [, untilS, last] = /^npt=0\.000-([\d.]+)\/\S+ bytes=0-(\d+)\//.exec(
        beginning.headers.get("TimeSeekRange.dlna.org")!,
      )!;
      assert(Number(untilS) >= 1.5 && Number(untilS) < 6, `until ${untilS} s`);
      assertEquals(new Uint8Array(await beginning.arrayBuffer()), whole.slice(0, Number(last) + 1));
      assertEquals([(await times("npt=3600-")).status, (await times("npt=2-1")).status], [406, 406]);
      assertEquals([(await times("npt=x-")).status, (await times("bytes=0-")).status], [400, 400]);
      for (const whole of ["npt=0-", "npt=0.000-", "npt=00:00:00.000-"]) {
        assertEquals((await get({ "TimeSeekRange.dlna.org": whole })).status, 200, whole);
      }
    });
  } finally {
    await seeder.close();
  }
});

test("Browse shows what is on in the titles of channels", async () => {
  const nowS = Math.floor(Date.now() / 1000);
  const web = await serveWeb((_request, response) => {
    const times = `start="${writeXmltvTime(nowS - 600)}" stop="${writeXmltvTime(nowS + 600)}"`;
    response.end(`<tv><programme ${times} channel="a"><title>Ships &amp; tides</title></programme></tv>`);
  });
  try {
    await withEngine(async ({ engine, call: post }) => {
      const call = async (method: string, params: Record<string, string>) =>
        (await post(method, { token: TOKEN, ...params })).result;
      const item = await call("playlist_add_item", { title: "Harbour", infohash: "1".repeat(40), is_live: "1" });
      await call("playlist_update_item", { id: String(item), tvg_id: "a" });
      await call("playlist_add_item", { title: "Plain", infohash: "2".repeat(40), is_live: "1" });
      const source = { url: `${web.base}/guide.xml`, update_now: "0", update_interval: "0" };
      assertEquals(await call("epg_source_update", { id: String(await call("epg_source_add", source)) }), "ok");
      const answer = await (await asker(engine)(CONTROL, { body: browse("all") })).text();
      const titles = [...elementsOf(readXml(textIn(readXml(answer), "Result")), "title")].map(({ text }) => text);
      assertEquals(titles, ["Harbour: Ships & tides", "Plain"]);
    }, FRONT);
  } finally {
    await web.close();
  }
});
