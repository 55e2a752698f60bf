/** What strangers send to fronts: malformed bodies, paths that climb, ids that are none. Each is answered, by none as a fault. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { type Ask, withFront } from "./support.ts";

/** No address, and no part of one, may reach a file. */
const CLIMBING = [
  "/../../etc/passwd",
  "/..%2f..%2fetc%2fpasswd",
  "/%2e%2e/%2e%2e/etc/passwd",
  "/..%5c..%5cwindows",
  "/%00",
  "/%zz",
];
const NUMBERS = ["-1", "1e9", "999999999999999999999", "0x10", "NaN", "%F0%9F%92%A9"];
const HASH = "1".repeat(40);
const DEEP = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
const BODIES = ["", "{", "[]", "null", '"text"', "\u0000", '{"action":1}', `{"action":"add","link":${DEEP}}`, DEEP];

/** Asks, reads the whole answer, and asserts that it is a refusal, or an answer of a server that is well. */
async function assertWell(ask: Ask, path: string, init: RequestInit = {}): Promise<Response> {
  const response = await ask(path, init);
  const text = await response.text();
  const what = `${init.method ?? "GET"} ${path.slice(0, 80)} ${String(init.body ?? "").slice(0, 40)}`;
  assert(response.status !== 500 && response.status < 508, `${what}: ${response.status} ${text.slice(0, 200)}`);
  assert(!text.includes("root:"), what);
  return response;
}

test("--front torrserver refuses malformed bodies, ids and links", () =>
  withFront("torrserver", async (ask) => {
    for (const path of CLIMBING) await assertWell(ask, `/playlist${path}`);
    for (const path of ["/torrents", "/settings", "/viewed", "/cache", "/torrent/upload"]) {
      for (const body of BODIES) {
        const { status } = await assertWell(ask, path, { method: "POST", body });
        assertEquals(status, 400, `${path} ${body.slice(0, 40)}`);
      }
    }
    for (const id of [...NUMBERS, "../1"]) await assertWell(ask, `/play/${HASH}/${id}`);
    for (const link of ["file:///etc/passwd", "javascript:1", "magnet:?xt=urn:btih:x", "x".repeat(70_000)]) {
      const { status } = await assertWell(ask, `/stream?play&link=${encodeURIComponent(link)}`);
      assert(status >= 400 && status < 500, link.slice(0, 40));
    }
    assertEquals((await assertWell(ask, "/download/999999999")).status, 400);
    assertEquals((await ask("/shutdown")).status, 403);
  }));

test("--front webdav refuses malformed bodies, and paths that climb lead nowhere", () =>
  withFront("webdav", async (ask) => {
    for (const path of [...CLIMBING, `/All/${"x".repeat(9000)}`, "/All/x [1]/..", "/All/x [99999999999999999]/a"]) {
      const response = await assertWell(ask, path, { method: "PROPFIND", headers: { depth: "1" } });
      assert([404, 207].includes(response.status), path);
      await assertWell(ask, path);
    }
    const entity = '<!DOCTYPE x [<!ENTITY a "aaaa">]><propfind xmlns="DAV:">&a;</propfind>';
    for (const body of ["<", "text", entity, `${"<a>".repeat(2000)}`, "x".repeat(100_000)]) {
      const { status } = await assertWell(ask, "/", { method: "PROPFIND", body, headers: { depth: "0" } });
      assert(status === 400 || status === 413, body.slice(0, 40));
    }
    for (const depth of ["infinity", "2", "-1", "x"]) {
      assertEquals((await assertWell(ask, "/", { method: "PROPFIND", headers: { depth } })).status, 403, depth);
    }
    for (const method of ["PUT", "DELETE", "MKCOL", "MOVE", "COPY", "PROPPATCH", "LOCK", "POST"]) {
      assertEquals((await assertWell(ask, "/All/x", { method })).status, 405, method);
    }
  }));

test("--front stremio refuses paths that climb, and ids that are none", () =>
  withFront("stremio", async (ask) => {
    for (const path of CLIMBING) assertEquals((await assertWell(ask, `/video${path}`)).status, 404, path);
    for (const id of [...NUMBERS, ...CLIMBING.map((path) => path.slice(1)), "millrace%3A1e5", "%zz"]) {
      for (const path of [`/meta/movie/${id}.json`, `/stream/series/${id}.json`, `/catalog/movie/${id}.json`]) {
        const { status } = await assertWell(ask, path);
        assert(status === 404 || status === 400, path);
      }
      await assertWell(ask, `/catalog/movie/millrace-movie/skip=${id}.json`);
      await assertWell(ask, `/video/${id}/0/x`);
      await assertWell(ask, `/live/${id}.m3u8`);
    }
    await assertWell(ask, `/catalog/movie/millrace-movie/search=${"a".repeat(60_000)}.json`);
  }));

test("--front stremio-server refuses malformed bodies, paths that climb, and addresses that are none", () =>
  withFront("stremio-server", async (ask) => {
    for (const path of CLIMBING) {
      assertEquals((await assertWell(ask, `/x/y${path}`)).status, 404, path);
      await assertWell(ask, `/tracks${path}`);
      await assertWell(ask, `/hlsv2${path}/master.m3u8`);
    }
    for (const path of ["/create", `/${HASH}/create`]) {
      for (const body of [...BODIES.filter((body) => body !== '{"action":1}'), '{"blob":"zz"}', '{"guessFileIdx":5}']) {
        const { status } = await assertWell(ask, path, { method: "POST", body });
        assert(
          status === 400 || (path !== "/create" && body.startsWith('{"') && status === 200),
          `${path} ${body.slice(0, 40)}`,
        );
      }
    }
    for (const id of NUMBERS) {
      assertEquals(await (await ask(`/${HASH}/${id}/stats.json`)).json(), null, id);
    }
    for (const address of ["", "x", "file:///etc/passwd", "data:,x", "http://[::1"]) {
      const value = encodeURIComponent(address);
      for (const path of [`/hlsv2/probe?mediaURL=${value}`, `/subtitles.vtt?from=${value}`]) {
        const { status } = await assertWell(ask, path);
        assert(status >= 400 && status < 500, `${path} ${status}`);
      }
      assertEquals((await (await ask(`/opensubHash?videoUrl=${value}`)).json()).result, null, address);
    }
    assertEquals((await assertWell(ask, "/create", { method: "POST", body: "x".repeat(4_200_000) })).status, 413);
  }));

test("--front xtream tells strangers nothing, whatever they send", () =>
  withFront("xtream", async (ask) => {
    // A password that can be one would cost a check of half a second.
    for (const name of ["", "x".repeat(5000)]) {
      const answer = await ask(`/player_api.php?username=${name}&password=${name}&action=get_vod_streams`);
      assertEquals([answer.status, await answer.json()], [200, { user_info: { auth: 0 } }], name.slice(0, 20));
    }
    const long = "x".repeat(2000);
    for (const path of [`/live/${long}/b/1.ts`, `/movie/b/${long}/1.ts`, `/a/${long}/1`, `/series/${long}/b/..%2f1`]) {
      const { status } = await assertWell(ask, path);
      assert(status >= 400 && status < 500, `${path.slice(0, 20)} ${status}`);
    }
  }));

test("--front torznab answers whatever is asked with XML, and climbs nowhere", () =>
  withFront("torznab", async (ask) => {
    for (const path of CLIMBING) {
      for (const place of [`/api${path}`, `/api/v2.0/indexers${path}/results/torznab/api`]) {
        const { status } = await assertWell(ask, place);
        assert(status === 404 || status === 200, `${place} ${status}`);
      }
    }
    for (const value of [...NUMBERS, "%00", "%zz", "'\"><&]]>", "x".repeat(5000), "%22".repeat(1000)]) {
      for (const name of ["t", "q", "cat", "season", "ep", "offset", "limit", "apikey", "year", "tvdbid"]) {
        const query = name === "t" ? `t=${value}` : `t=tvsearch&${name}=${value}`;
        const response = await ask(`/api?${query}`);
        assertEquals(response.status, 200, query.slice(0, 60));
        assert(/^<\?xml[^]*(?:<\/rss>|<error [^<>&]*\/>)\n$/.test(await response.text()), query.slice(0, 60));
      }
    }
    const categories = Array.from({ length: 5000 }, (_, at) => at).join(",");
    assertEquals((await assertWell(ask, `/api?t=search&cat=${categories}`)).status, 200);
  }));

test("--front qbittorrent refuses malformed forms, links and infohashes", () =>
  withFront("qbittorrent", async (ask) => {
    const post = (path: string, body: BodyInit, type?: string) =>
      assertWell(ask, `/api/v2/${path}`, {
        method: "POST",
        body,
        headers: type === undefined ? {} : { "content-type": type },
      });
    const form = "application/x-www-form-urlencoded";
    const multipart = "multipart/form-data; boundary=x";
    const part = '--x\r\ncontent-disposition: form-data; name="urls"\r\n\r\n\r\n';
    for (
      const [body, type, status] of [
        ["{", "application/json", 400],
        ["no form", multipart, 400],
        [`${part.repeat(2000)}--x--\r\n`, multipart, 400],
        ["urls=".padEnd(1_100_000, "x"), form, 413],
      ] as const
    ) {
      assertEquals((await post("torrents/add", body, type)).status, status, body.slice(0, 20));
    }
    for (const link of ["", "x", "file:///etc/passwd", "javascript:1", "magnet:?xt=urn:btih:x", "%00", HASH.slice(1)]) {
      const answer = await ask("/api/v2/torrents/add", { method: "POST", body: new URLSearchParams({ urls: link }) });
      assertEquals([answer.status, await answer.text()], [200, "Fails."], link);
    }
    const many = new URLSearchParams({ urls: `magnet:?xt=urn:btih:${HASH}\n`.repeat(60) });
    assertEquals(await (await ask("/api/v2/torrents/add", { method: "POST", body: many })).text(), "Fails.");
    const file = new FormData();
    file.set("torrents", new File(["d4:infod6:lengthi-1ee"], "x.torrent"));
    assertEquals(await (await ask("/api/v2/torrents/add", { method: "POST", body: file })).text(), "Fails.");
    for (const id of [...NUMBERS, HASH, "..", "%00"]) {
      for (const path of ["properties", "files", "trackers"]) {
        assertEquals((await assertWell(ask, `/api/v2/torrents/${path}?hash=${id}`)).status, 404, id);
      }
      for (const path of ["delete", "stop", "start", "setCategory", "setShareLimits", "addTags"]) {
        const fields = { hashes: id, category: "", ratioLimit: id, tags: id, deleteFiles: "true" };
        const { status } = await assertWell(ask, `/api/v2/torrents/${path}`, {
          method: "POST",
          body: new URLSearchParams(fields),
        });
        assertEquals(status, 200, `${path} ${id}`);
      }
    }
    assertEquals((await post("torrents/delete", "", form)).status, 400);
    assertEquals((await post("torrents/createCategory", `category=${"x".repeat(300)}`, form)).status, 400);
    for (const path of CLIMBING) assertEquals((await assertWell(ask, `/api/v2${path}`)).status, 404, path);
    assertEquals((await assertWell(ask, "/api/v2/auth/login", { method: "POST", body: "x" })).status, 400);
  }));
