import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { exactOrigin, originOf } from "../../src/bytes/origin.ts";
import { pageOf, sessionOwner } from "../../src/http/page.ts";

const OWN = "http://127.0.0.1:6878";
const EVIL = "https://evil.example";
const page = (headers: Record<string, string>) => pageOf(new Request(`${OWN}/x`, { headers }), OWN);

test("pageOf() distinguishes programs, the engine's own pages and foreign pages", () => {
  const table: [Record<string, string>, string, string | null][] = [
    [{}, "none", null],
    [{ "user-agent": "VLC/3.0.20 LibVLC/3.0.20", range: "bytes=0-" }, "none", null],
    [{ "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, "none", null],
    [{ "sec-fetch-site": "same-origin" }, "same", null],
    [{ "sec-fetch-site": "same-origin", origin: OWN }, "same", null],
    [{ origin: OWN }, "same", null],
    [{ origin: OWN.toUpperCase() }, "same", null],
    [{ referer: `${OWN}/engine/x` }, "same", null],
    [{ origin: EVIL }, "foreign", EVIL],
    [{ origin: EVIL, "sec-fetch-site": "cross-site" }, "foreign", EVIL],
    [{ origin: EVIL, "sec-fetch-site": "none" }, "foreign", EVIL],
    [{ origin: EVIL, "sec-fetch-site": "same-origin" }, "foreign", EVIL],
    [{ origin: OWN, "sec-fetch-site": "cross-site" }, "foreign", OWN],
    [{ origin: "null" }, "foreign", null],
    [{ origin: "null", referer: `${OWN}/` }, "foreign", null],
    [{ origin: "" }, "foreign", null],
    [{ origin: "http://127.0.0.1:1" }, "foreign", "http://127.0.0.1:1"],
    [{ origin: "http://127.0.0.1" }, "foreign", "http://127.0.0.1"],
    [{ origin: "https://127.0.0.1:6878" }, "foreign", "https://127.0.0.1:6878"],
    [{ origin: "http://localhost:6878" }, "foreign", "http://localhost:6878"],
    // Images, media elements, frames and links come without an Origin.
    [{ "sec-fetch-site": "cross-site" }, "foreign", null],
    [{ "sec-fetch-site": "same-site" }, "foreign", null],
    [{ "sec-fetch-site": "anything new" }, "foreign", null],
    [{ "sec-fetch-site": "cross-site", referer: `${EVIL}/a?b` }, "foreign", EVIL],
    [{ "sec-fetch-site": "cross-site", referer: `${OWN}/` }, "foreign", null],
    // Older browsers, and addresses that are neither encrypted nor loopback.
    [{ referer: `${EVIL}/a` }, "foreign", EVIL],
    [{ referer: "about:blank" }, "foreign", null],
  ];
  for (const [headers, relation, origin] of table) {
    assertEquals(page(headers), { relation, origin } as never, JSON.stringify(headers));
  }
});

test("sessionOwner() separates pages, and browsers that do not name one, from the user's players", () => {
  const owner = (headers: Record<string, string>) => sessionOwner(new Request(OWN, { headers }), page(headers));
  const browser = { "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/140" };
  assertEquals(owner({}), null);
  assertEquals(owner({ "user-agent": "Lavf/60.3.100" }), null);
  assertEquals(owner({ ...browser, "sec-fetch-site": "none" }), null);
  assertEquals(owner({ ...browser, "sec-fetch-site": "same-origin" }), null);
  assertEquals(owner({ ...browser, origin: OWN }), null);
  assertEquals(owner(browser), "browser");
  assertEquals(owner({ ...browser, origin: EVIL }), EVIL);
  assertEquals(owner({ "sec-fetch-site": "cross-site" }), "null");
});

test("originOf() writes origins as browsers do", () => {
  const table: [string, string | null][] = [
    ["https://Example.COM:443/x", "https://example.com"],
    ["http://example.com:80", "http://example.com"],
    ["http://example.com:8080/", "http://example.com:8080"],
    ["http://bücher.example/", "http://xn--bcher-kva.example"],
    ["HTTP://[::1]:80/", "http://[::1]"],
    ["chrome-extension://AbC/page", "chrome-extension://abc"],
    ["null", null],
    ["*", null],
    ["", null],
    ["//example.com", null],
    ["https://user@example.com", null],
    ["http://", null],
    [`https://${"a".repeat(400)}.example`, null],
  ];
  for (const [url, origin] of table) assertEquals(originOf(url), origin, url);
  for (
    const [text, origin] of [["https://a.example/", "https://a.example"], ["https://a.example/b", null], [
      "https://u@a",
      null,
    ]]
  ) {
    assertEquals(exactOrigin(text!), origin, text!);
  }
});
