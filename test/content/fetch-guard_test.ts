import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { guardedFetch, isPublicAddress } from "../../src/content/fetch-guard.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";

const LIMITS = { maxBytes: 1000, timeoutMs: 5000, allowPrivate: false };
const never = new AbortController().signal;

function ports(answers: Record<string, () => Response>, names: Record<string, string[]> = {}) {
  const asked: string[] = [];
  return {
    asked,
    clock: new FakeClock(),
    network: { interfaces: () => [], resolve: (host: string) => Promise.resolve(names[host] ?? []) },
    fetch: ((url: string, init: RequestInit) => {
      asked.push(url);
      return new Promise((resolve, reject) => {
        init.signal?.addEventListener("abort", () => reject(init.signal?.reason));
        const answer = answers[url];
        if (answer) resolve(answer());
      });
    }) as typeof fetch,
  };
}

test("isPublicAddress() knows private, loopback, link-local and mapped ranges (B27)", () => {
  for (
    const host of [
      "10.0.0.1",
      "127.0.0.1",
      "169.254.1.1",
      "192.168.0.1",
      "172.16.0.1",
      "::1",
      "fe80::1",
      "fd00::1",
      "::ffff:10.0.0.1",
      "0.0.0.0",
      "224.0.0.1",
      "x",
    ]
  ) {
    assertEquals(isPublicAddress(host), false, host);
  }
  for (const host of ["8.8.8.8", "2606:4700::1111"]) assertEquals(isPublicAddress(host), true, host);
});

test("guardedFetch() refuses private targets, also behind a redirect or a name (B27)", async () => {
  const p = ports({
    "http://pub.example/": () => new Response(null, { status: 302, headers: { location: "http://10.0.0.1/x" } }),
  }, { "pub.example": ["8.8.8.8"], "mixed.example": ["8.8.8.8", "127.0.0.1"] });
  for (
    const url of [
      "http://127.0.0.1/",
      "http://[::1]/",
      "http://mixed.example/",
      "http://nowhere.example/",
      "http://pub.example/",
    ]
  ) {
    const error = await assertRejects(() => guardedFetch(p, url, LIMITS, never), MillraceError);
    assertEquals(error.code, "denied", url);
  }
  assertEquals(p.asked, ["http://pub.example/"]);
});

test("guardedFetch() reads a body within its limit and follows redirects", async () => {
  const p = ports({
    "http://a/": () => new Response(null, { status: 301, headers: { location: "/b" } }),
    "http://a/b": () => new Response("hello"),
    "http://a/big": () => new Response("x".repeat(2000)),
    "http://a/none": () => new Response("no", { status: 404 }),
    "http://a/loop": () => new Response(null, { status: 302, headers: { location: "/loop" } }),
  });
  const open = { ...LIMITS, allowPrivate: true };
  assertEquals(new TextDecoder().decode((await guardedFetch(p, "http://a/", open, never)).bytes), "hello");
  const codes: [string, string][] = [
    ["http://a/big", "too_large"],
    ["http://a/none", "not_found"],
    ["http://a/loop", "connection_failed"],
    ["ftp://a/", "invalid_argument"],
    ["::", "invalid_argument"],
  ];
  for (const [url, code] of codes) {
    assertEquals(
      (await assertRejects(() => guardedFetch(p, url, open, never), MillraceError)).code,
      code as never,
      url,
    );
  }
});

test("guardedFetch() gives up at its deadline", async () => {
  const p = ports({});
  const pending = guardedFetch(p, "http://silent/", { ...LIMITS, allowPrivate: true }, never);
  p.clock.advance(5001);
  assertEquals((await assertRejects(() => pending, MillraceError)).code, "timeout");
});
