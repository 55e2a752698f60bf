/** The front of an Xtream codes panel, asked as apps for television ask. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { writeXmltvTime } from "../../../src/playlist/guide/xmltv-time.ts";
import { EndlessClip } from "../../playback/live-support.ts";
import { until } from "../../support/until.ts";
import { serveWeb } from "../../support/web.ts";
import { TOKEN } from "../../api/support.ts";
import { ACCOUNT, type Ask, AT, SEASON, seededSeason, withAccount, type withFront } from "./support.ts";

const season = seededSeason();
const { user: USER, password: PASSWORD } = ACCOUNT;
const LOGIN = new URLSearchParams({ username: USER, password: PASSWORD });
const NAMES = `${encodeURIComponent(USER)}/${encodeURIComponent(PASSWORD)}`;

// deno-lint-ignore no-explicit-any -- what apps find
type Json = any;

/** Runs `body` with the front of an engine that has one account. */
const withPanel = (body: Parameters<typeof withFront>[1]) => withAccount("xtream", body);

async function ofApi(ask: Ask, action: string, more = ""): Promise<Json> {
  const response = await ask(`/player_api.php?${LOGIN}${action === "" ? "" : `&action=${action}`}${more}`);
  assertEquals(response.status, 200, action);
  return await response.json();
}

test("an app signs in, reads categories, channels, films and series, and plays an episode", () =>
  withPanel(async (ask, call) => {
    const add = async (item: Record<string, string>) =>
      (await call("playlist_add_item", { token: TOKEN, ...item })).result as number;
    const channel = await add({ title: "News", category: "Live", infohash: "1".repeat(40), is_live: "1" });
    const film = await add({ title: "Film", category: "Films", magnet: season().magnet, is_live: "0" });
    const plain = await add({ title: "Other film", infohash: "3".repeat(40), is_live: "0" });

    const { user_info: user, server_info: server } = await ofApi(ask, "");
    assertEquals([user.auth, user.status, user.username], [1, "Active", USER]);
    for (const name of ["exp_date", "is_trial", "active_cons", "created_at", "max_connections"]) {
      assertEquals(typeof user[name], "string", name);
    }
    const [host, port] = AT.split(":");
    assertEquals([server.url, server.port, server.server_protocol, server.timezone], [host, port, "http", "UTC"]);
    assertEquals((await ofApi(ask, "get_account_info")).user_info.auth, 1);

    const [live] = await ofApi(ask, "get_live_categories");
    assertEquals([live.category_name, live.parent_id, typeof live.category_id], ["Live", 0, "string"]);
    const channels = await ofApi(ask, "get_live_streams", `&category_id=${live.category_id}`);
    assertEquals(channels.map((one: Json) => [one.num, one.name, one.stream_id, one.stream_type, one.category_id]), [
      [1, "News", channel, "live", live.category_id],
    ]);
    assertEquals(await ofApi(ask, "get_live_streams", "&category_id=999"), []);
    const films = await ofApi(ask, "get_vod_streams");
    assertEquals(films.map((one: Json) => [one.stream_id, one.container_extension]), [[film, "ts"], [plain, "ts"]]);
    const names = (await ofApi(ask, "get_vod_categories")).map((one: Json) => one.category_name);
    assertEquals(names, ["Films", "Other"]);
    assertEquals(await ofApi(ask, "get_series"), []);
    const info = await ofApi(ask, "get_vod_info", `&vod_id=${film}`);
    assertEquals([info.movie_data.stream_id, info.info.name], [film, "Film"]);
    const series = await ofApi(ask, "get_series_info", `&series_id=${film}`);
    assertEquals(series.episodes["1"].map((one: Json) => [one.episode_num, one.title]), [[1, "S01E01"], [2, "S01E02"]]);
    const epg = await ofApi(ask, "get_short_epg", `&stream_id=${channel}&limit=4`);
    assertEquals(epg, { epg_listings: [] });

    const episode = series.episodes["1"][1];
    const address = `/series/${NAMES}/${episode.id}.${episode.container_extension}`;
    const head = await ask(address, { method: "HEAD" });
    assertEquals([head.status, head.headers.get("content-type")], [200, "video/mp2t"]);
    const range = await ask(address, { headers: { range: "bytes=0-187" } });
    assertEquals([range.status, (await range.arrayBuffer()).byteLength], [206, 188]);
    const whole = new Uint8Array(await (await ask(`/movie/${NAMES}/${film}.ts`)).arrayBuffer());
    assert(whole.length > SEASON[0]!.bytes.length * 0.9 && whole[0] === 0x47);
    for (const path of [`/live/${NAMES}/${channel}.ts`, `/${NAMES}/${channel}`]) {
      const response = await ask(path, { method: "HEAD" });
      assertEquals([response.status, response.headers.get("content-type")], [200, "video/mp2t"], path);
    }
    const hls = await ask(`/live/${NAMES}/${film}.m3u8`);
    assertMatch(hls.headers.get("location") ?? "", new RegExp(`^http://${AT}/engine/m/.*\\.m3u8$`));
    assertEquals((await ask(new URL(hls.headers.get("location")!).pathname)).status, 200);
  }));

test("get.php lists channels and films under the account's name, and xmltv.php and get_short_epg what is on", () =>
  withPanel(async (ask, call) => {
    const nowS = Math.floor(Date.now() / 1000);
    const programme = (title: string, fromS: number, untilS: number) =>
      `<programme start="${writeXmltvTime(nowS + fromS)}" stop="${writeXmltvTime(nowS + untilS)}" channel="x">` +
      `<title>${title}</title><desc>Überall</desc></programme>`;
    const web = await serveWeb((_request, response) => {
      const channel = '<channel id="x"><display-name>News &amp; more</display-name></channel>';
      response.end(
        `<tv>${channel}${programme("Past", -7200, -3600)}${programme("On", -600, 600)}${
          programme("Next", 600, 1200)
        }</tv>`,
      );
    });
    const item = { token: TOKEN, title: "News & more", category: "Live", infohash: "1".repeat(40), is_live: "1" };
    const { result: id } = await call("playlist_add_item", item);
    const source = { token: TOKEN, url: `${web.base}/guide.xml`, update_now: "0", update_interval: "0" };
    const { result: guideId } = await call("epg_source_add", source);
    const updated = await call("epg_source_update", { token: TOKEN, id: String(guideId) });
    await web.close();
    assertEquals(updated.result, "ok");
    const [stream] = await ofApi(ask, "get_live_streams");
    assertEquals(stream.epg_channel_id, "x", "it was found by name");
    const { epg_listings: short } = await ofApi(ask, "get_short_epg", `&stream_id=${id}&limit=1`);
    assertEquals(short.map((one: Json) => [atob(one.title), one.channel_id, one.start_timestamp, one.now_playing]), [
      ["On", "x", String(nowS - 600), 1],
    ]);
    assertEquals(short[0].start, new Date((nowS - 600) * 1000).toISOString().slice(0, 19).replace("T", " "));
    assertEquals(short[0].description, btoa("\u00c3\u009cberall"));
    const { epg_listings: all } = await ofApi(ask, "get_simple_data_table", `&stream_id=${id}`);
    assertEquals(all.map((one: Json) => [atob(one.title), one.now_playing]), [["Past", 0], ["On", 1], ["Next", 0]]);
    const list = await (await ask(`/get.php?${LOGIN}&type=m3u_plus&output=m3u8`)).text();
    assertMatch(list, /^#EXTM3U .*url-tvg="http:\/\/192\.168\.7\.5:8090\/xmltv\.php\?/);
    assert(list.includes(`http://${AT}/live/${NAMES}/${id}.m3u8\n`), list);
    assertMatch(list, /group-title="Live"/);
    const guide = await (await ask(`/xmltv.php?${LOGIN}`)).text();
    assertMatch(guide, /<channel id="x">\s*<display-name>News &amp; more<\/display-name>/);
    assertEquals(guide.match(/<programme /g)?.length, 3);
    assertMatch(list, /tvg-id="x"/);
  }));

test("a channel whose list names an archive has tv_archive, and both addresses of catch-up lead there", async () => {
  const asked: string[] = [];
  const web = await serveWeb((request, response) => {
    asked.push(request.url ?? "");
    const media = new EndlessClip();
    response.write(media.next(2500));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  try {
    await withPanel(async (ask, call) => {
      const entries =
        `catchup="append" catchup-source="?from={utc}&s={duration}" catchup-days="3",One\n${web.base}/live`;
      const body = new FormData();
      body.set("file", new File([`#EXTM3U\n#EXTINF:-1 ${entries}\n#EXTINF:-1,Two\n${web.base}/two\n`], "list.m3u"));
      await call("playlist_import", { token: TOKEN }, { init: { method: "POST", body } });
      let streams: Json[] = [];
      await until("the list is imported", async () => (streams = await ofApi(ask, "get_live_streams")).length === 2);
      const archives = streams.map((
        { name, tv_archive, tv_archive_duration },
      ) => [name, tv_archive, tv_archive_duration]);
      assertEquals(archives, [["One", 1, 3], ["Two", 0, 0]]);
      const list = await (await ask(`/get.php?${LOGIN}&type=m3u_plus`)).text();
      assertMatch(list, /catchup="xc" catchup-days="3".*,One/);
      const startS = Math.floor(Date.now() / 60_000) * 60 - 7200;
      const startOf = (unixS: number) =>
        new Date(unixS * 1000).toISOString().slice(0, 16).replace("T", ":").replace(/:(\d\d)$/, "-$1");
      const [one, two] = streams.map(({ stream_id }) => stream_id);
      const start = startOf(startS);
      const later = `${LOGIN}&stream=${one}&start=${startOf(startS + 60)}&duration=30`;
      for (const path of [`/timeshift/${NAMES}/30/${start}/${one}.ts`, `/streaming/timeshift.php?${later}`]) {
        const response = await ask(path);
        assertEquals([response.status, response.headers.get("content-type")], [200, "video/mp2t"], path);
        const reader = response.body!.getReader();
        assertEquals((await reader.read()).value?.[0], 0x47);
        await reader.cancel();
      }
      assertEquals(asked, [`/live?from=${startS}&s=1800`, `/live?from=${startS + 60}&s=1800`]);
      assertEquals((await ask(`/timeshift/${NAMES}/30/${start}/${two}.ts`)).status, 404);
      assertEquals((await ask(`/timeshift/${NAMES}/30/yesterday/${one}.ts`)).status, 400);
      assertEquals((await ask(`/timeshift/nobody/no/30/${start}/${one}.ts`)).status, 403);
    });
  } finally {
    await web.close();
  }
});

test("a wrong password opens nothing, and every caller needs one", () =>
  withPanel(async (ask, call) => {
    await call("playlist_add_item", { token: TOKEN, title: "News", infohash: "1".repeat(40), is_live: "1" });
    const wrong = await ask(`/player_api.php?username=${USER}&password=no`, { from: "loopback" });
    assertEquals([wrong.status, await wrong.json()], [200, { user_info: { auth: 0 } }]);
    assertEquals(await (await ask("/player_api.php")).json(), { user_info: { auth: 0 } });
    for (const path of ["/get.php", "/xmltv.php"]) assertEquals((await ask(path)).status, 401, path);
    assertEquals((await ask(`/live/${encodeURIComponent(USER)}/no/1.ts`)).status, 403);
    assertEquals((await ask("/movie/nobody/no/1.ts")).status, 403);
  }));
