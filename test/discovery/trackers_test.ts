import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { trackerFailure } from "../../src/discovery/announce.ts";
import { backoffMs, scheduleAfter } from "../../src/discovery/intervals.ts";
import { answer, type Behaviour, fails, hangs, MINUTE, setUp, works } from "./trackers-support.ts";

test("scheduleAfter() clamps intervals", () => {
  const peers = [{ host: "10.0.0.1", port: 1 }];
  const table: [number | null, number | null, number, number, number][] = [
    [null, null, 1, 30, 5],
    [1_000, null, 1, 1, 1],
    [999 * MINUTE, null, 1, 120, 5],
    [30 * MINUTE, 10 * MINUTE, 1, 30, 10],
    [30 * MINUTE, 90 * MINUTE, 1, 30, 30],
    [30 * MINUTE, 1_000, 1, 30, 1],
    [30 * MINUTE, null, 0, 30, 1],
  ];
  for (const [intervalMs, minIntervalMs, count, interval, min] of table) {
    const schedule = scheduleAfter({ intervalMs, minIntervalMs, peers: peers.slice(0, count) });
    assertEquals(schedule, { intervalMs: interval * MINUTE, minIntervalMs: min * MINUTE });
  }
});

test("backoffMs() doubles from 15 s to 30 min and spreads the delay by a quarter", () => {
  assertEquals([1, 2, 3, 8, 99].map((n) => backoffMs(n, () => 0.5) / 1000), [15, 30, 60, 1800, 1800]);
  assertEquals([backoffMs(1, () => 0), backoffMs(1, () => 1)], [11_250, 18_750]);
});

test("TrackerSet asks the first tracker of every tier in parallel at the start", async () => {
  const { set, clock, log, found, shut } = setUp({ a: hangs, b: works, c: works, d: works });
  set.add([["a", "b"], ["c", "d"]]);
  await clock.advanceAsync(0);
  assertEquals(log(), ["0 a started", "0 c started"]);
  assertEquals(found.length, 1);
  await shut();
});

test("TrackerSet asks the next tracker of a tier after a failure or 15 s of silence, and promotes one that responds", async () => {
  const { set, clock, log } = setUp({ a: fails, b: hangs, c: works });
  set.add([["a", "b", "c"]]);
  await clock.advanceAsync(15_000);
  assertEquals(log(), ["0 a started", "0 b started", "15 c started"]);
  assertEquals(set.status().map(({ name, lastError }) => [name, lastError]), [
    ["(not a URL)", null],
    ["(not a URL)", "refused"],
    ["(not a URL)", "the deadline passed"],
  ]);
  await clock.advanceAsync(30 * MINUTE);
  assertEquals(log().slice(3), ["1815 c"]);
  await set.close();
});

test("TrackerSet shuffles a tier", async () => {
  const { set, clock, log } = setUp({ a: works, b: works, c: works }, () => 0);
  set.add([["a", "b", "c"]]);
  await clock.advanceAsync(0);
  assertEquals(log(), ["0 b started"]);
  await set.close();
});

test("TrackerSet lets a later tier rest while an earlier one gives peers, and wakes it when the swarm needs peers", async () => {
  const { set, clock, log } = setUp({ a: works, b: works });
  set.add([["a"], ["b"]]);
  await clock.advanceAsync(30 * MINUTE);
  assertEquals(log(), ["0 a started", "0 b started", "1800 a"]);
  set.needPeers();
  await clock.advanceAsync(5 * MINUTE);
  assertEquals(log().slice(3), ["1800 b", "2100 a"]);
  await set.close();
});

test("TrackerSet keeps asking a later tier while the earlier one is empty", async () => {
  const { set, clock, log } = setUp({ a: () => Promise.resolve(answer({ peers: [] })), b: works });
  set.add([["a"], ["b"]]);
  await clock.advanceAsync(30 * MINUTE);
  assertEquals(log(), ["0 a started", "0 b started", "1800 a", "1800 b"]);
  await set.close();
});

test("TrackerSet.needPeers() respects the minimum interval", async () => {
  const { set, clock, log } = setUp({ a: () => Promise.resolve(answer({ minIntervalMs: 10 * MINUTE })) });
  set.add([["a"]]);
  await clock.advanceAsync(1_000);
  for (let i = 0; i < 20; i++) {
    set.needPeers();
    await clock.advanceAsync(MINUTE);
  }
  assertEquals(log(), ["0 a started", "600 a", "1200 a"]);
  await set.close();
});

test("TrackerSet.needPeers() asks before the minimum interval when it is urgent, until the tracker refuses that", async () => {
  const { set, clock, log } = setUp({
    a: ({ event }) =>
      event === "started" || log().length < 4
        ? Promise.resolve(answer({ minIntervalMs: MINUTE }))
        : Promise.reject(trackerFailure("too often", null)),
  }, () => 0.5);
  set.add([["a"]]);
  for (let i = 0; i < 120; i++) {
    await clock.advanceAsync(1_000);
    set.needPeers(true);
  }
  assertEquals(log(), ["0 a started", "2.5 a", "5 a", "7.5 a", "22.5 a", "52.5 a", "112.5 a"]);
  await set.close();
});

test("TrackerSet backs off from a failing tier and tries it once a minute at most when peers are needed", async () => {
  const { set, clock, calls } = setUp({ a: fails }, () => 0.5);
  set.add([["a"]]);
  await clock.advanceAsync(10 * MINUTE);
  assertEquals(calls.map(({ atMs }) => atMs / 1000), [0, 15, 45, 105, 225, 465]);
  set.needPeers();
  await clock.advanceAsync(0);
  assertEquals(calls.length, 7);
  set.needPeers();
  await clock.advanceAsync(59_000);
  assertEquals(calls.length, 7);
  await clock.advanceAsync(1_000);
  assertEquals(calls.length, 8);
  assert(calls.every(({ event }) => event === "started"));
  await set.close();
});

test("TrackerSet does not ask before a refusal's `retry in`, and never again after `never`", async () => {
  const refuses = (ms: number): Behaviour => () => Promise.reject(trackerFailure("full", ms));
  const { set, clock, log } = setUp({ a: refuses(60 * MINUTE), b: refuses(Infinity) });
  set.add([["a"], ["b"]]);
  await clock.advanceAsync(59 * MINUTE);
  set.needPeers();
  await clock.advanceAsync(2 * MINUTE);
  assertEquals(log(), ["0 a started", "0 b started", "3600 a started"]);
  await set.close();
  assertEquals(clock.pendingTimers, 0);
});

test("TrackerSet.completed() notifies trackers that know us at once and only once, even during an announce", async () => {
  let release = () => {};
  const slow: Behaviour = () => new Promise((resolve) => release = () => resolve(answer()));
  const { set, clock, log, shut } = setUp({ a: works, b: slow, c: fails });
  set.add([["a"], ["b"], ["c"]]);
  await clock.advanceAsync(1_000);
  set.completed();
  await clock.advanceAsync(0);
  release();
  await clock.advanceAsync(1_000);
  release();
  await clock.advanceAsync(30 * MINUTE);
  const events = log().filter((line) => !line.includes(" c "));
  assertEquals(events.slice(0, 4), ["0 a started", "0 b started", "1 a completed", "1 b completed"]);
  assert(events.slice(4).every((line) => !line.includes("completed")));
  assert(!log().some((line) => line.includes("c completed")));
  await shut();
});

test("TrackerSet echoes the tracker id and asks for no peers when it stops", async () => {
  const trackerId = new Uint8Array([1, 2]);
  const { set, clock, calls } = setUp({ a: () => Promise.resolve(answer({ trackerId })) });
  set.add([["a"]]);
  await clock.advanceAsync(0);
  await set.close();
  assertEquals(calls.map(({ event, announce }) => [event, announce.numWant, announce.trackerId]), [
    ["started", 80, null],
    ["stopped", 0, trackerId],
  ]);
});

test("TrackerSet.close() ends within 1.5 s when trackers hang, and notifies only those that may list us", async () => {
  const half = (first: Behaviour): Behaviour => (announce, signal) =>
    announce.event === "stopped" ? hangs(announce, signal) : first(announce, signal);
  const deaf: Behaviour = () => new Promise(() => {});
  const { set, clock, log } = setUp({ a: half(works), b: hangs, c: fails, d: deaf });
  set.add([["a"], ["b"], ["c"], ["d"]]);
  await clock.advanceAsync(0);
  let closed = false;
  const closing = set.close().then(() => closed = true);
  await clock.advanceAsync(1_499);
  assertEquals(closed, false);
  await clock.advanceAsync(1);
  await closing;
  assertEquals(log().slice(4), ["0 a stopped", "0 b stopped", "0 d stopped"]);
  assertEquals(clock.pendingTimers, 0);
});

test("TrackerSet sends byte counts as safe integers, whatever the swarm reports", async () => {
  for (const [left, sent] of [[NaN, 0], [Infinity, Number.MAX_SAFE_INTEGER], [-1, 0], [1.5, 1]] as const) {
    const { set, clock, calls } = setUp({ a: works }, undefined, left);
    set.add([["a"]]);
    await clock.advanceAsync(0);
    assertEquals(calls[0]!.announce.leftBytes, sent);
    await set.close();
  }
});

test("TrackerSet logs a refusal once per tracker and reason, without what looks secret", async () => {
  const reasons = ["unknown passkey 0123456789abcdef0123456789abcdef", "unregistered torrent"];
  let asked = 0;
  const { set, clock, told, shut } = setUp({
    "http://a.example:1/0123456789abcdef/announce": () =>
      Promise.reject(trackerFailure(reasons[asked++ >> 1] ?? reasons[0]!)),
    "http://b.example/": () => Promise.reject(trackerFailure(`${asked} to go`)),
    c: fails,
  });
  set.add([["http://a.example:1/0123456789abcdef/announce"], ["http://b.example/"], ["c"]]);
  for (let i = 0; i < 8; i++) await clock.advanceAsync(40 * MINUTE);
  const torrent = "00".repeat(20);
  const line = (tracker: string, reason: string) =>
    `info a tracker refuses the announce ${torrent} ${tracker} ${reason}`;
  assertEquals(told.filter((text) => text.includes("a.example")), [
    line("http://a.example:1", "unknown passkey …"),
    line("http://a.example:1", "unregistered torrent"),
  ]);
  assertEquals([asked > 5, told.length], [true, 6]);
  await shut();
});

test("TrackerSet asks again after a fault of the engine, which is logged with its stack", async () => {
  let faults = 0;
  const broken = () => {
    if (faults++ === 0) throw new TypeError("object null is not iterable");
  };
  const { set, clock, told, found, calls, shut } = setUp({ "http://a": works }, undefined, 1, undefined, broken);
  set.add([["http://a"]]);
  await clock.advanceAsync(0);
  assertEquals([found, calls.length], [[], 1]);
  assertEquals(set.status()[0]!.lastError, "internal error");
  assert(told.some((line) => /^error .*internal TypeError: object null.*\n +at /s.test(line)), told.join("\n"));
  await clock.advanceAsync(MINUTE);
  assertEquals([found, calls.length], [["10.0.0.1"], 2]);
  await shut();
});

test("TrackerSet goes on after a fault in the middle of its plan", async () => {
  let faults = 0;
  const random = () => {
    if (faults++ === 1) throw new TypeError("object null is not iterable");
    return 0.5;
  };
  const { set, clock, told, calls, shut } = setUp({ "http://a": fails }, random);
  set.add([["http://a"]]);
  await clock.advanceAsync(2 * MINUTE);
  assert(calls.length > 1, `${calls.length} announces`);
  assert(told.some((line) => line.includes("a fault of the engine")), told.join("\n"));
  await shut();
});
