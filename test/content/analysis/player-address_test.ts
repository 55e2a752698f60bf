import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { headersFor, readPlayerAddress } from "../../../src/content/analysis/player-address.ts";

test("readPlayerAddress() splits off the headers to send, and ignores those that players may not set", () => {
  const table: [string, string, Record<string, string>][] = [
    ["http://a/x", "http://a/x", {}],
    ["http://a/x|", "http://a/x", {}],
    ["http://a/x|User-Agent=VLC%2F3 x&Referer=http://b/?c=d", "http://a/x", {
      "user-agent": "VLC/3 x",
      referer: "http://b/?c=d",
    }],
    ["http://a/x |user-agent=A|B", "http://a/x", { "user-agent": "A|B" }],
    ["http://a/x|Authorization=Basic x&Host=b&Range=bytes=0-&X-Forwarded-For=127.0.0.1", "http://a/x", {}],
    ["http://a/x|User-Agent=a%0d%0aHost: b", "http://a/x", {}],
    ["http://a/x|User-Agent=%zz", "http://a/x", { "user-agent": "%zz" }],
    ["http://a/x|User-Agent=&Cookie=", "http://a/x", {}],
    [`http://a/x|Cookie=${"x".repeat(3000)}`, "http://a/x", {}],
    ["http://a/x|=&&=x&novalue", "http://a/x", {}],
  ];
  for (const [address, url, headers] of table) assertEquals(readPlayerAddress(address), { url, headers }, address);
});

test("headersFor() keeps a player's cookies and referrer at their origin", () => {
  const address = readPlayerAddress("http://a/x|User-Agent=A&Cookie=c&Referer=http://b/");
  assertEquals(headersFor(address, "http://a/y"), { "user-agent": "A", cookie: "c", referer: "http://b/" });
  assertEquals(headersFor(address, "http://b/y"), { "user-agent": "A" });
  assertEquals(headersFor(readPlayerAddress("http://a/x|Cookie=c"), "https://a/x"), {});
});
