/** Which trackers of many are asked. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { ServerScope } from "../../src/discovery/types.ts";
import { answer, type Behaviour, fails, hangs, MINUTE, setUp, works } from "./trackers-support.ts";

test("TrackerSet.add() ignores known, unsupported and excess trackers, with a status line for unsupported ones", async () => {
  const behaviours = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`http://t${i}/a?passkey=s`, works]));
  const { set, clock, calls } = setUp(behaviours);
  set.add([["wss://web.example/x", "http://t0/a?passkey=s"], ["http://t0/a?passkey=s"], []]);
  set.add([[" http://t0/a?passkey=s "]]);
  await clock.advanceAsync(0);
  assertEquals(set.status().map(({ name }) => name), ["http://t0", "wss://web.example"]);
  assert(set.status()[1]!.lastError?.includes("for web browsers (WebSocket)"));
  set.add(Object.keys(behaviours).map((url) => [url]));
  await clock.advanceAsync(0);
  assertEquals(calls.length, 64);
  await set.close();
});

test("TrackerSet.add() widens the scope of a known tracker, and never narrows it", async () => {
  const scopes: (() => ServerScope)[] = [];
  const { set, calls } = setUp({ a: works, b: works }, undefined, undefined, (scope) => void scopes.push(scope));
  const seen = () => scopes.map((scope) => scope());
  set.add([["a"], ["b"]], { scope: "public" });
  assertEquals(seen(), ["public", "public"]);
  set.add([["a"]]);
  assertEquals(seen(), ["any", "public"]);
  set.add([["a"], ["b"]], { scope: "public" });
  assertEquals([seen(), calls.length], [["any", "public"], 2]);
  await set.close();
});

test("TrackerSet.add() asks a tracker again at once whose scope widened while it was being asked", async () => {
  const seen: ServerScope[] = [];
  let scope!: () => ServerScope;
  const slow: Behaviour = (_announce, signal) => {
    seen.push(scope());
    return seen.length === 1 ? hangs(_announce, signal) : works(_announce, signal);
  };
  const { set, clock } = setUp({ a: slow, b: fails }, undefined, undefined, (given) => void (scope ??= given));
  set.add([["a", "b"]], { scope: "public" });
  await clock.advanceAsync(1_000);
  set.add([["a", "b"]]);
  await clock.advanceAsync(14_000);
  assertEquals(seen, ["public", "any"]);
  await set.close();
});

test("TrackerSet.dropExtra() stops the trackers that the torrent does not name", async () => {
  const { set, clock, log } = setUp({ a: works, x: works });
  set.add([["a"]]);
  set.add([["x"]], { extra: true });
  await clock.advanceAsync(0);
  set.dropExtra();
  await clock.advanceAsync(30 * MINUTE);
  assertEquals(log(), ["0 a started", "0 x started", "0 x stopped", "1800 a"]);
  await set.close();
});

test("TrackerSet.add() asks 64 trackers, and others as these prove dead, until one gives peers", async () => {
  const urls = Array.from({ length: 300 }, (_, i) => `t${i}`);
  const quick = Object.fromEntries(urls.map((url) => [url, fails]));
  const { set, clock, calls, shut } = setUp({
    ...quick,
    t0: hangs,
    t1: () => Promise.resolve(answer({ peers: [] })),
    t199: works,
  });
  set.add(urls.slice(0, 100).map((url) => [url]));
  set.add([urls.slice(100)]);
  assertEquals([calls.length, set.status().length], [64, 256]);
  await clock.advanceAsync(0);
  const asked = calls.splice(0).map(({ url }) => url);
  // Those in use when one gave peers are asked, too.
  assertEquals(asked.slice(0, 200), urls.slice(0, 200));
  assert(asked.length < 200 + 64, `${asked.length}`);
  // Nobody takes the place of the others any more.
  await clock.advanceAsync(30 * MINUTE);
  assertEquals(new Set(calls.map(({ url }) => url)).size <= 64, true);
  assertEquals(set.status().filter(({ peers }) => peers > 0).length, 1);
  await shut();
});

test("TrackerSet asks those that gave their place again after 5 min, and never more often than that", async () => {
  const urls = Array.from({ length: 100 }, (_, i) => `t${i}`);
  const { set, clock, calls, shut } = setUp(Object.fromEntries(urls.map((url) => [url, fails])));
  set.add(urls.map((url) => [url]));
  await clock.advanceAsync(0);
  assertEquals(new Set(calls.map(({ url }) => url)).size, 100);
  await clock.advanceAsync(60 * MINUTE);
  for (const url of urls) {
    const count = calls.filter((call) => call.url === url).length;
    assert(count >= 3 && count <= 16, `${url} ${count}`);
  }
  await shut();
});
