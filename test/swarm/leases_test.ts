import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { type LeasedSwarm, LeasedSwarms } from "../../src/swarm/leases.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A table whose swarms note each call. */
function rig(lingerMs = 30_000) {
  const clock = new FakeClock();
  const swarms = new LeasedSwarms(clock, lingerMs);
  const log: string[] = [];
  const add = (name: string, ownLingerMs = Infinity): LeasedSwarm => {
    const swarm: LeasedSwarm = {
      infohashHex: name,
      lingerMs: (longestMs) => Math.min(longestMs, ownLingerMs),
      peers: { count: 0, book: { list: () => [] }, admit: () => null, pump: () => log.push(`pump ${name}`) },
      close: () => (log.push(`close ${name}`), Promise.resolve()),
    };
    swarms.makeRoom();
    swarms.add(swarm, () => log.push(`left ${name}`));
    return swarm;
  };
  return { clock, swarms, log, add };
}

test("LeasedSwarms closes a swarm when it has lingered, and lets the others dial then", () => {
  const { clock, swarms, log, add } = rig();
  const [a] = [add("a"), add("b")];
  const first = swarms.lease(a);
  const remaining: number[] = [];
  const second = swarms.lease(a, (left) => remaining.push(left));
  first.release();
  first.release();
  second.release();
  assertEquals(remaining, [0]);
  clock.advance(29_999);
  assertEquals([swarms.get("a"), swarms.isLeased(a), log], [a, false, []]);
  clock.advance(1);
  assertEquals([swarms.get("a"), log], [undefined, ["left a", "close a", "pump b"]]);
});

test("LeasedSwarms keeps a lingering swarm for whoever takes a lease in time", () => {
  const { clock, swarms, log, add } = rig();
  const a = add("a");
  swarms.lease(a).release();
  clock.advance(20_000);
  const again = swarms.lease(a);
  clock.advance(60_000);
  assertEquals(log, []);
  again.release();
  clock.advance(30_000);
  assertEquals(log, ["left a", "close a"]);
});

test("LeasedSwarms closes a swarm at once when it is not worth keeping or its last lease says so", () => {
  const { swarms, log, add } = rig();
  swarms.lease(add("source", 0)).release();
  const b = add("b");
  const others = swarms.lease(b);
  swarms.lease(b).release({ atOnce: true });
  assertEquals(log.splice(0), ["left source", "close source"]);
  others.release({ atOnce: true });
  assertEquals(log, ["left b", "close b"]);
});

test("LeasedSwarms.add() ends the swarm of that infohash, whose leases mean nothing from then on", () => {
  const { clock, swarms, log, add } = rig();
  const old = swarms.lease(add("a"));
  const a = add("a");
  assertEquals(log, ["left a", "close a"]);
  const held = swarms.lease(a);
  old.release();
  clock.advance(60_000);
  assertEquals([swarms.get("a"), swarms.isLeased(a), log.length], [a, true, 2]);
  held.release();
});

test("LeasedSwarms.makeRoom() ends a lingering swarm when there are 256, and throws too_busy when all are in use", () => {
  const { swarms, log, add } = rig();
  const all = Array.from({ length: 256 }, (_, i) => swarms.lease(add(`${i}`)));
  assertEquals(assertThrows(() => swarms.makeRoom(), MillraceError).code, "too_busy");
  all[7]!.release();
  swarms.makeRoom();
  assertEquals(log.slice(0, 2), ["left 7", "close 7"]);
});

test("LeasedSwarms.close() leaves every swarm, and no other may come", async () => {
  const { swarms, log, add } = rig();
  swarms.lease(add("a"));
  add("b");
  await swarms.close();
  assertEquals(log.filter((line) => line.startsWith("close")), ["close a", "close b"]);
  assertEquals([swarms.list(), assertThrows(() => swarms.makeRoom(), MillraceError).code], [[], "closed"]);
});

test("LeasedSwarms.merge() makes the leases of one swarm those of another, which stays as long as any of them", () => {
  const { clock, swarms, log, add } = rig();
  const [a, b] = [add("a"), add("b")];
  const told: [number, LeasedSwarm][] = [];
  const ofA = swarms.lease(a, (left, swarm) => told.push([left, swarm]));
  swarms.lease(b).release();
  void swarms.merge(a, b);
  assertEquals([ofA.swarm, swarms.list(), log], [b, [b], ["left a", "close a", "pump b"]]);
  clock.advance(60_000);
  const ofB = swarms.lease(b);
  ofA.release();
  assertEquals(told, [[1, b]]);
  assertEquals(swarms.isLeased(b), true);
  ofB.release({ atOnce: true });
  assertEquals(swarms.list(), []);
});
