import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { type DhtLookup, DhtSearch } from "../../src/discovery/dht-search.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { faultLog } from "../support/fault-log.ts";

/** A search over a node whose lookups return `replies`; `firstNode` simulates the table's first node. */
function setUp(replies: () => number | Promise<number>, onPeer: () => void = () => {}) {
  const clock = new FakeClock();
  const lookups: number[] = [];
  const listeners = new Set<() => void>();
  let bootstraps = 0;
  const node: DhtLookup = {
    async lookup(_infohash, port, report, signal) {
      lookups.push(clock.monotonic() / 1000);
      report({ host: "10.0.0.1", port }, "10.0.0.2");
      const count = await replies();
      if (signal.aborted) throw abortError(signal);
      return count;
    },
    onFirstNode(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    bootstrap: () => Promise.resolve(void bootstraps++),
  };
  const peers: number[] = [];
  const { log, faults } = faultLog();
  const search = new DhtSearch({
    clock,
    log,
    node,
    infohash: new Uint8Array(20),
    peerPort: () => 8621,
    onPeer(peer) {
      peers.push(peer.port);
      onPeer();
    },
  });
  const firstNode = () => listeners.forEach((listener) => listener());
  return { clock, faults, lookups, peers, search, firstNode, listeners, bootstraps: () => bootstraps };
}

test("DhtSearch looks up at once and every 5 min", async () => {
  const { clock, lookups, peers, search } = setUp(() => 8);
  await clock.advanceAsync(600_000);
  assertEquals(lookups, [0, 300, 600]);
  assertEquals(peers, [8621, 8621, 8621]);
  assertEquals(search.status(), {
    kind: "dht",
    name: "dht",
    peers: 1,
    seeders: null,
    lastError: null,
    nextAnnounceMs: 300_000,
  });
  search.close();
  assertEquals(clock.pendingTimers, 0);
});

test("DhtSearch.needPeers() looks up every 5 s when it is urgent", async () => {
  const { clock, lookups, search } = setUp(() => 8);
  for (let second = 0; second < 12; second++) {
    await clock.advanceAsync(1_000);
    search.needPeers(true);
  }
  assertEquals(lookups, [0, 5, 10]);
  search.close();
});

test("DhtSearch.needPeers() looks up at most every 15 s", async () => {
  const { clock, lookups, search } = setUp(() => 8);
  for (let second = 0; second < 40; second++) {
    await clock.advanceAsync(1_000);
    search.needPeers();
  }
  assertEquals(lookups, [0, 15, 30]);
  search.close();
});

test("DhtSearch tries an empty table every 15 s, bootstraps, and looks up as soon as there is a node", async () => {
  let nodes = 0;
  const { clock, lookups, search, firstNode, bootstraps } = setUp(() => nodes);
  await clock.advanceAsync(17_000);
  assertEquals([lookups, bootstraps()], [[0, 15], 2]);
  assertEquals(search.status().lastError, "no DHT node answers");
  nodes = 1;
  firstNode();
  await clock.advanceAsync(0);
  assertEquals(lookups, [0, 15, 17]);
  firstNode();
  await clock.advanceAsync(1_000);
  assertEquals([lookups.length, search.status().lastError], [3, null]);
  search.close();
});

test("DhtSearch looks up again when the first node comes while a lookup of the empty table ends", async () => {
  const answers = [0, 5];
  let release = () => {};
  const { clock, lookups, search, firstNode } = setUp(() =>
    new Promise((resolve) => release = () => resolve(answers.shift()!))
  );
  await clock.advanceAsync(0);
  firstNode();
  release();
  await clock.advanceAsync(0);
  assertEquals(lookups, [0, 0]);
  release();
  await clock.advanceAsync(299_000);
  assertEquals(lookups.length, 2);
  search.close();
});

test("DhtSearch continues after failed lookups and ends with close()", async () => {
  const { clock, lookups, search, listeners } = setUp(() => Promise.reject(new MillraceError("timeout", "late")));
  await clock.advanceAsync(15_000);
  assertEquals(lookups, [0, 15]);
  assertEquals(search.status().lastError, "the lookup took too long");
  search.close();
  search.needPeers();
  await clock.advanceAsync(600_000);
  assertEquals([lookups.length, listeners.size, clock.pendingTimers], [2, 0, 0]);
});

test("An exception in a lookup costs DhtSearch that lookup: it says so, and asks again 15 s later", async () => {
  const broken = () => {
    throw new TypeError("object null is not iterable");
  };
  const kinds: readonly (readonly [name: string, replies: () => number, onPeer: () => void])[] = [
    ["in the table", broken, () => {}],
    ["in what hears of a peer", () => 8, broken],
  ];
  for (const [name, replies, onPeer] of kinds) {
    const { clock, faults, lookups, search } = setUp(replies, onPeer);
    await clock.advanceAsync(14_000);
    assertEquals([search.status().lastError, faults.length], ["internal error", 1], name);
    await clock.advanceAsync(2_000);
    assertEquals([lookups, faults.length], [[0, 15], 2], name);
    search.close();
  }
});

test("An exception while the first node enters the table does not end the search", async () => {
  const { clock, faults, lookups, search, firstNode } = setUp(() => 0);
  await clock.advanceAsync(1_000);
  const { setTimeout } = clock;
  Object.assign(clock, {
    setTimeout() {
      Object.assign(clock, { setTimeout });
      throw new TypeError("no timer");
    },
  });
  firstNode();
  assertEquals(faults.length, 1);
  await clock.advanceAsync(16_000);
  assertEquals(lookups, [0, 16]);
  search.close();
});
