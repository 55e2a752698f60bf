/** The library over WebDAV, asked as file managers ask. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { TOKEN } from "../../api/support.ts";
import { type Ask, SEASON, seededSeason, withFront } from "./support.ts";

const season = seededSeason();
const [second] = SEASON;

/** Paths and lengths (null: folder) of a PROPFIND, without the folder itself. */
async function listed(ask: Ask, path: string, depth = "1"): Promise<(readonly [string, number | null])[]> {
  const response = await ask(path, { method: "PROPFIND", headers: { depth } });
  assertEquals([response.status, response.headers.get("content-type")], [207, "application/xml; charset=utf-8"], path);
  const xml = await response.text();
  return xml.split("<D:response>").slice(1).map((one) => {
    const [, href] = /<D:href>(.*?)<\/D:href>/.exec(one)!;
    const length = /<D:getcontentlength>(\d+)</.exec(one)?.[1];
    assertEquals(one.includes("<D:collection/>"), length === undefined, href);
    assertEquals(href!.endsWith("/"), length === undefined, href);
    return [href!, length === undefined ? null : Number(length)] as const;
  });
}

test("PROPFIND lists categories, items and files with their lengths, and GET reads a range of one", () =>
  withFront("webdav", async (ask, call) => {
    const item = { token: TOKEN, title: "A/B + #1 %", category: "Séries", magnet: season().magnet, is_live: "0" };
    const { result: id } = await call("playlist_add_item", item);
    await call("playlist_add_item", { ...item, title: "News", magnet: "", infohash: "1".repeat(40), is_live: "1" });
    const list = `/${encodeURIComponent("Séries")}/`;
    assertEquals(await listed(ask, "/"), [["/", null], ["/All/", null], [list, null]]);
    const folder = `${list}${encodeURIComponent(`A_B + #1 % [${id}]`)}/`;
    assertEquals(await listed(ask, list), [[list, null], [folder, null]]);
    assertEquals(await listed(ask, list.slice(0, -1), "0"), [[list, null]]);
    const sizes = SEASON.map(({ path, bytes }) => [`${folder}${path}`, bytes.length] as const);
    assertEquals(await listed(ask, folder), [[folder, null], ...sizes]);
    const file = `${folder}S01E02.ts`;
    assertEquals(await listed(ask, file), [[file, second!.bytes.length]]);
    const head = await ask(file, { method: "HEAD" });
    assertEquals([head.status, head.headers.get("content-length")], [200, String(second!.bytes.length)]);
    const range = await ask(file, { headers: { range: "bytes=188-375" } });
    assertEquals([range.status, new Uint8Array(await range.arrayBuffer())], [206, second!.bytes.slice(188, 376)]);
    assertEquals(range.headers.get("etag"), head.headers.get("etag"));
    assertMatch(await (await ask(folder)).text(), /<a href="[^"]+S01E01\.srt">S01E01\.srt<\/a>/);
    assertEquals((await ask(`/webdav${file}`, { method: "HEAD", port: "engine" })).status, 200);
    assertEquals((await listed((path, init) => ask(path, { ...init, port: "engine" }), "/webdav"))[1], [
      "/webdav/All/",
      null,
    ]);
  }));

test("PROPFIND returns what is asked for, and says which of it there is not", () =>
  withFront("webdav", async (ask) => {
    const find = (body: string, depth = "0") => ask("/", { method: "PROPFIND", headers: { depth }, body });
    const prop = (names: string) => `<?xml version="1.0"?><propfind xmlns="DAV:"><prop>${names}</prop></propfind>`;
    const some = await (await find(prop("<resourcetype/><quota-used-bytes/>"))).text();
    assertMatch(
      some,
      /<D:prop><D:resourcetype><D:collection\/><\/D:resourcetype><\/D:prop><D:status>HTTP\/1.1 200 OK</,
    );
    assertMatch(some, /<D:prop><D:quota-used-bytes\/><\/D:prop><D:status>HTTP\/1.1 404 Not Found</);
    assert((await (await find('<propfind xmlns="DAV:"><allprop/></propfind>')).text()).includes("<D:getlastmodified>"));
    assertEquals((await find("<propfind")).status, 400);
    assertEquals((await find("<other/>")).status, 400);
    assertEquals((await find("x".repeat(70_000))).status, 413);
    const infinite = await find("", "infinity");
    assertEquals(infinite.status, 403);
    assertMatch(await infinite.text(), /propfind-finite-depth/);
  }));

test("paths that lead nowhere are not found at once, and nothing can be written", () =>
  withFront("webdav", async (ask, call) => {
    const item = { token: TOKEN, title: "..", magnet: `magnet:?xt=urn:btih:${"2".repeat(40)}`, is_live: "0" };
    const { result: id } = await call("playlist_add_item", item);
    const paths = ["/All/..%2f..%2fetc", "/%2e%2e/etc", "/All/x", "/None/", "/All/%00", "/All/%ff", "/.DS_Store"];
    for (const path of [...paths, `/All/_ [${id}]/._film.mkv`, `/All/y [${id}]/`, `/${"a/".repeat(5000)}`]) {
      assertEquals((await ask(path, { method: "PROPFIND", headers: { depth: "0" } })).status, 404, path);
    }
    assertEquals(await listed(ask, "/All/"), [["/All/", null], [`/All/_%20%5B${id}%5D/`, null]]);
    for (const method of ["PUT", "DELETE", "MKCOL", "MOVE", "COPY", "PROPPATCH", "LOCK", "POST"]) {
      const refused = await ask("/All/x", { method });
      assertEquals([refused.status, refused.headers.get("allow")], [405, "OPTIONS, GET, HEAD, PROPFIND"], method);
    }
    const options = await ask("/", { method: "OPTIONS" });
    assertEquals([options.status, options.headers.get("dav")], [200, "1"]);
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    const stranger = await ask("/", { method: "OPTIONS", from: "internet" });
    assertEquals([stranger.status, stranger.headers.get("dav")], [401, "1"]);
  }));

test("an item that comes by HTTP is not listed, and asking for its files fails nothing", () =>
  withFront("webdav", async (ask, call) => {
    const item = { token: TOKEN, title: "Film", hls_manifest_url: "http://a.example/film.m3u8", is_live: "0" };
    const { result: id } = await call("playlist_add_item", item);
    const folder = `/All/${encodeURIComponent(`Film [${id}]`)}/`;
    const listed = await (await ask("/All/", { method: "PROPFIND", headers: { depth: "1" } })).text();
    assertEquals(listed.includes("Film"), false);
    assertEquals((await ask(folder, { method: "PROPFIND", headers: { depth: "1" } })).status, 404);
    assertEquals((await ask(`${folder}film.ts`)).status, 404);
  }));
