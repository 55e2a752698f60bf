/** Recordings by the methods of the API, and the addresses at which they play. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { elementsOf, readXml, textIn } from "../../src/upnp/xml.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { ADDRESSES, type CalledEngine, TOKEN, withEngine } from "./support.ts";

const getter = ({ engine }: CalledEngine) =>
(
  url: string,
  headers: Record<string, string> = {},
  from: keyof typeof ADDRESSES = "intranet",
) => engine.fetch(new Request(url, { headers }), { remote: { host: ADDRESSES[from], port: 1 } });

test("recording_start records a channel that plays while it grows, for those with its key, until recording_delete", async () => {
  const directory = await temporaryDirectory();
  const web = await serveWeb((_request, response) => {
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(5000));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  try {
    await withEngine(async (called) => {
      const { call } = called;
      const get = getter(called);
      const started = await call("recording_start", { token: TOKEN, direct_url: `${web.base}/live`, title: "News" });
      assertEquals([started.error, started.result.title, started.result.state], [null, "News", "recording"]);
      const list = async () => (await call("recording_list", { token: TOKEN })).result.recordings;
      await until("two segments are there", async () => (await list())[0].duration > 2);
      const [{ id, url, manifest_url: manifest }] = await list();
      const part = await get(url, { range: "bytes=188-375" });
      assertEquals([part.status, (await part.arrayBuffer()).byteLength], [206, 188]);
      assertMatch(part.headers.get("content-range")!, /^bytes 188-375\/\*$/);
      const growing = (await get(url)).body!.getReader();
      assertEquals((await growing.read()).value![0], 0x47);
      const playlist = await (await get(manifest)).text();
      assertMatch(playlist, /#EXT-X-MEDIA-SEQUENCE:0\n/);
      assert(!playlist.includes("ENDLIST"));
      const segment = await get(/^http.*$/m.exec(playlist)![0]);
      assertEquals([segment.status, new Uint8Array(await segment.arrayBuffer())[0]], [200, 0x47]);
      assertEquals((await get(url.replace(/\?.*/, ""))).status, 403);
      assertEquals((await get(url.replace(/\?.*/, ""), {}, "loopback")).status, 200);
      assertEquals((await call("recording_stop", { token: TOKEN, id })).result, "ok");
      for (let next = await growing.read(); !next.done;) next = await growing.read();
      assertMatch(await (await get(manifest)).text(), /#EXT-X-ENDLIST/);
      const whole = await get(url);
      assertEquals(whole.headers.get("content-length"), String((await list())[0].size));
      await whole.body!.cancel();
      assertEquals((await call("recording_delete", { token: TOKEN, id })).result, "ok");
      assertEquals([await list(), (await get(url)).status], [[], 404]);
    }, { stateDir: `${directory.path}/state` });
  } finally {
    await web.close();
    await directory.remove();
  }
});

test("recording_start records an item of the playlist under its title, from the address and with the fields of its list", async () => {
  const directory = await temporaryDirectory();
  const web = await serveWeb((_request, response) => {
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(5000));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  try {
    await withEngine(async ({ call: post, engine }) => {
      const call = (method: string, params: Record<string, string> = {}) => post(method, { token: TOKEN, ...params });
      const list = `#EXTM3U\n#EXTINF:-1,News\n${web.base}/live|User-Agent=Box\n`;
      const query = new URLSearchParams({ method: "playlist_import", token: TOKEN });
      await engine.fetch(new Request(`http://127.0.0.1:6878/server/api?${query}`, { method: "POST", body: list }));
      const items = async () => (await call("playlist_get")).result.playlist;
      await until("the list is imported", async () => (await items()).length === 1);
      const [{ id: item }] = await items();
      const { result, error } = await call("recording_start", { item: String(item) });
      assertEquals([error, result?.title], [null, "News"]);
      const recording = async () => (await call("recording_list")).result.recordings[0];
      await until("a segment is there", async () => (await recording()).duration > 0);
      assertEquals(web.asked.map(({ url, headers }) => [url, headers["user-agent"]]), [["/live", "Box"]]);
      assertEquals((await call("recording_stop", { id: result.id })).result, "ok");
      assertEquals((await recording()).state, "done");
      const missing = await call("recording_start", { item: String(item + 1) });
      assertMatch(missing.error!.message, /nothing by that number/);
    }, { stateDir: `${directory.path}/state` });
  } finally {
    await web.close();
    await directory.remove();
  }
});

test("recording_start records a programme of the guide, with margins, and says which one there is none of", async () => {
  const directory = await temporaryDirectory();
  const nowS = Math.floor(Date.now() / 1000);
  const programme = (title: string, fromS: number, untilS: number) =>
    `<programme start="${writeXmltvTime(nowS + fromS)}" stop="${writeXmltvTime(nowS + untilS)}" channel="a">` +
    `<title>${title}</title></programme>`;
  const web = await serveWeb((_request, response) => {
    response.end(`<tv>${programme("Past", -7200, -3600)}${programme("Film", 3600, 7200)}</tv>`);
  });
  try {
    await withEngine(async ({ call: post }) => {
      const call = (method: string, params: Record<string, string> = {}) => post(method, { token: TOKEN, ...params });
      const fields = { title: "News", video_url: "http://a.example/live", is_live: "1" };
      const item = String((await call("playlist_add_item", fields)).result);
      await call("playlist_update_item", { id: item, tvg_id: "a" });
      const guide = await call("epg_source_add", {
        url: `${web.base}/guide.xml`,
        update_now: "0",
        update_interval: "0",
      });
      assertEquals((await call("epg_source_update", { id: String(guide.result) })).result, "ok");
      const { result, error } = await call("recording_start", { item, programme: String(nowS + 5000) });
      assertEquals([error, result?.title, result?.state], [null, "Film", "planned"]);
      assertEquals([result.from - nowS, result.until - nowS], [3600 - 60, 7200 + 300]);
      const margins = { margin_before: "0", margin_after: "7" };
      const exact = (await call("recording_start", { item, programme: String(nowS + 3600), ...margins })).result;
      assertEquals([exact.from - nowS, exact.until - nowS], [3600, 7207]);
      const message = async (params: Record<string, string>) =>
        (await call("recording_start", params)).error?.message ?? "";
      assertMatch(await message({ item, programme: String(nowS + 90_000) }), /no guide has a programme/);
      assertMatch(await message({ item, programme: String(nowS - 5000) }), /it is over/);
      assertMatch(await message({ direct_url: "http://a.example/", programme: String(nowS) }), /item/);
    }, { stateDir: `${directory.path}/state` });
  } finally {
    await web.close();
    await directory.remove();
  }
});

test("recording_start says what is missing, and where an engine keeps nothing on disk", () =>
  withEngine(async ({ call }) => {
    const message = async (params: Record<string, string>) =>
      (await call("recording_start", { token: TOKEN, ...params })).error?.message ?? "";
    assertMatch(await message({ direct_url: "http://a.example/live" }), /--state-dir/);
    assertEquals((await call("recording_list", { token: TOKEN })).result.recordings, []);
    assertMatch((await call("recording_start", { direct_url: "http://a.example" })).error!.message, /token/);
  }));

test("televisions find recordings in a list of their own, and play those that are over from any time on", async () => {
  const directory = await temporaryDirectory();
  const web = await serveWeb((_request, response) => {
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(5000));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  try {
    await withEngine(async (called) => {
      const { call, engine } = called;
      const remote = { host: ADDRESSES.intranet, port: 1 };
      const browse = async (id: string) => {
        const body =
          `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><u:Browse xmlns:u="urn:x"><ObjectID>${id}` +
          "</ObjectID><BrowseFlag>BrowseDirectChildren</BrowseFlag><StartingIndex>0</StartingIndex><RequestedCount>0" +
          "</RequestedCount></u:Browse></s:Body></s:Envelope>";
        const request = new Request("http://192.168.7.5:6878/dlna/control/content-directory", { method: "POST", body });
        return textIn(readXml(await (await engine.fetch(request, { remote })).text()), "Result");
      };
      assert(!(await browse("0")).includes("Recordings"));
      const { id } =
        (await call("recording_start", { token: TOKEN, direct_url: `${web.base}/live`, title: "News" })).result;
      const list = async () => (await call("recording_list", { token: TOKEN })).result.recordings;
      await until("two segments are there", async () => (await list())[0].duration > 2);
      await call("recording_stop", { token: TOKEN, id });
      const [{ size, duration }] = await list();
      assertMatch(await browse("0"), /id="recordings".*Recordings/);
      const [item] = elementsOf(readXml(await browse("recordings")), "item");
      const [res] = elementsOf(item!, "res");
      assertEquals([textIn(item!, "title"), res!.attributes["size"]], ["News", String(size)]);
      const get = (headers: Record<string, string>) => engine.fetch(new Request(res!.text, { headers }), { remote });
      const whole = await get({ "getcontentFeatures.dlna.org": "1" });
      assertEquals([whole.status, whole.headers.get("content-type")], [200, "video/mpeg"]);
      assertMatch(whole.headers.get("contentFeatures.dlna.org")!, /DLNA\.ORG_OP=11/);
      await whole.body!.cancel();
      const late = await get({ "TimeSeekRange.dlna.org": `npt=${(duration - 0.5).toFixed(3)}-` });
      const bytes = new Uint8Array(await late.arrayBuffer());
      assertEquals([bytes[0], bytes.length % 188, bytes.length < size], [0x47, 0, true]);
      assertMatch(late.headers.get("TimeSeekRange.dlna.org")!, /^npt=[\d.]+-[\d.]+\/[\d.]+ bytes=\d+-\d+\/\d+$/);
    }, { stateDir: `${directory.path}/state`, fronts: ["dlna"] });
  } finally {
    await web.close();
    await directory.remove();
  }
});
