import { test } from "node:test";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { Players } from "../../src/players/players.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { FakeStream, RememberingPlayer, Shelf } from "./support.ts";

const HERE = { isLocal: true };
const ELSEWHERE = { isLocal: false };
const { signal } = new AbortController();
const give = (stream: FakeStream) => () => Promise.resolve(stream);

async function codeOf(work: () => Promise<unknown>): Promise<string> {
  return ((await assertRejects(work, MillraceError)) as MillraceError).code;
}

test("list() shows players of all finders, and programs on this machine only to local callers", async () => {
  const shelf = new Shelf(new RememberingPlayer("mpv", { localOnly: true }), new RememberingPlayer("tv"));
  const players = new Players([shelf, new Shelf(new RememberingPlayer("kodi"))], {
    clock: new FakeClock(),
    log: silent,
  });
  assertEquals((await players.list(HERE)).map(({ id }) => id), ["mpv", "tv", "kodi"]);
  assertEquals((await players.list(ELSEWHERE)).map(({ id }) => id), ["tv", "kodi"]);
  assertEquals(await new Players([], { clock: new FakeClock(), log: silent }).list(HERE), []);
});

test("open(), status() and control() refuse a caller elsewhere a program of this machine, before anything is started", async () => {
  const mpv = new RememberingPlayer("mpv", { localOnly: true });
  const players = new Players([new Shelf(mpv)], { clock: new FakeClock(), log: silent });
  let starts = 0;
  const start = () => Promise.resolve(new FakeStream(String(++starts)));
  assertEquals(await codeOf(() => players.open("mpv", ELSEWHERE, start, signal)), "denied");
  assertEquals(await codeOf(() => players.status("mpv", ELSEWHERE, signal)), "denied");
  assertEquals(await codeOf(() => players.control("mpv", ELSEWHERE, { kind: "stop" }, signal)), "denied");
  assertEquals([starts, mpv.opened.length, mpv.commands.length], [0, 0, 0]);
  assertEquals(await codeOf(() => players.open("vlc", HERE, start, signal)), "not_found");
  assertEquals(starts, 0);
});

test("status() of a player that one finder knows at once waits for no search of another", async () => {
  const searching = { list: () => new Promise<never>(() => {}), close: () => Promise.resolve() };
  const players = new Players([new Shelf(new RememberingPlayer("mpv")), searching], {
    clock: new FakeClock(),
    log: silent,
  });
  assertEquals((await players.status("mpv", HERE, signal)).state, "idle");
});

test("setVolume() says so where a player's volume cannot be set from here", async () => {
  const tv = new RememberingPlayer("tv");
  const set: number[] = [];
  const loud = Object.assign(new RememberingPlayer("loud"), {
    setVolume: (percent: number) => Promise.resolve(void set.push(percent)),
  });
  const players = new Players([new Shelf(tv, loud)], { clock: new FakeClock(), log: silent });
  assertEquals(await codeOf(() => players.setVolume("tv", HERE, 50, signal)), "unavailable");
  await players.setVolume("loud", HERE, 50, signal);
  assertEquals(set, [50]);
});

test("open() ends the stream that the player had before, unless it is the same one", async () => {
  const players = new Players([new Shelf(new RememberingPlayer("tv"))], { clock: new FakeClock(), log: silent });
  const [one, again, two] = [new FakeStream("1"), new FakeStream("1"), new FakeStream("2")];
  await players.open("tv", ELSEWHERE, give(one), signal);
  await players.open("tv", ELSEWHERE, give(again), signal);
  assertEquals([one.stops, again.stops], [0, 0]);
  await players.open("tv", ELSEWHERE, give(two), signal);
  assertEquals([again.stops, two.stops], [1, 0]);
  await players.control("tv", ELSEWHERE, { kind: "pause" }, signal);
  assertEquals(two.stops, 0);
  await players.control("tv", ELSEWHERE, { kind: "stop" }, signal);
  assertEquals(two.stops, 1);
});

test("open() lets the new stream go when the player refuses it", async () => {
  const tv = new RememberingPlayer("tv");
  const players = new Players([new Shelf(tv)], { clock: new FakeClock(), log: silent });
  tv.refusal = new MillraceError("unavailable", "no such codec");
  const stream = new FakeStream("1");
  await assertRejects(() => players.open("tv", ELSEWHERE, give(stream), signal), MillraceError, "no such codec");
  assertEquals(stream.stops, 1);
});

test("open() aborts an open() in progress for the same player, and proceeds when that has ended", async () => {
  const tv = new RememberingPlayer("tv");
  const players = new Players([new Shelf(tv)], { clock: new FakeClock(), log: silent });
  tv.hold = new Promise<void>(() => {});
  const [slow, next] = [new FakeStream("slow"), new FakeStream("next")];
  const first = assertRejects(() => players.open("tv", ELSEWHERE, give(slow), signal), MillraceError, "another stream");
  while (tv.opened.length === 0) await Promise.resolve();
  tv.hold = null;
  await players.open("tv", ELSEWHERE, give(next), signal);
  assertEquals(((await first) as MillraceError).code, "aborted");
  assertEquals([slow.stops, next.stops], [1, 0]);
  assertEquals(tv.opened.map(({ id }) => id), ["slow", "next"]);
});

test("open() gives up after a minute with what the engine knows about the stream", async () => {
  const clock = new FakeClock();
  const tv = new RememberingPlayer("tv");
  const players = new Players([new Shelf(tv)], { clock, log: silent });
  tv.hold = new Promise<void>(() => {});
  const stream = new FakeStream("1");
  stream.reason = "no_peers";
  const opening = assertRejects(() => players.open("tv", ELSEWHERE, give(stream), signal), MillraceError);
  while (tv.opened.length === 0) await Promise.resolve();
  await clock.advanceAsync(60_000);
  const error = await opening as MillraceError;
  assertEquals([error.code, stream.stops, clock.pendingTimers], ["timeout", 1, 0]);
  assertMatch(error.message, /Player tv .*no_peers/);
});

test("close() ends all pending calls and releases the players of all finders", async () => {
  const tv = new RememberingPlayer("tv");
  const shelves = [new Shelf(tv), new Shelf()];
  const players = new Players(shelves, { clock: new FakeClock(), log: silent });
  tv.hold = new Promise<void>(() => {});
  const opening = codeOf(() => players.open("tv", HERE, give(new FakeStream("1")), signal));
  while (tv.opened.length === 0) await Promise.resolve();
  await players.close();
  assertEquals(await opening, "closed");
  assertEquals(shelves.map(({ closed }) => closed), [1, 1]);
});
