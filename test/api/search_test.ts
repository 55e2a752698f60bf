/** `/search`, as public clients of such an endpoint ask it and read it. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { ADDRESSES, type CalledEngine, type CallOptions, TOKEN, withEngine } from "./support.ts";

const ALIVE = "a".repeat(40);
const OTHER = "b".repeat(40);
const FILM = "c".repeat(40);

/** Adds a channel with two items, a film, and items that are not to be found. */
async function fill(call: CalledEngine["call"]): Promise<void> {
  const add = (params: Record<string, string>) => call("playlist_add_item", { token: TOKEN, ...params });
  await add({ title: "Tele News HD", infohash: ALIVE, is_live: "1", category: "tv" });
  await add({ title: "Tele News 4K", infohash: OTHER, is_live: "1" });
  await add({ title: 'Film "News"', infohash: FILM, poster: "http://h/poster.png" });
  await add({ title: "News over HTTP", video_url: "http://h/news" });
  const { result: id } = await add({ title: "News off", infohash: "d".repeat(40) });
  await call("playlist_item_set_enabled", { token: TOKEN, id: String(id), value: "0" });
}

const search = async (call: CalledEngine["call"], query: string, options: CallOptions = {}) => {
  const { result } = await call("", Object.fromEntries(new URLSearchParams(query)), { path: "/search", ...options });
  return result;
};

test("/search returns torrents and broadcasts in the form that its clients read", async () => {
  await withEngine(async ({ call }) => {
    await fill(call);
    const begunS = Math.floor(Date.now() / 1000);
    const { total, time, results } = await search(call, "query=news");
    assertEquals([total, typeof time, results.length], [3, "number", 3]);
    const [first, , film] = results;
    const { availability_updated_at: atS, ...item } = first.items[0];
    assertEquals(atS >= begunS && Number.isInteger(atS), true);
    assertEquals(item, {
      name: "Tele News HD",
      infohash: ALIVE,
      status: 1,
      availability: 1,
      categories: ["tv"],
      languages: [],
      countries: [],
      channel_id: 1,
      bitrate: 0,
    });
    // Clients take the first of the icons where there are any.
    assertEquals([Object.keys(first), film.name], [["name", "items"], 'Film "News"']);
    assertEquals(film.icons, [{ url: "http://h/poster.png", type: 0 }]);
    const { results: channels } = await search(call, "group_by_channels=1&show_epg=1&query=tele&category=");
    assertEquals(channels.map((one: { name: string }) => one.name), ["Tele News HD"]);
    assertEquals(
      channels[0].items.map((one: Record<string, unknown>) => [one["infohash"], one["channel_id"]]),
      [[ALIVE, 1], [OTHER, 1]],
    );
  });
});

test("/search serves pages that count from 0 or from 1, and takes a larger page for the largest", async () => {
  await withEngine(async ({ call }) => {
    await fill(call);
    const names = async (query: string) =>
      (await search(call, query)).results.map(({ name }: { name: string }) => name);
    assertEquals((await names("page_size=200000&page=0&query=")).length, 3);
    assertEquals(await names("query=news&page_size=2&page=0"), ["Tele News HD", "Tele News 4K"]);
    assertEquals(await names("query=news&page_size=2&page=1"), ['Film "News"']);
    assertEquals(await names("query=news&page_size=2&page=2"), []);
    assertEquals(await names("query=new&page_size=2&page=1"), ["Tele News HD", "Tele News 4K"]);
    assertEquals(await names("query=new&page_size=2&page=2"), ['Film "News"']);
    assertEquals(await names("page=0&query=&category=&page_size=200&group_by_channels=False&show_epg=False"), [
      "Tele News HD",
      "Tele News 4K",
      'Film "News"',
    ]);
  });
});

test("/search is open without a token to this machine and its subnet, and to no page of another origin", async () => {
  await withEngine(async ({ call, engine }) => {
    await fill(call);
    engine.access.setAllowed("internet", true);
    const ask = async (options: CallOptions, query = "") => {
      const { result, error } = await call("", Object.fromEntries(new URLSearchParams(query)), {
        path: "/search",
        ...options,
      });
      return error?.code ?? result.total;
    };
    const mozilla = { "user-agent": "Mozilla/5.0" };
    assertEquals(await ask({}), 3);
    assertEquals(await ask({ headers: { ...mozilla, "sec-fetch-site": "none" } }), 3, "an address that the user opens");
    assertEquals(await ask({ headers: { origin: "http://127.0.0.1:6878", "sec-fetch-site": "same-origin" } }), 3);
    assertEquals(await ask({ from: "intranet" }), 3);
    assertEquals(await ask({ from: "internet" }), 4);
    assertEquals(await ask({ from: "internet" }, `token=${TOKEN}`), 3);
    assertEquals(await ask({ headers: { "x-forwarded-for": ADDRESSES.intranet } }), 4, "a proxy that nobody named");
    for (const origin of ["http://evil.example", "null", "https://tv.example"]) {
      for (const query of ["", `token=${TOKEN}`]) {
        assertEquals(await ask({ headers: { origin } }, query), 4, origin);
        assertEquals(await ask({ headers: { "sec-fetch-site": "cross-site", ...mozilla } }, query), 4);
        assertEquals(await ask({ from: "intranet", headers: { referer: `${origin}/page`, ...mozilla } }, query), 4);
      }
    }
    engine.access.setAllowed("intranet", false);
    assertEquals((await call("", {}, { path: "/search", from: "intranet" })).status, 403);
  }, { allowOrigins: ["https://tv.example"] });
});
