import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { EndedSessions } from "../../src/playback/ended-sessions.ts";
import { EventLog, type PlaybackEvent } from "../../src/playback/events.ts";
import { FakeClock } from "../support/fake-clock.ts";

const { signal } = new AbortController();
const stalled = (n: number): PlaybackEvent => ({ name: "stalled", params: { n } });
const playing: PlaybackEvent = { name: "playing", params: {} };

test("EventLog.nextAfter() returns to each listener all events after its own position", async () => {
  const [log, clock] = [new EventLog(), new FakeClock()];
  for (let n = 1; n <= 3; n++) log.push(stalled(n));
  const heard = async () => {
    const numbers: unknown[] = [];
    for (let at = 0; numbers.length < 3;) {
      const event = await log.nextAfter(at, clock, signal);
      numbers.push(event!.params.n);
      at = event!.id;
    }
    return numbers;
  };
  assertEquals(await Promise.all([heard(), heard()]), [[1, 2, 3], [1, 2, 3]]);
  // Listeners without a position do not take events from those with one.
  assertEquals(await log.next(clock, signal), stalled(1));
  assertEquals((await log.nextAfter(0, clock, signal))!.params.n, 1);
});

test("EventLog.next() loses no event for a single listener and returns the same event to all that wait at once", async () => {
  const [log, clock] = [new EventLog(), new FakeClock()];
  log.push(stalled(1));
  log.push(stalled(2));
  assertEquals(await log.next(clock, signal), stalled(1));
  assertEquals(await log.next(clock, signal), stalled(2));
  const waiting = [log.next(clock, signal), log.next(clock, signal)];
  log.push(playing);
  assertEquals(await Promise.all(waiting), [playing, playing]);
  const leaving = new AbortController();
  const left = log.next(clock, leaving.signal);
  leaving.abort();
  assertEquals(await left, null);
  const over = log.next(clock, signal);
  clock.advance(15_001);
  assertEquals(await over, null);
});

test("EventLog keeps the newest 64 events, only the last prebuffering one, and all of them after close()", async () => {
  const [log, clock] = [new EventLog(), new FakeClock()];
  for (let n = 1; n <= 100; n++) log.push(stalled(n));
  assertEquals((await log.nextAfter(0, clock, signal))!.params.n, 37);
  for (let progress = 1; progress < 50; progress++) log.push({ name: "prebuffering", params: { progress } });
  const { id, params } = (await log.nextAfter(100, clock, signal))!;
  assertEquals(params, { progress: 49 });
  const waiting = log.nextAfter(id, clock, signal);
  log.close();
  assertEquals(await waiting, null);
  log.push(playing);
  assertEquals(await log.nextAfter(id, clock, signal), null);
  assertEquals((await log.nextAfter(100, clock, signal))!.id, id);
});

test("EndedSessions forgets after 30 s, and the oldest when they are many", () => {
  const clock = new FakeClock();
  const ended = new EndedSessions(clock);
  const keep = (id: string) => ended.keep({ id, infohashHex: "a", owner: null, events: new EventLog() });
  keep("1");
  assert(ended.find("a", "1") !== null);
  assertEquals(ended.find("b", "1"), null);
  clock.advance(29_999);
  keep("2");
  clock.advance(2);
  assertEquals([ended.find("a", "1"), ended.find("a", "2") !== null], [null, true]);
  for (let n = 0; n < 600; n++) keep(`many ${n}`);
  assertEquals([ended.find("a", "2"), ended.find("a", "many 99"), ended.find("a", "many 100") !== null], [
    null,
    null,
    true,
  ]);
});
