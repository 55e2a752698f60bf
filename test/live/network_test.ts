import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { PeerOrigin } from "../../src/discovery/types.ts";
import { BoundedVerifier } from "../../src/live/swarm/bounded-verifier.ts";
import type { LiveSwarm } from "../../src/live/swarm/live-swarm.ts";
import { RecordRefresh } from "../../src/live/broadcast/record-refresh.ts";
import { RedialPolicy } from "../../src/live/swarm/redial.ts";
import { Uplink } from "../../src/live/swarm/uplink.ts";
import { AddressBook } from "../../src/swarm/neighbours/address-book.ts";
import { TokenBucket } from "../../src/swarm/token-bucket.ts";
import { decodeTransportRecord } from "../../src/metainfo/content-id.ts";
import { FakeClock } from "../support/fake-clock.ts";

const host = (i: number) => ({ host: `198.51.100.${i}`, port: 6881 });

function redialled(random = 0.5) {
  const neighbours: PeerOrigin[] = [];
  const policy = new RedialPolicy(() => random, () => neighbours);
  return { neighbours, policy, book: new AddressBook(policy) };
}

test("RedialPolicy dials a broadcaster that is gone four times a second, for a minute, then every half minute", () => {
  const { policy, book } = redialled();
  book.add(host(1), "tracker");
  const entry = book.get(host(1))!;
  policy.isSource(entry);
  book.ended(entry, 0);
  assertEquals(entry.retryAtMs, 250);
  for (let i = 0; i < 240; i++) book.failed(entry, 0);
  assertEquals(entry.retryAtMs, 250);
  for (let i = 0; i < 1000; i++) book.failed(entry, 0);
  assertEquals(entry.retryAtMs, 30_000);
  assert(book.get(host(1)) === entry, "never forgotten");
});

test("RedialPolicy spreads the dials of many viewers by a fifth of a second each way", () => {
  for (const [random, delayMs] of [[0, 200], [0.999, 299.9]] as const) {
    const { policy, book } = redialled(random);
    book.add(host(1), "tracker");
    policy.isSource(book.get(host(1))!);
    book.ended(book.get(host(1))!, 0);
    assertEquals(book.get(host(1))!.retryAtMs, delayMs);
  }
});

test("RedialPolicy asks a broadcaster that hangs up less and less often", () => {
  const { policy, book } = redialled();
  book.add(host(1), "tracker");
  const entry = book.get(host(1))!;
  policy.isSource(entry);
  const delays = Array.from({ length: 8 }, () => {
    policy.left(entry, 10);
    book.failed(entry, 0);
    return entry.retryAtMs;
  });
  assertEquals(delays, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000]);
  policy.left(entry, 60_000);
  book.ended(entry, 0);
  assertEquals(entry.retryAtMs, 250);
});

test("RedialPolicy never forgets whom the user named, and asks it less and less often", () => {
  const { book } = redialled();
  book.add(host(1), "magnet");
  const entry = book.get(host(1))!;
  const delays = Array.from({ length: 12 }, () => (book.failed(entry, 0), entry.retryAtMs));
  assertEquals(delays, [1000, 1000, 1000, 1000, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
});

test("RedialPolicy believes no more than four addresses that they are a broadcaster's", () => {
  const { policy, book } = redialled();
  for (let i = 1; i <= 6; i++) {
    book.add(host(i), "pex");
    policy.isSource(book.get(host(i))!);
    book.ended(book.get(host(i))!, 0);
  }
  assertEquals(book.list().filter(({ retryAtMs }) => retryAtMs === 250).length, 4);
});

test("RedialPolicy takes neighbours of all origins in turn (eclipse)", () => {
  const { neighbours, book } = redialled();
  for (let i = 1; i <= 9; i++) book.add(host(i), (["tracker", "pex", "dht"] as const)[i % 3]!);
  for (let i = 0; i < 9; i++) {
    const next = book.next(0, () => false)!;
    next.state = "connected";
    neighbours.push(next.origin);
  }
  for (let i = 0; i < 9; i += 3) assertEquals(new Set(neighbours.slice(i, i + 3)).size, 3);
});

test("RedialPolicy dials broadcasters first, then whom the user named", () => {
  const { policy, book } = redialled();
  book.add(host(1), "tracker");
  book.add(host(2), "manual");
  book.add(host(3), "dht");
  policy.isSource(book.get(host(3))!);
  const order = [0, 1, 2].map(() => {
    const next = book.next(0, () => false)!;
    next.state = "dialing";
    return next.origin;
  });
  assertEquals(order, ["dht", "manual", "tracker"]);
});

test("Uplink holds blocks back while the engine's limit is used up, and says when they may go", () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 100_000);
  let opened = 0;
  const uplink = new Uplink(bucket, () => opened++);
  assertEquals(uplink.isOpen, true);
  uplink.spend(50_000);
  assertEquals([uplink.isOpen, uplink.isOpen], [false, false]);
  clock.advance(1000);
  assertEquals([uplink.isOpen, opened], [true, 1]);
  uplink.spend(100_000);
  assertEquals(uplink.isOpen, false);
  uplink.close();
  clock.advance(5000);
  assertEquals(opened, 1);
});

test("BoundedVerifier stops the reading while 64 wait, and lets it go on at half of that", () => {
  const verdicts: ((genuine: boolean) => void)[] = [];
  const told: boolean[] = [];
  const verifier = new BoundedVerifier(
    { header: (_header, done) => done(true), block: (_data, _hash, done) => void verdicts.push(done) },
    (value) => told.push(value),
  );
  let found = 0;
  for (let i = 0; i < 64; i++) verifier.block(new Uint8Array(), new Uint8Array(), () => found++);
  assertEquals(told, [true]);
  for (let i = 0; i < 31; i++) verdicts[i]!(true);
  assertEquals(told, [true]);
  verdicts[31]!(true);
  assertEquals([told, found], [[true, false], 32]);
});

/** A swarm of `members`, as far as its record is concerned. */
function swarmOf(role: "source" | "viewer", members: number, isPrivate = false): LiveSwarm {
  const metainfo = {
    infohash: new Uint8Array(20).fill(3),
    infohashHex: "03".repeat(20),
    name: "Test",
    trackers: [],
    isPrivate,
  };
  return { role, metainfo, estimatedMembers: members } as unknown as LiveSwarm;
}

function refresher(random: () => number) {
  const clock = new FakeClock();
  const puts: number[] = [];
  const state = { fails: false };
  const refresh = new RecordRefresh({
    clock,
    log: { log: () => {}, child: () => refreshLog },
    random,
    discovery: {
      dhtPort: 1,
      putImmutable: (value) => {
        puts.push(clock.monotonic());
        assertEquals(decodeTransportRecord(value).name, "Test");
        return state.fails ? Promise.reject(new Error("no node")) : Promise.resolve(new Uint8Array(20));
      },
    },
  });
  return { clock, puts, state, refresh };
}
const refreshLog = { log: () => {}, child: () => refreshLog };

const HOUR_MS = 3_600_000;

test("RecordRefresh puts a broadcaster's record at once and every hour (BEP 44)", () => {
  const { clock, puts, refresh } = refresher(() => 0.5);
  const start = clock.monotonic();
  refresh.watch(swarmOf("source", 500));
  for (let i = 0; i < 3; i++) clock.advance(HOUR_MS);
  assertEquals(puts.map((at) => at - start), [0, HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]);
});

test("RecordRefresh tries again after a minute when no node took a broadcaster's record", async () => {
  const { clock, puts, state, refresh } = refresher(() => 0.5);
  state.fails = true;
  refresh.watch(swarmOf("source", 1));
  for (let i = 0; i < 4; i++) await Promise.resolve();
  state.fails = false;
  clock.advance(60_000);
  assertEquals(puts.length, 2);
});

test("RecordRefresh lets about three of all viewers refresh a record in an hour", () => {
  let puts = 0;
  let seed = 0;
  // Even draws: the mean is what counts.
  const random = () => (seed = (seed + 0.618033988749895) % 1);
  for (let viewer = 0; viewer < 300; viewer++) {
    const one = refresher(random);
    one.refresh.watch(swarmOf("viewer", 300));
    one.clock.advance(HOUR_MS - 1);
    puts += one.puts.length;
  }
  assert(puts >= 1 && puts <= 9, `${puts}`);
});

test("RecordRefresh keeps private broadcasts out of the DHT (BEP 27), and stops when a swarm is left", () => {
  const { clock, puts, refresh } = refresher(() => 0);
  refresh.watch(swarmOf("source", 1, true));
  const left = swarmOf("viewer", 1);
  refresh.watch(left);
  refresh.forget(left);
  clock.advance(5 * HOUR_MS);
  assertEquals(puts, []);
});
