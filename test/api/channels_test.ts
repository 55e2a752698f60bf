/** Channels that come by HTTP, played by the addresses of the API. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { serveWeb } from "../support/web.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { ADDRESSES, type CalledEngine, TOKEN, withEngine } from "./support.ts";

/** A server of a broadcast: `/live` never ends, `/file.ts` is a recording, anything else is missing. */
async function withBroadcast(body: (base: string, asked: readonly string[]) => Promise<void>): Promise<void> {
  const asked: string[] = [];
  const web = await serveWeb((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    if (path === "/file.ts") {
      const bytes = clip("ts-188.ts");
      response.writeHead(200, { "content-length": bytes.length }).end(bytes);
    } else if (path.startsWith("/live")) {
      const media = new EndlessClip();
      response.writeHead(200);
      response.write(media.next(2500));
      const timer = setInterval(() => response.write(media.next(50)), 50);
      response.on("close", () => clearInterval(timer));
    } else response.writeHead(404).end("gone");
  });
  try {
    await body(web.base, asked);
  } finally {
    await web.close();
  }
}

async function imported({ engine, call }: CalledEngine, list: string): Promise<{ id: number }[]> {
  const form = new FormData();
  form.set("file", new File([list], "list.m3u"));
  const query = new URLSearchParams({ method: "playlist_import", token: TOKEN });
  const request = new Request(`http://127.0.0.1:6878/server/api?${query}`, { method: "POST", body: form });
  const { result } = await (await engine.fetch(request)).json();
  await until("the list is imported", async () => {
    const { state } = (await call("get_task", { token: TOKEN, task_id: String(result.task_id) })).result;
    assert(state !== "failed");
    return state === "done";
  });
  return (await call("playlist_get", { token: TOKEN })).result.playlist;
}

const getter =
  ({ engine }: CalledEngine) => (path: string, from: keyof typeof ADDRESSES = "loopback", method = "GET") =>
    engine.fetch(new Request(`http://127.0.0.1:6878${path}`, { redirect: "manual", method }), {
      remote: { host: ADDRESSES[from], port: 1 },
    });

/** The first bytes of a body that never ends. */
async function beginning(response: Response, bytes: number): Promise<Uint8Array> {
  const reader = response.body!.getReader();
  const parts: number[] = [];
  while (parts.length < bytes) {
    const { done, value } = await reader.read();
    assert(!done);
    for (const byte of value) parts.push(byte);
  }
  await reader.cancel();
  return Uint8Array.from(parts);
}

test("getstream?item= and manifest.m3u8?item= play an item that comes by HTTP, with its list's fields, from one upstream", () =>
  withBroadcast((base, asked) =>
    withEngine(async (called) => {
      const get = getter(called);
      const [item] = await imported(called, `#EXTM3U\n#EXTINF:-1 user-agent="Box/1",One\n${base}/live\n`);
      const ts = await get(`/engine/getstream?item=${item!.id}&pid=a`);
      assertEquals([ts.status, ts.headers.get("content-type")], [200, "video/mp2t"]);
      const bytes = await beginning(ts, 40_000);
      assertEquals([bytes[0], bytes[188]], [0x47, 0x47]);
      const hls = await get(`/engine/manifest.m3u8?item=${item!.id}&pid=b`);
      assertEquals(hls.status, 302);
      const playlist = await (await get(new URL(hls.headers.get("location")!).pathname)).text();
      assertMatch(playlist, /#EXTINF:/);
      const segment = /^http.*\.ts$/m.exec(playlist)![0];
      const media = new Uint8Array(await (await get(new URL(segment).pathname)).arrayBuffer());
      assertEquals([media[0], media.length % 188], [0x47, 0]);
      const json = await (await get(`/engine/getstream?item=${item!.id}&pid=a&format=json`)).json();
      const stat = await (await get(new URL(json.response.stat_url).pathname)).json();
      assertEquals(
        [stat.response.channel.item, stat.response.channel.playing, stat.response.is_live],
        [item!.id, true, 1],
      );
      assertEquals(asked, ["/live"]);
    })
  ));

test("getstream?direct_url= plays an address for programs on this machine, and for others with a key alone", () =>
  withBroadcast((base, asked) =>
    withEngine(async (called) => {
      const get = getter(called);
      const address = encodeURIComponent(`${base}/live?token=secret`);
      const here = await get(`/engine/getstream?direct_url=${address}`);
      assertEquals((await beginning(here, 20_000))[0], 0x47);
      assertEquals(asked, ["/live?token=secret"]);
      const far = await get(`/engine/getstream?direct_url=${address}`, "intranet");
      assertEquals(far.status, 403);
      assertMatch(await far.text(), /key/);
      const gone = await get(`/engine/getstream?direct_url=${encodeURIComponent(`${base}/gone`)}`);
      assertEquals(gone.status, 404);
      const none = await get(`/engine/getstream?direct_url=${encodeURIComponent("rtmp://a.example/live")}`);
      assertEquals(none.status, 400);
    })
  ));

test("getstream?group= goes on with the other address where one is missing; the tuner plays and lists the channel", () =>
  withBroadcast((base, asked) =>
    withEngine(async (called) => {
      const get = getter(called);
      const entry = (path: string) => `#EXTINF:-1 tvg-id="one.tv" tvg-chno="7",One\n${base}${path}\n`;
      await imported(called, `#EXTM3U\n${entry("/gone")}${entry("/live")}`);
      const group = await get("/engine/getstream?group=id:one.tv");
      assertEquals((await beginning(group, 20_000))[0], 0x47);
      assertEquals(asked, ["/gone", "/live"]);
      assertEquals((await (await get("/lineup.json")).json()).length, 1);
      const tuned = await get("/auto/v7");
      assertEquals([tuned.status, (await beginning(tuned, 20_000))[0]], [200, 0x47]);
      assertEquals(asked, ["/gone", "/live"], "it is the same channel");
    }, { fronts: ["hdhomerun"] })
  ));

test("the list, the guide and the tuner name each channel by the same id, number and title", async () => {
  const time = (hours: number) => writeXmltvTime(Math.floor(Date.now() / 1000) + hours * 3600);
  const on = (id: string) =>
    `<programme start="${time(-1)}" stop="${time(1)}" channel="${id}"><title>On ${id}</title></programme>`;
  const guide = `<tv><channel id="beta"><display-name>Beta</display-name></channel>${["one.tv", "beta"].map(on)}</tv>`;
  const web = await serveWeb((_request, response) => void response.end(guide));
  try {
    await withEngine(async (called) => {
      const get = getter(called);
      await imported(
        called,
        `#EXTM3U
#EXTINF:-1 tvg-id="one.tv" tvg-chno="7",One & Only
http://h/1
#EXTINF:-1 tvg-chno="7.1",Beta HD
http://h/2
#EXTINF:-1 tvg-id="none.tv",No guide
http://h/3
#EXTINF:-1 tvg-id="one.tv",One again
http://h/4
`,
      );
      const params = { token: TOKEN, url: `${web.base}/guide.xml`, update_interval: "0", update_now: "0" };
      const { result: id } = await called.call("epg_source_add", params);
      assertEquals((await called.call("epg_source_update", { token: TOKEN, id: String(id) })).error, null);
      const m3u = await (await get("/engine/playlist.m3u")).text();
      const listed = [...m3u.matchAll(/^#EXTINF:.*$/gm)].map(([line]) => ({
        id: / tvg-id="([^"]*)"/.exec(line)?.[1],
        number: / tvg-chno="([^"]*)"/.exec(line)?.[1],
        title: line.slice(line.lastIndexOf(",") + 1),
      }));
      const lineup: { GuideNumber: string; GuideName: string }[] = await (await get("/lineup.json")).json();
      const tuned = lineup.map(({ GuideNumber, GuideName }) => [GuideNumber, GuideName]);
      assertEquals(tuned, [["3", "No guide"], ["7", "One & Only"], ["7.1", "Beta HD"]]);
      for (const [number, title] of tuned) assert(listed.some((one) => one.number === number && one.title === title));
      const xml = await (await get("/engine/xmltv.xml")).text();
      const channels = [...xml.matchAll(/<channel id="([^"]*)">(.*?)<\/channel>/gs)].map(([, of, inner]) => ({
        id: of,
        names: [...inner!.matchAll(/<display-name[^>]*>([^<]*)</g)].map(([, name]) => name!.replace("&amp;", "&")),
      }));
      assertEquals(channels.map((one) => one.id), ["one.tv", "beta"]);
      for (const { id: of, names } of channels) {
        const item = listed.find((one) => one.id === of)!;
        assert(names.includes(item.title) && names.includes(item.number!), `${of}: ${names}`);
        assertMatch(xml, new RegExp(` channel="${of}">\\s*<title>On ${of}</title>`));
      }
    }, { fronts: ["hdhomerun"] });
  } finally {
    await web.close();
  }
});

test("HEAD on the addresses of a channel says what comes, and opens no upstream", () =>
  withBroadcast((base, asked) =>
    withEngine(async (called) => {
      const get = getter(called);
      const list = `#EXTM3U\n#EXTINF:-1 tvg-id="one.tv" tvg-chno="7",One\n${base}/live\n`;
      const [item] = await imported(called, list);
      const types: Record<string, string> = {
        [`/engine/getstream?item=${item!.id}`]: "video/mp2t",
        "/engine/getstream?group=id:one.tv": "video/mp2t",
        [`/engine/getstream?direct_url=${encodeURIComponent(`${base}/live`)}`]: "video/mp2t",
        [`/engine/manifest.m3u8?item=${item!.id}`]: "application/vnd.apple.mpegurl",
        [`/engine/getstream?item=${item!.id}&format=json`]: "application/json",
        "/auto/v7": "video/mp2t",
      };
      for (const [path, type] of Object.entries(types)) {
        const head = await get(path, "loopback", "HEAD");
        assertEquals([head.status, head.headers.get("content-type"), await head.text()], [200, type, ""], path);
      }
      assertEquals((await get("/engine/getstream?item=999", "loopback", "HEAD")).status, 404);
      assertEquals((await get(`/engine/getstream?item=${item!.id}`, "intranet", "HEAD")).status, 403);
      assertEquals(asked, []);
      // The player that looked finds the channel.
      assertEquals((await beginning(await get("/auto/v7"), 20_000))[0], 0x47);
      assertEquals(asked, ["/live"]);
    }, { fronts: ["hdhomerun"] })
  ));

test("getstream?item= with start_from plays what its list names for that time", () =>
  withBroadcast((base, asked) =>
    withEngine(async (called) => {
      const get = getter(called);
      const list = `#EXTM3U\n#EXTINF:-1 catchup="append" catchup-source="?from={utc}&s={duration}",One\n${base}/live\n`;
      const [item] = await imported(called, list);
      const from = Math.floor(Date.now() / 1000) - 7200;
      assertEquals(
        (await beginning(await get(`/engine/getstream?item=${item!.id}&start_from=${from}`), 5000))[0],
        0x47,
      );
      assertMatch(asked[0]!, new RegExp(`^/live\\?from=${from}&s=720[0-5]$`));
      const now = await get(`/engine/getstream?item=${item!.id}&start_from=${from + 7195}&pid=now`);
      assertEquals((await beginning(now, 5000))[0], 0x47);
      assertEquals(asked.slice(1), ["/live"]);
    })
  ));
