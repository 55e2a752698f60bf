import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { fetchRedirected } from "../../src/discovery/redirects.ts";
import { MillraceError } from "../../src/errors.ts";

const request = { headers: { range: "bytes=0-9" }, signal: new AbortController().signal };

/** A web in which each URL redirects to the next of `path`; the last one serves a body. */
function web(path: readonly string[]) {
  const asked: string[] = [];
  const fetch = ((url: string, init: RequestInit) => {
    asked.push(url);
    assertEquals([init.redirect, new Headers(init.headers).get("range")], ["manual", "bytes=0-9"]);
    const location = path[asked.length];
    return Promise.resolve(
      location === undefined ? new Response("end") : new Response("", { status: 302, headers: { location } }),
    );
  }) as typeof globalThis.fetch;
  const guarded: string[] = [];
  const publicFetch = ((url: string, init: RequestInit) => {
    guarded.push(url);
    return fetch(url, init);
  }) as typeof globalThis.fetch;
  return { asked, guarded, go: () => fetchRedirected({ fetch, publicFetch }, path[0]!, request, "tracker") };
}

test("fetchRedirected() follows redirects, including relative ones and those within the local network", async () => {
  for (const path of [["http://a.example/x", "/y", "https://b.example/z"], ["http://10.0.0.1/", "http://127.0.0.1/"]]) {
    assertEquals(await (await web(path).go()).text(), "end");
  }
  const relative = web(["http://a.example/x/y", "z?1"]);
  await relative.go();
  assertEquals(relative.asked, ["http://a.example/x/y", "http://a.example/x/z?1"]);
});

test("fetchRedirected() refuses redirects from the public network to local addresses, and to other schemes", async () => {
  const table: [string[], string][] = [
    [["http://a.example/", "http://127.0.0.1/"], "denied"],
    [["http://a.example/", "http://[::1]/"], "denied"],
    [["http://a.example/", "http://localhost/"], "denied"],
    [["http://a.example/", "http://b.example/", "http://192.168.1.1/admin"], "denied"],
    [["http://a.example/", "ftp://b.example/"], "tracker"],
    [["http://a.example/", "http://["], "tracker"],
    [Array.from({ length: 9 }, (_, i) => `http://a.example/${i}`), "tracker"],
  ];
  for (const [path, code] of table) {
    const { asked, go } = web(path);
    assertEquals((await assertRejects(go, MillraceError)).code, code, path.join(" "));
    assertEquals(asked.some((url) => url.includes("127.0.0.1") || url.includes("192.168")), false);
  }
});

test("fetchRedirected() sends the credentials of a URL as a field, to its origin alone", async () => {
  const seen: string[] = [];
  const path = ["http://a.example/1", "https://a.example/2", "http://b:2@c.example/3", "http://c.example/4"];
  const fetch = ((url: string, init: RequestInit) => {
    const field = new Headers(init.headers).get("authorization")?.replace("Basic ", "");
    seen.push(`${url} ${field === undefined ? "-" : atob(field)}`);
    const location = path[seen.length - 1];
    return Promise.resolve(
      location === undefined ? new Response("end") : new Response("", { status: 302, headers: { location } }),
    );
  }) as typeof globalThis.fetch;
  await fetchRedirected({ fetch, publicFetch: fetch }, "http://us:p%40w@a.example/", request, "tracker");
  assertEquals(seen, [
    "http://a.example/ us:p@w",
    "http://a.example/1 us:p@w",
    "https://a.example/2 -",
    "http://c.example/3 b:2",
    "http://c.example/4 b:2",
  ]);
});

test("fetchRedirected() looks up names that a server may not know to be private, before it asks another host", async () => {
  const path = ["http://a.example/", "/1", "https://a.example/2", "http://inside.example/", "http://a.example/3"];
  const far = web(path);
  await far.go();
  assertEquals(far.guarded, ["http://inside.example/", "http://a.example/3"]);
  const near = web(["http://192.168.1.2/", "http://nas.example/"]);
  await near.go();
  assertEquals(near.guarded, []);
});
