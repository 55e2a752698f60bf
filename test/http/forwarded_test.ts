import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { forwardedChains, isForwarded, parseForwarded } from "../../src/http/forwarded.ts";
import { seeded } from "../support/random.ts";

test("parseForwarded() reads elements as RFC 7239 writes them", () => {
  const table: [string, Record<string, string>[] | null][] = [
    // The examples of section 4.
    ['for="_gazonk"', [{ for: "_gazonk" }]],
    ['For="[2001:db8:cafe::17]:4711"', [{ for: "[2001:db8:cafe::17]:4711" }]],
    ["for=192.0.2.60;proto=http;by=203.0.113.43", [{ for: "192.0.2.60", proto: "http", by: "203.0.113.43" }]],
    ["for=192.0.2.43, for=198.51.100.17", [{ for: "192.0.2.43" }, { for: "198.51.100.17" }]],
    ['for=192.0.2.43,for="[2001:db8:cafe::17]",for=unknown', [
      { for: "192.0.2.43" },
      { for: "[2001:db8:cafe::17]" },
      { for: "unknown" },
    ]],
    // Empty places in a list count for nothing (RFC 9110 section 5.6.1), and pairs may be missing.
    [", for=a ,,\tfor=b;, ", [{ for: "a" }, { for: "b" }]],
    ["for=a; ;by=b", [{ for: "a", by: "b" }]],
    ['host="a\\"b\\\\c, for=x"', [{ host: 'a"b\\c, for=x' }]],
    ["for=_SEVKISEK;a=1", [{ for: "_SEVKISEK", a: "1" }]],
    ["", []],
    [" , ", []],
    // Not of that form, so its meaning is unknown.
    ["for=[::1]", null],
    ["for=1.2.3.4:80", null],
    ["for=a;for=b", null],
    ["for=a;FOR=b", null],
    ["for", null],
    ["for=", null],
    ["=a", null],
    ['for="a', null],
    ['for="a"b', null],
    ["for=a b", null],
    ["for = a", null],
    ["for=ä", null],
    [`for=${"a".repeat(5000)}`, null],
  ];
  for (const [field, expected] of table) {
    const elements = parseForwarded(field);
    assertEquals(elements?.map((element) => Object.fromEntries(element)) ?? null, expected, field);
  }
});

test("parseForwarded() terminates for any text, and reads back canonical fields", () => {
  const random = seeded(7239);
  const parts = ["for", "=", ";", ",", '"', "\\", " ", "\t", "a", "1.2.3.4", "[::1]", "unknown", "\u0000", "ä", "by"];
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)]!;
  for (let i = 0; i < 20_000; i++) {
    const field = Array.from({ length: Math.floor(random() * 12) }, () => pick(parts)).join("");
    const elements = parseForwarded(field);
    if (elements === null) continue;
    const quoted = (value: string) => `"${value.replaceAll(/["\\]/g, "\\$&")}"`;
    const written = elements.map((element) =>
      [...element].map(([name, value]) => `${name}=${quoted(value)}`).join(";")
    );
    assertEquals(
      parseForwarded(written.join(", "))?.map((element) => [...element]),
      elements.map((e) => [...e]),
      field,
    );
  }
});

test("forwardedChains() returns a chain for each field present, the nearest hop last", () => {
  const chains = (headers: Record<string, string>) => forwardedChains(new Headers(headers));
  assertEquals(chains({}), []);
  assertEquals(chains({ via: "1.1 x", "x-forwarded-proto": "https" }), []);
  assertEquals(chains({ "x-forwarded-for": "1.1.1.1:80, [::1]:5 ,::2" }), [["1.1.1.1", "::1", "::2"]]);
  assertEquals(chains({ "x-real-ip": "1.1.1.1", forwarded: 'for=2.2.2.2, by=x, for="[::3]:80"' }), [
    ["2.2.2.2", "unknown", "::3"],
    ["1.1.1.1"],
  ]);
  assertEquals(chains({ forwarded: "for=[::1]" }), [["unknown"]]);
  const [long] = chains({ "x-forwarded-for": Array.from({ length: 5000 }, (_, i) => `10.0.0.${i}`).join(",") });
  assertEquals([long!.length, long!.at(-1)], [16, "10.0.0.4999"]);
  assert(chains({ "x-forwarded-for": "x".repeat(100_000) })[0]![0]!.length <= 64);
});

test("isForwarded() sees the fields that proxies add, and no others", () => {
  for (const name of ["Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Whatever", "CF-Connecting-IP", "X-Real-IP"]) {
    assert(isForwarded(new Headers({ [name]: "x" })), name);
  }
  const player = { range: "bytes=0-", "user-agent": "VLC/3.0", "icy-metadata": "1", host: "x", connection: "close" };
  assert(!isForwarded(new Headers(player)));
});
