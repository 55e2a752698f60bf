import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { guardedOpen } from "../../src/content/fetch-guard.ts";
import { RedirectCookies } from "../../src/content/redirect-cookies.ts";
import { type Answer, fakeWeb } from "../support/fake-web.ts";

const never = new AbortController().signal;

test("guardedOpen() returns cookies that were set on the way to the same address", async () => {
  const wall: Answer = ({ headers }) =>
    headers.get("cookie") === "own=1; ok=1"
      ? new Response("list")
      : new Response(null, { status: 302, headers: { location: "/l", "set-cookie": "ok=1; Path=/" } });
  const { ports } = fakeWeb({ "http://h.example/l": wall });
  const options = { timeoutMs: 5000, allowPrivate: false, headers: { cookie: "own=1" } };
  const { status, body } = await guardedOpen(ports, "http://h.example/l", options, never);
  assertEquals([status, await new Response(body).text()], [200, "list"]);
});

test("RedirectCookies.added() gives each host only what it, or its domain, has set", () => {
  const table: [set: string, at: string, asked: string, sent: string | null][] = [
    ["a=1", "http://h.example/x/y", "http://h.example:81/", "a=1"],
    ["a=1", "http://h.example/", "http://w.h.example/", null],
    ["a=1; Domain=.h.example", "http://w.h.example/", "http://h.example/", "a=1"],
    ["a=1; domain=h.example", "http://h.example/", "http://w.h.example/", "a=1"],
    ["a=1; domain=other.example", "http://h.example/", "http://other.example/", null],
    ["a=1; domain=example", "http://h.example/", "http://other.example/", null],
    ["a=1; domain=0.0.1", "http://127.0.0.1/", "http://1.0.0.1/", null],
    ["a=1; Secure", "https://h.example/", "http://h.example/", null],
    ["a=1; Secure", "https://h.example/", "https://h.example/", "a=1"],
    ["nonsense", "http://h.example/", "http://h.example/", null],
    [`a=${"x".repeat(5000)}`, "http://h.example/", "http://h.example/", null],
  ];
  for (const [set, at, asked, sent] of table) {
    const cookies = new RedirectCookies();
    cookies.note(new URL(at), new Headers({ "set-cookie": set }));
    assertEquals(cookies.added(new Headers(), new URL(asked)).get("cookie"), sent, `${set.slice(0, 40)} ${asked}`);
  }
  const cookies = new RedirectCookies();
  for (const set of ["a=1", "b=2", "a=3"]) cookies.note(new URL("http://h/"), new Headers({ "set-cookie": set }));
  assertEquals(cookies.added(new Headers(), new URL("http://h/")).get("cookie"), "a=3; b=2");
});
