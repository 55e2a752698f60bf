/** The front of a TorrServer, asked as its public clients ask: the requests and what is read are those of their sources. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { until } from "../../support/until.ts";
import { TOKEN } from "../../api/support.ts";
import { type Ask, AT, SEASON, seededSeason, withFront } from "./support.ts";

const season = seededSeason();
const [second, first] = SEASON;

// deno-lint-ignore no-explicit-any -- what clients find
type Json = any;

/** A POST of JSON, under the type with which the client sends it. */
async function post(ask: Ask, path: string, body: unknown, type = "application/json"): Promise<Json> {
  const headers = { "content-type": type };
  const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  assertEquals(response.status, 200, path);
  return await response.json();
}

const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());

test("Lampa adds a film, waits for its files, preloads and plays one", () =>
  withFront("torrserver", async (ask) => {
    const form = "application/x-www-form-urlencoded";
    const settings = await post(ask, "/settings", { action: "get" }, form);
    assert(Number.isInteger(settings.CacheSize) && settings.CacheSize > 0);
    assertEquals((await ask("/gst/echo")).status, 404);
    assertEquals((await ask("/")).status, 200);
    const data = JSON.stringify({ lampa: true, movie: { title: "Größe" } });
    const link = season().magnet;
    const add = { action: "add", link, title: "[LAMPA] Season", poster: "https://x/p.jpg", data, save_to_db: true };
    const { hash } = await post(ask, "/torrents", add, form);
    assertEquals(hash, season().metainfo.infohashHex);
    let found: Json;
    await until("the files are known", async () => {
      found = await post(ask, "/torrents", { action: "get", hash }, form);
      return found.file_stats !== undefined;
    });
    assertEquals(found.file_stats, [
      { id: 1, path: "Season/S01E01.srt", length: SEASON[2]!.bytes.length },
      { id: 2, path: "Season/S01E01.ts", length: first!.bytes.length },
      { id: 3, path: "Season/S01E02.ts", length: second!.bytes.length },
    ]);
    assertEquals([found.stat, found.stat_string, found.data], [3, "Torrent working", data]);

    // The client leaves after two seconds; later it asks the same address with another flag at its end.
    const address = `/stream/S01E01.ts?link=${hash}&index=2&preload`;
    const leaving = new AbortController();
    const preloading = ask(address, { signal: leaving.signal });
    leaving.abort();
    await preloading;
    let stat: Json;
    await until("enough is here", async () => {
      stat = await (await ask(address.replace("&preload", "&stat"))).json();
      return stat.preloaded_bytes >= 0.95 * stat.preload_size;
    });
    assert(stat.preload_size > 0 && stat.total_peers > 0);
    const cache = await post(ask, "/cache", { action: "get", hash }, form);
    assertEquals([cache.Hash, cache.Torrent.hash], [hash, hash]);
    assert(cache.Filled > 0 && Object.values<Json>(cache.Pieces).some(({ Completed }) => Completed));

    const ranged = await ask(address.replace("&preload", "&play"), { headers: { range: "bytes=188-" } });
    assertEquals([ranged.status, ranged.headers.get("content-type")], [206, "video/mp2t"]);
    assertEquals(await bytesOf(ranged), first!.bytes.slice(188));

    await post(ask, "/viewed", { action: "set", hash, file_index: 2, timecode: 61.5 }, form);
    const viewed = await post(ask, "/viewed", { action: "list", hash }, form);
    assertEquals(viewed, [{ hash, file_index: 2, timecode: 61.5 }]);
    const [listed] = await post(ask, "/torrents", { action: "list" }, form);
    assertEquals([listed.hash, listed.title, listed.data], [hash, "[LAMPA] Season", data]);
    for (const action of ["drop", "rem"]) await post(ask, "/torrents", { action, hash }, form);
    assertEquals(await post(ask, "/torrents", { action: "list" }, form), []);
  }));

test("an extension of browsers finds the server, adds links and files, and asks for a list", () =>
  withFront("torrserver", async (ask) => {
    const echo = await ask("/echo");
    assertMatch(await echo.text(), /^MatriX\.\d+$/);
    const text = "text/plain;charset=UTF-8";
    const { infohashHex: hash } = season().metainfo;
    const added = await post(ask, "/torrents", { action: "add", link: hash.toUpperCase(), save_to_db: false }, text);
    assertEquals([added.hash, added.file_stats], [hash, undefined]);
    const body = new FormData();
    body.set("file-0", new File([season().transportFile.slice()], "season.torrent"));
    body.set("save", "");
    const uploaded = await (await ask("/torrent/upload", { method: "POST", body })).json();
    assertEquals([uploaded.hash, uploaded.file_stats.length], [hash, 3]);
    const link = encodeURIComponent(encodeURIComponent(season().magnet));
    assertEquals((await ask(`/stream?link=${link}`)).status, 200);
    assertEquals((await ask(`/stream?preload&index=1&link=${hash}`, { method: "HEAD" })).status, 200);
    const list = await ask(`/stream?m3u&link=${hash}`);
    assertEquals(list.headers.get("content-type"), "audio/x-mpegurl; charset=utf-8");
    assertMatch(list.headers.get("content-disposition") ?? "", /^attachment; filename="Season\.m3u"/);
    const url = (name: string, id: number) => `http://${AT}/stream/${name}?link=${hash}&index=${id}&play`;
    assertEquals((await list.text()).split("\n"), [
      "#EXTM3U",
      "#EXTINF:0,S01E01.ts",
      `#EXTVLCOPT:input-slave=${url("S01E01.srt", 1)}#`,
      url("S01E01.ts", 2),
      "#EXTINF:0,S01E02.ts",
      url("S01E02.ts", 3),
      "",
    ]);
    const nested = await (await ask("/playlistall/all.m3u")).text();
    assertMatch(nested, new RegExp(`^http://${AT}/stream/Season\\.m3u\\?link=${hash}&m3u&fn=file\\.m3u$`, "m"));
    assert((await (await ask("/playlistall/all.m3u?flat")).text()).includes(url("S01E02.ts", 3)));
    assertEquals((await ask(`/playlist?hash=${"0".repeat(40)}`)).status, 404);
    assertEquals((await ask("/playlist")).status, 400);
  }));

test("add-ons of Kodi and makers of .strm files play by /play, with flags that have values", () =>
  withFront("torrserver", async (ask) => {
    const basic = { authorization: `Basic ${btoa(":")}` };
    const body = new FormData();
    body.set("file", new File([season().transportFile.slice()], "season.torrent"));
    const { hash } = await (await ask("/torrent/upload", { method: "POST", body, headers: basic })).json();
    // An older add-on writes the names of fields with capitals.
    assertEquals((await post(ask, "/torrents", { action: "add", Link: season().magnet, save_to_db: true })).hash, hash);
    assertEquals((await post(ask, "/torrents", { action: "get", Hash: hash })).stat, 3);
    assertEquals((await ask("/search/?query=x", { headers: basic })).status, 400);
    const status = await (await ask(`/stream?link=${season().magnet.replaceAll("&", "%26")}&stat=true`)).json();
    assertEquals([status.hash, status.stat_string], [hash, "Torrent working"]);
    const preloaded = await (await ask(`/stream?link=${hash}&index=3&preload=true&stat=true`)).json();
    assertEquals([preloaded.stat, preloaded.preload_size], [3, second!.bytes.length]);
    assertEquals(preloaded.preloaded_bytes, second!.bytes.length);
    const head = await ask(`/play/${hash}/3`, { method: "HEAD" });
    assertEquals([head.status, head.headers.get("content-length")], [200, String(second!.bytes.length)]);
    assertEquals(await bytesOf(await ask(`/play/${hash.toUpperCase()}/3`)), second!.bytes);
    assertEquals((await ask(`/play/${"0".repeat(40)}/1`)).status, 404);
    assertEquals((await ask(`/play/${hash}/9`)).status, 404);
    const played = await ask(`/stream/fname?link=${hash}&index=0&play`);
    assertEquals((await bytesOf(played)).length, first!.bytes.length);
    const probe = await (await ask(`/ffp/${hash}/3`)).json();
    assertEquals(probe.streams.map((one: Json) => one.codec_type), ["video", "audio"]);
    assertEquals(probe.format.size, String(second!.bytes.length));
    // A library in Python reads the files of torrents that sleep out of their data.
    const [kept] = await post(ask, "/torrents", { action: "list" });
    assertEquals(JSON.parse(kept.data).TorrServer.Files.map((one: Json) => one.id), [1, 2, 3]);
    assertEquals(kept.torrent_size, season().metainfo.totalBytes);
    assertEquals(await post(ask, "/torrents", { action: "set", hash, title: "Other", category: "tv" }), {});
    const [torrent] = await post(ask, "/torrents", { action: "list" });
    assertEquals([torrent.title, torrent.category], ["Other", "tv"]);
  }));

test("/settings returns every field that typed clients demand, and keeps what a preload fetches", () =>
  withFront("torrserver", async (ask) => {
    const before = await post(ask, "/settings", { action: "get" });
    for (const name of ["ReaderReadAHead", "RetrackersMode", "ConnectionsLimit", "PeersListenPort", "SslPort"]) {
      assert(Number.isInteger(before[name]), name);
    }
    for (const name of ["UseDisk", "DisableDHT", "ResponsiveMode"]) assertEquals(typeof before[name], "boolean", name);
    await post(ask, "/settings", {
      action: "set",
      sets: { ...before, CacheSize: 1e7, PreloadCache: 10, UseDisk: true },
    });
    const after = await post(ask, "/settings", { action: "get" });
    assertEquals(after, { ...before, CacheSize: 1e7, PreloadCache: 10 });
  }));

test("bodies of another form, unknown actions and hashes are refused by their statuses", () =>
  withFront("torrserver", async (ask) => {
    const status = async (path: string, body: string) => (await ask(path, { method: "POST", body })).status;
    for (const body of ["", "[", "[]", "{}", '{"action":"add"}', '{"action":"dance"}', '{"action":"get","hash":"x"}']) {
      assertEquals(await status("/torrents", body), 400, body);
    }
    assertEquals(await status("/torrents", '{"action":"add","link":"magnet:?xt=1","save_to_db":"true"}'), 400);
    assertEquals(await status("/torrents", `{"action":"get","hash":"${"0".repeat(40)}"}`), 404);
    assertEquals(await status("/torrents", `{"action":"drop","hash":"${"0".repeat(40)}"}`), 200);
    for (const link of ["file:///etc/hostname", "torrs://x", "magnet:?dn=x", "a b"]) {
      assertEquals(await status("/torrents", JSON.stringify({ action: "add", link })), 400, link);
    }
    assertEquals(await status("/torrents", `{"action":"add","link":"${"x".repeat(1_100_000)}"}`), 413);
    assertEquals(await status("/viewed", '{"action":"set"}'), 400);
    assertEquals(await status("/cache", `{"action":"get","hash":"${"0".repeat(40)}"}`), 404);
    assertEquals((await ask("/stream")).status, 400);
    assertEquals((await ask("/shutdown")).status, 403);
    assertEquals((await ask("/download/2000")).status, 400);
    const filler = await ask("/download/1", { headers: { range: "bytes=1000-1999" } });
    assertEquals([filler.status, (await bytesOf(filler)).length], [206, 1000]);
    assertEquals((await bytesOf(await ask("/download/1"))).length, 1024 * 1024);
  }));

test("the front is below its name at the engine's port, for the local network, accounts and the pages that are named", async () => {
  await withFront("torrserver", async (ask, call) => {
    const at = { port: "engine" } as const;
    assertEquals(await (await ask("/torrserver/echo", at)).text(), "MatriX.143");
    assertEquals((await ask("/echo", at)).status, 404);
    assertEquals((await ask("/torrserver/playlistall/all.m3u", { ...at, from: "intranet" })).status, 200);
    assertEquals((await ask("/echo", { from: "internet" })).status, 403);
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    const stranger = await ask("/echo", { from: "internet" });
    assertEquals(stranger.status, 401);
    assertMatch(stranger.headers.get("www-authenticate") ?? "", /^Basic realm=/);
    const page = { origin: "https://lampa.example" };
    assertEquals((await ask("/echo", { headers: page })).status, 403);
  });
  await withFront("torrserver", async (ask) => {
    const page = { origin: "https://lampa.example" };
    const preflight = await ask("/torrents", {
      method: "OPTIONS",
      headers: { ...page, "access-control-request-private-network": "true" },
    });
    assertEquals([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, "*"]);
    assertMatch(preflight.headers.get("access-control-allow-headers") ?? "", /authorization/);
    assertEquals(preflight.headers.get("access-control-allow-private-network"), "true");
    assertEquals((await ask("/echo", { headers: page })).headers.get("access-control-allow-origin"), "*");
    assertEquals((await ask("/engine/getstream", { headers: page, port: "engine" })).status, 403);
  }, { frontPages: ["torrserver"] });
});
