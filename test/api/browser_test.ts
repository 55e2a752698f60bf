/** What pages in the user's browser can do with the engine on the same machine: CORS, CSRF, DNS rebinding, SSRF. */
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { serveWeb } from "../support/web.ts";
import { TOKEN, withServed } from "./support.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";

/** Headers that a browser sends for a page of another origin: fetch, form, image, frame, sandboxed frame, link. */
const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { origin: "https://page.example", "sec-fetch-site": "cross-site" },
  { origin: "https://page.example" },
  { origin: "null" },
  { origin: "http://127.0.0.1:1" },
  { origin: "http://localhost" },
  { "sec-fetch-site": "cross-site" },
  { "sec-fetch-site": "same-site" },
];

test("a page of another origin changes nothing, even with the token (CSRF)", async () => {
  await withServed(async ({ url }) => {
    const own = async (method: string, more = {}) =>
      (await (await fetch(`${url}/server/api?${new URLSearchParams({ method, token: TOKEN, ...more })}`)).json())
        .result;
    await own("playlist_add_item", { title: "kept", infohash: ID });
    const before = JSON.stringify([
      await own("playlist_get"),
      await own("check_auth"),
      await own("playlist_trash_get"),
    ]);
    for (const headers of FOREIGN) {
      for (const { name, public: isPublic } of METHODS) {
        if (isPublic) continue;
        const fields = {
          method: name,
          token: TOKEN,
          id: "1",
          ids: "1",
          value: "0",
          title: "hacked",
          owner: "",
          infohash: ID,
        };
        const body = new FormData();
        for (const [field, value] of Object.entries(fields)) body.set(field, value);
        const query = new URLSearchParams(fields);
        const requests: [string, RequestInit][] = [
          [`${url}/server/api?${query}`, {}],
          [`${url}/service/api?${query}`, { method: "POST" }],
          [`${url}/server/api`, { method: "POST", body: query }],
          [`${url}/server/api`, { method: "POST", body }],
          // What a form sends with enctype="text/plain".
          [`${url}/server/api?${query}`, { method: "POST", body: "a=b", headers: { "content-type": "text/plain" } }],
        ];
        for (const [target, init] of requests) {
          const response = await fetch(target, { ...init, headers: { ...init.headers as object, ...headers } });
          const { error } = await response.json();
          assertEquals(error?.code, 4, `${name} ${JSON.stringify(headers)}`);
        }
      }
    }
    const after = JSON.stringify([await own("playlist_get"), await own("check_auth"), await own("playlist_trash_get")]);
    assertEquals(after, before);
    // The engine's own pages may, with the token.
    const same = await fetch(`${url}/server/api?method=check_auth&token=${TOKEN}`, {
      headers: { origin: url, "sec-fetch-site": "same-origin" },
    });
    assertEquals((await same.json()).error, null);
  });
});

/** Public methods that reveal nothing about the user, listed by hand. */
const FOR_ANY_PAGE = ["get_status", "get_network_connection_status"];
/** Public methods that reveal the token, or start or change something, listed by hand. */
const FOR_NO_PAGE = [
  "get_api_access_token",
  "open_in_player",
  "get_player_status",
  "control_player",
  "analyze_deferred_playlist_items",
];

test("public methods refuse pages of other origins unless they reveal nothing about the user (CSRF)", async () => {
  await withServed(async ({ url }) => {
    for (const { name, public: isPublic } of METHODS) {
      if (!isPublic) continue;
      for (const headers of FOREIGN) {
        // Bad values: a call that is let in fails at its parameters and does no more.
        const query = new URLSearchParams({ method: name, player_id: "", playlist_item_id: "x", id: "x" });
        const { error } = await (await fetch(`${url}/server/api?${query}`, { headers })).json();
        assertEquals(error?.code === 4, !FOR_ANY_PAGE.includes(name), `${name} ${JSON.stringify(headers)}`);
      }
    }
  });
});

test("pages of an allowed origin call public methods and read the answers, and none that needs the token", async () => {
  await withServed(async ({ url }) => {
    for (const { name, public: isPublic } of METHODS) {
      for (
        const headers of [
          { origin: "https://tv.example", "sec-fetch-site": "cross-site" },
          { referer: "https://tv.example/", "sec-fetch-site": "cross-site" },
          { referer: "https://tv.example/" },
        ] as Record<string, string>[]
      ) {
        const query = new URLSearchParams({
          method: name,
          token: TOKEN,
          player_id: "",
          playlist_item_id: "x",
          id: "x",
        });
        const answer = await fetch(`${url}/server/api?${query}`, { headers });
        const { error } = await answer.json();
        const isRefused = !isPublic || FOR_NO_PAGE.includes(name);
        assertEquals(error?.code === 4, isRefused, `${name} ${JSON.stringify(headers)}`);
        const readers = answer.headers.get("access-control-allow-origin");
        assertEquals(readers, isRefused ? null : "https://tv.example", name);
      }
    }
    const other = await fetch(`${url}/server/api?method=get_media_files`, { headers: { origin: "http://tv.example" } });
    assertEquals((await other.json()).error.code, 4);
  }, { allowOrigins: ["https://tv.example"] });
});

test("a preflight of another origin gets no permission for the API", async () => {
  await withServed(async ({ url }) => {
    for (const path of ["/server/api?method=playlist_get", "/service/api", "/openapi.json", "/.well-known/jwks.json"]) {
      const response = await fetch(url + path, {
        method: "OPTIONS",
        headers: { origin: "https://page.example", "access-control-request-method": "POST" },
      });
      await response.body?.cancel();
      const granted = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
      assertEquals(granted, [], path);
      assert(response.status >= 400, path);
    }
  });
});

test("documents about the user are refused to pages of other origins", async () => {
  await withServed(async ({ url }) => {
    for (const path of ["/openapi.json", "/.well-known/jwks.json", "/webui/api/service?method=get_version"]) {
      const response = await fetch(url + path, { headers: { origin: "https://page.example" } });
      await response.body?.cancel();
      assertEquals(response.headers.get("access-control-allow-origin"), null, path);
    }
  });
});

/** The status of a request whose Host header `fetch` would not let a test choose. */
function statusFor(url: string, path: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    httpRequest({ hostname, port, path, headers: { host }, agent: false }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
    }).once("error", reject).end();
  });
}

test("a name that leads here without being allowed is answered 421 on every path (DNS rebinding)", async () => {
  const paths = [
    `/server/api?method=get_api_access_token`,
    `/service/api?method=playlist_get&token=${TOKEN}`,
    "/webui/api/service?method=get_version",
    "/openapi.json",
    "/.well-known/jwks.json",
    `/engine/getstream?infohash=${ID}`,
    `/engine/stat/${ID}/${"0".repeat(32)}`,
    "/nothing",
  ];
  await withServed(async ({ url }) => {
    const { host, port } = new URL(url);
    for (const path of paths) {
      for (
        const name of [
          "evil.example",
          `evil.example:${port}`,
          "127.0.0.1.evil.example",
          "localhost.evil.example",
          "0.0.0.0",
          "[::2]",
        ]
      ) assertEquals(await statusFor(url, path, name), 421, `${path} ${name}`);
    }
    const token = paths[0]!;
    for (const name of [host, `localhost:${port}`, "LOCALHOST", "[::1]", "nas.home", `192.168.7.5:${port}`]) {
      assertEquals(await statusFor(url, token, name), 200, name);
    }
  }, { allowedHosts: ["nas.home"] });
});

test("a page has nothing fetched from the user's network, by the API or by playback", async () => {
  const web = await serveWeb((_request, response) =>
    response.writeHead(200).end("#EXTM3U\n#EXTINF:-1,a\nhttp://x/a.ts\n")
  );
  try {
    await withServed(async ({ url }) => {
      const inside = encodeURIComponent(`${web.base}/router?reboot`);
      const paths = [
        `/engine/getstream?format=json&url=${inside}`,
        `/engine/manifest.m3u8?format=json&url=${inside}`,
        `/engine/getfile?format=json&url=${inside}`,
        `/server/api?method=get_media_files&url=${inside}`,
        `/server/api?method=get_content_id&url=${inside}`,
        `/server/api?method=analyze_content&query=${inside}`,
        `/server/api?method=analyze_content_multi&query=${inside}`,
        `/server/api?method=parse_m3u_playlist&url=${inside}`,
      ];
      for (const path of paths) {
        for (const headers of FOREIGN) {
          const text = await (await fetch(url + path, { headers })).text();
          assertMatch(text, /may not play here|cross-origin requests are refused/, path);
        }
        // Nor for pages that may play: they are not the user.
        const allowed = await fetch(url + path, { headers: { origin: "https://tv.example" } });
        assertMatch(await allowed.text(), /private network|unknown protocol/, path);
        assertEquals(web.asked.length, 0, path);
      }
      // The same from a program on this machine goes through: it is the page that is refused.
      for (const path of paths) {
        const before = web.asked.length;
        await (await fetch(url + path)).body?.cancel();
        assert(web.asked.length > before, path);
      }
    }, { allowOrigins: ["https://tv.example"] });
  } finally {
    await web.close();
  }
});
