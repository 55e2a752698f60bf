/** The exported list and the search, over HTTP. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { type Any, useListsApi } from "./lists-support.ts";
import { ADDRESSES, TOKEN, withEngine } from "./support.ts";

const { served, post, call, ended } = useListsApi();

test("/engine/playlist.m3u lists enabled items with this engine's addresses, and can be imported again", async () => {
  const content = "0123456789abcdef0123456789abcdef01234567";
  await call("playlist_add_item", { title: "Torrent", content_id: content, category: "Films" });
  const off = await call("playlist_add_item", { title: "Off", infohash: content });
  await call("playlist_item_set_enabled", { id: String(off), value: "0" });
  await call("playlist_add_item", { title: "Waiting", auto_search: "1" });
  await call("playlist_add_item", { title: "Ann's", video_url: "http://h/v", owner: "ann" });
  const get = async (query: string) => {
    const response = await fetch(`${served.url}/engine/playlist.m3u${query}`);
    assertEquals(response.headers.get("content-type"), "audio/x-mpegurl; charset=utf-8");
    return await response.text();
  };
  assertEquals(
    await get(""),
    `#EXTM3U\n#EXTINF:-1 tvg-chno="1" group-title="Films",Torrent\n${served.url}/engine/getstream?content_id=${content}\n` +
      `#EXTINF:-1 tvg-chno="4",Ann's\nhttp://h/v\n`,
  );
  assert((await get("?output=hls")).includes(`${served.url}/engine/manifest.m3u8?content_id=${content}`));
  assert(!(await get("?owner=bob")).includes("Ann"));
  assertEquals(await get("?category=Films&owner=ann"), await get("?category=Films"));
  assert(!(await get("?category=Films")).includes("Ann"));
  assertEquals((await fetch(`${served.url}/engine/playlist.m3u?output=avi`)).status, 400);
  const before = (await call("playlist_get")).playlist;
  const { result } = await post("playlist_import", {}, { body: await get("") });
  assertEquals((await ended(result.task_id)).skipped, 2);
  assertEquals((await call("playlist_get")).playlist, before);
  await call("playlist_clear", { owner: "ann" });
});

test("/engine/playlist.m3u names films as files where that is asked for, and for players that seek in them", async () => {
  const infohash = "1123456789abcdef0123456789abcdef01234567";
  const film = await call("playlist_add_item", {
    title: "Film",
    infohash,
    is_live: "0",
    category: "Seen",
    owner: "viewer",
  });
  const channel = await call("playlist_add_item", {
    title: "Channel",
    infohash,
    is_live: "1",
    category: "Seen",
    owner: "viewer",
  });
  assert(film !== channel);
  const routes = async (query: string, player: string) => {
    const headers = { "user-agent": player };
    const response = await fetch(`${served.url}/engine/playlist.m3u?owner=viewer&category=Seen${query}`, { headers });
    return [...(await response.text()).matchAll(/^http.*\/engine\/(\w+)[.?]/gm)].map(([, route]) => route);
  };
  const files = ["getfile", "getstream"];
  assertEquals(await routes("&output=file", "TV"), files);
  for (const player of ["VLC/3.0.18 LibVLC/3.0.18", "Kodi/20.1 (X11; Linux x86_64)", "libmpv"]) {
    assertEquals(await routes("", player), files, player);
  }
  assertEquals(await routes("", "Mozilla/5.0 (SMART-TV)"), ["getstream", "getstream"]);
  assertEquals(await routes("&output=hls", "VLC/3.0.18"), ["manifest", "manifest"]);
  assertEquals(await routes("&output=file&failover=1", "TV"), ["getstream", "getstream"]);
  await call("playlist_clear", { owner: "viewer" });
});

test("/engine/playlist.m3u is served to this machine, and to callers elsewhere only with a key", async () => {
  await withEngine(async ({ engine, call }) => {
    engine.access.setAllowed("internet", true);
    const add = (title: string, owner: string) =>
      call("playlist_add_item", { title, video_url: "http://h/v", owner, token: TOKEN });
    await add("All's", "");
    await add("Ann's", "ann");
    await add("Bob's", "bob");
    const get = async (path: string, from: keyof typeof ADDRESSES, headers: Record<string, string> = {}) => {
      const request = new Request(`http://127.0.0.1:6878${path}`, { headers });
      const response = await engine.fetch(request, { remote: { host: ADDRESSES[from], port: 1 } });
      const text = await response.text();
      return response.status === 200 ? [...text.matchAll(/,(\w+)'s/g)].map((match) => match[1]) : response.status;
    };
    const keyed = async (owner: string) => {
      const params: Record<string, string> = owner === "" ? {} : { owner };
      const { result } = await call("get_playlist_url", { ...params, token: TOKEN });
      assert(!result.url.includes(TOKEN));
      return result.url.replace("http://127.0.0.1:6878", "") as string;
    };
    const [all, ann] = [await keyed(""), await keyed("ann")];
    const everyone = ["All", "Ann", "Bob"];
    assertEquals(await get("/engine/playlist.m3u", "loopback"), everyone);
    assertEquals(await get("/engine/playlist.m3u", "loopback", { origin: "http://evil.test" }), 403);
    for (const from of ["intranet", "internet"] as const) {
      assertEquals(await get("/engine/playlist.m3u", from), 403);
      assertEquals(await get("/engine/playlist.m3u?key=", from), 403);
      assertEquals(await get(`/engine/playlist.m3u?token=${TOKEN}`, from), everyone);
      assertEquals(await get(`/engine/playlist.m3u?token=${TOKEN.slice(1)}0`, from), 403);
      assertEquals(await get(all, from), everyone);
      assertEquals(await get(ann, from), ["All", "Ann"]);
      assertEquals(await get(ann.replace("owner=ann", "owner=bob"), from), 403);
      assertEquals(await get(ann.replace("owner=ann&", ""), from), 403);
    }
    assertEquals(await get(`${all}&owner=ann`, "internet"), ["All", "Ann"]);
    engine.access.setAllowed("internet", false);
    assertEquals(await get(all, "internet"), 403);
  });
});

test("a logo that was sent along is exported as an address of this engine", async () => {
  const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0);
  const form = new FormData();
  form.append("logo_file", new File([png], "l.png"));
  const { result: id } = await post("playlist_add_item", { title: "L", video_url: "http://h/v" }, { body: form });
  const text = await (await fetch(`${served.url}/engine/playlist.m3u`)).text();
  const logo = /tvg-logo="([^"]*)"/.exec(text)![1]!;
  assertEquals(logo, `${served.url}/server/api?method=get_channel_icon&id=${id}`);
  assertEquals(new Uint8Array(await (await fetch(logo)).arrayBuffer()), png);
  await call("playlist_clear", { owner: "" });
});

test("search finds by title and category, pages, and groups by channels", async () => {
  const list = `#EXTM3U url-tvg="http://g/1"
#EXTINF:-1 tvg-id="n1" group-title="News",Télé News HD
http://h/1
#EXTINF:-1 tvg-id="n1" group-title="News",TELE NEWS 4K
http://h/2
#EXTINF:-1 group-title="Sport",Sport News
http://h/3
#EXTINF:-1 group-title="Sport",Other
http://h/4
`;
  const { result } = await post("playlist_import", {}, { body: list });
  await ended(result.task_id);
  const off = await call("playlist_add_item", { title: "News off", video_url: "http://h/5" });
  await call("playlist_item_set_enabled", { id: String(off), value: "0" });
  await call("playlist_add_item", { title: "Ann's news", video_url: "http://h/6", owner: "ann" });
  const search = async (params: Record<string, string>) => {
    const { total, results, time } = await call("search", params);
    assert(time >= 0 && time < 10);
    return [total, results.map((one: Any) => [one.name, one.items.length])];
  };
  const all = [["Télé News HD", 1], ["TELE NEWS 4K", 1], ["Sport News", 1], ["Ann's news", 1]];
  assertEquals(await search({ query: "news" }), [4, all]);
  assertEquals(await search({ query: "news", owner: "bob" }), [3, all.slice(0, 3)]);
  assertEquals(await search({ query: "tele" }), [2, all.slice(0, 2)]);
  assertEquals(await search({ query: "news", page_size: "2", page: "1" }), [4, all.slice(2)]);
  assertEquals(await search({ query: "news", page: "9" }), [4, []]);
  assertEquals(await search({ query: "news", category: "Sport" }), [1, [all[2]!]]);
  assertEquals(await search({ category: "Sport" }), [2, [all[2]!, ["Other", 1]]]);
  assertEquals((await search({}))[0], 5);
  const grouped = [["Télé News HD", 2], ["Sport News", 1], ["Ann's news", 1]];
  assertEquals(await search({ query: "news", group_by_channels: "1" }), [3, grouped]);
  assertEquals(await search({ query: "news", group_by_channels: "1", page: "1", page_size: "1" }), [3, [grouped[1]!]]);
  const { results } = await call("search", { query: "tele", show_epg: "1", group_by_channels: "1" });
  assertEquals(results[0].epg, { tvg_id: "n1", sources: ["http://g/1"], now: null, next: null });
  assertEquals((await call("search", { query: "tele" })).results[0].epg, undefined);
  assertEquals((await post("search", { page_size: "201" })).error?.code, 3);
  await call("playlist_clear", { owner: "ann" });
});
