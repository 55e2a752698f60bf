/** The library as an add-on of Stremio, asked as the app's core asks. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { TOKEN } from "../../api/support.ts";
import { type Ask, AT, SEASON, seededSeason, withFront } from "./support.ts";

const season = seededSeason();

// deno-lint-ignore no-explicit-any -- what the app finds
async function json(ask: Ask, path: string): Promise<any> {
  const response = await ask(path);
  assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"], path);
  assertMatch(response.headers.get("cache-control") ?? "", /max-age=\d+/);
  return await response.json();
}

test("the app reads the manifest, catalogues with options, a series, and streams that play", () =>
  withFront("stremio", async (ask, call) => {
    const item = { token: TOKEN, category: "Films & more", magnet: season().magnet, is_live: "0" };
    const { result: film } = await call("playlist_add_item", { ...item, title: "Größe" });
    const news = { token: TOKEN, title: "News", infohash: "1".repeat(40), is_live: "1" };
    const { result: channel } = await call("playlist_add_item", news);

    const manifest = await json(ask, "/manifest.json");
    assertMatch(manifest.version, /^\d+\.\d+\.\d+$/);
    const films = manifest.catalogs.find(({ type }: { type: string }) => type === "movie");
    assertEquals(films.extra.at(-1), { name: "genre", options: ["Films & more"], isRequired: false });

    const named = async (path: string) =>
      (await json(ask, path)).metas.map(({ id, name }: Record<string, string>) => [id, name]);
    const found = [[`millrace:${film}`, "Größe"]];
    assertEquals(await named(`/catalog/movie/${films.id}.json`), found);
    assertEquals(await named(`/catalog/movie/${films.id}/genre=Films%20%26%20more&skip=0.json`), found);
    assertEquals(await named(`/catalog/movie/${films.id}/search=gr%C3%B6.json`), found);
    assertEquals(await named(`/catalog/movie/${films.id}/search=no%26genre.json`), []);
    assertEquals(await named(`/catalog/movie/${films.id}/skip=100.json`), []);
    assertEquals(await named("/catalog/tv/millrace-tv.json"), [[`millrace:${channel}`, "News"]]);
    assertEquals((await ask("/catalog/movie/other.json")).status, 404);

    const { meta } = await json(ask, `/meta/movie/millrace%3A${film}.json`);
    assertEquals([meta.id, meta.type, meta.behaviorHints.defaultVideoId], [`millrace:${film}`, "movie", meta.id]);
    const { meta: series } = await json(ask, `/meta/series/millrace%3A${film}.json`);
    const videos = series.videos.map((one: Record<string, unknown>) => [one["id"], one["season"], one["episode"]]);
    assertEquals(videos, [[`millrace:${film}:1`, 1, 1], [`millrace:${film}:0`, 1, 2]]);

    const { streams } = await json(ask, `/stream/series/millrace%3A${film}%3A0.json`);
    const [byUrl, byHash] = streams;
    assertEquals(byUrl.behaviorHints.videoSize, SEASON[0]!.bytes.length);
    assertEquals([byHash.infoHash, byHash.fileIdx], [season().metainfo.infohashHex, 0]);
    assertEquals(byUrl.url, `http://${AT}/video/${film}/0/S01E02.ts`);
    const range = await ask(new URL(byUrl.url).pathname, { headers: { range: "bytes=188-375" } });
    assertEquals([range.status, new Uint8Array(await range.arrayBuffer())], [206, SEASON[0]!.bytes.slice(188, 376)]);
    const { streams: [live] } = await json(ask, `/stream/tv/millrace%3A${channel}.json`);
    assertEquals(live.url, `http://${AT}/live/${channel}.m3u8`);
    const hls = await ask(`/live/${film}.m3u8`);
    assertEquals((await ask(new URL(hls.headers.get("location")!).pathname)).status, 200);
    for (const path of ["/meta/movie/tt1.json", "/meta/movie/millrace%3A99.json", "/video/1/99/x", "/video/x/1/x"]) {
      assertEquals((await ask(path)).status, 404, path);
    }
  }));

test("the add-on is for the local network, and for pages where the user says so", async () => {
  const page = { headers: { origin: "https://web.stremio.com" } };
  await withFront("stremio", async (ask, call) => {
    assertEquals((await ask("/manifest.json", page)).status, 403);
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    assertEquals((await ask("/manifest.json", { from: "internet" })).status, 403);
    assert((await ask("/stremio/manifest.json", { port: "engine", from: "intranet" })).ok);
  });
  await withFront("stremio", async (ask) => {
    for (const path of ["/manifest.json", "/none"]) {
      assertEquals((await ask(path, page)).headers.get("access-control-allow-origin"), "*", path);
    }
  }, { frontPages: ["stremio"] });
});
