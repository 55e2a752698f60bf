import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { AddressBook, MAX_ADDRESSES } from "../../src/swarm/neighbours/address-book.ts";
import { hostKey, parseAddress } from "../../src/swarm/neighbours/address.ts";
import { Assembly } from "../../src/swarm/data/assembly.ts";
import { BanList, MAX_OFFENDERS } from "../../src/swarm/neighbours/bans.ts";
import { type ChokeCandidate, chooseUnchoked } from "../../src/swarm/upload/choker.ts";
import { Evidence } from "../../src/swarm/data/evidence.ts";
import { PeerSession, type PeerSwarm } from "../../src/swarm/torrent/peer-session.ts";
import { RateMeter } from "../../src/swarm/rate-meter.ts";
import { TokenBucket } from "../../src/swarm/token-bucket.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("RateMeter.rate() is the mean of the last two seconds", () => {
  const meter = new RateMeter(0);
  meter.add(1000, 1000);
  meter.add(1000, 1900);
  assertEquals(meter.rate(2000), 1000);
  assertEquals(meter.rate(3500), 500);
  assertEquals(meter.rate(10_000), 0);
  assertEquals(meter.totalBytes, 2000);
});

test("TokenBucket passes bytes at its limit, pauses while in debt, and serves waiters in order", () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 1_000_000);
  let passed = 0;
  const step = () => {
    while (bucket.open) {
      bucket.spend(16_384);
      passed += 16_384;
    }
    bucket.whenOpen(step);
  };
  step();
  clock.advance(10_000);
  assert(passed > 9_900_000 && passed < 10_400_000, `passed ${passed}`);
  bucket.close();
  assertEquals(clock.pendingTimers, 0);
  bucket.setLimit(0);
  assertEquals(bucket.open, true);
});

test("BanList.note() bans a peer at its fourth slip, and neither its address nor its namesake elsewhere", () => {
  const bans = new BanList();
  const minuteMs = 60_000;
  const noted = [0, 1, 2, 3].map((at) => bans.note("::ffff:1.2.3.4", "aa", "slip", at * 1_000));
  assertEquals(noted, ["none", "none", "none", "peer"]);
  assertEquals(bans.hasPeer("1.2.3.4", "aa", minuteMs), true);
  assertEquals(bans.concerns("1.2.3.4", minuteMs), true);
  assertEquals(bans.hasPeer("1.2.3.4", "bb", minuteMs), false);
  assertEquals(bans.hasPeer("1.2.3.5", "aa", minuteMs), false);
  assertEquals(bans.hasPeer("1.2.3.4", "aa", 5 * minuteMs), false);
  // Slips that are rare enough never add up.
  for (let i = 0; i < 1_000; i++) assertEquals(bans.note("1.2.3.6", "cc", "slip", i * 2 * minuteMs), "none");
});

test("BanList.note() bans an address for about an hour after two lies, three floods, or fifty slips under changing ids", () => {
  for (const [offence, most] of [["lie", 2], ["flood", 3], ["slip", 50]] as const) {
    const bans = new BanList();
    for (let i = 1; i < most; i++) {
      bans.note("1.2.3.4", `id ${i}`, offence, 0);
      assertEquals(bans.hasAddress("1.2.3.4", 0), false);
    }
    assertEquals(bans.note("1.2.3.4", "last", offence, 0), "address");
    assertEquals(bans.hasPeer("1.2.3.4", "never seen", 45 * 60_000), true);
    assertEquals(bans.hasAddress("1.2.3.4", 80 * 60_000), false);
  }
});

test("BanList bans the peer of a single lie or flood, and stays bounded", () => {
  const bans = new BanList();
  assertEquals(bans.note("1.2.3.4", "aa", "lie", 0), "peer");
  assertEquals(bans.note("1.2.3.5", "aa", "flood", 0), "peer");
  // More of the same peer's pieces were under way.
  assertEquals(bans.note("1.2.3.4", "aa", "lie", 0), "none");
  assertEquals(bans.hasAddress("1.2.3.4", 0), false);
  for (let i = 0; i < MAX_OFFENDERS + 10; i++) bans.note(`host ${i}`, "aa", "slip", 0);
  assertEquals(bans.size, 2 * MAX_OFFENDERS);
});

test("parseAddress() reads IPv4, names and IPv6, and rejects anything else", () => {
  assertEquals(parseAddress("1.2.3.4:80"), { host: "1.2.3.4", port: 80 });
  assertEquals(parseAddress("[::1]:80"), { host: "::1", port: 80 });
  for (const bad of ["1.2.3.4", "::1:80", "a:0", "a:65536", ":1", "a b:1"]) assertEquals(parseAddress(bad), null);
  assertEquals(hostKey("FE80::1"), "fe80::1");
});

test("AddressBook.next() prefers better origins and backs off failures", () => {
  const book = new AddressBook();
  book.add({ host: "a", port: 1 }, "dht");
  book.add({ host: "b", port: 1 }, "tracker");
  const never = () => false;
  const first = book.next(0, never)!;
  assertEquals(first.address.host, "b");
  book.failed(first, 0);
  assertEquals(book.next(0, never)!.address.host, "a");
  assertEquals(book.next(0, (host) => host === "a"), null);
  assertEquals(book.next(5_000, (host) => host === "a")!.address.host, "b");
  for (let i = 0; i < 5; i++) book.failed(first, 0);
  assertEquals(book.size, 1);
});

test("AddressBook.wakeSeeds() lets resting seeds be dialled, and no other peer", () => {
  const book = new AddressBook();
  for (const host of ["seed", "idle"]) {
    book.add({ host, port: 1 }, "tracker");
    book.rest(book.get({ host, port: 1 })!, 0, host === "seed");
  }
  const never = () => false;
  assertEquals(book.next(1_000, never), null);
  book.wakeSeeds(1_000);
  assertEquals(book.next(1_000, never)!.address.host, "seed");
  assertEquals(book.next(1_000, (host) => host === "seed"), null);
});

test("AddressBook.endRest() ends it when the user, a tracker or the local network names the address, and no other peer", () => {
  for (
    const [origin, ends] of [["manual", 1], ["magnet", 1], ["tracker", 1], ["lsd", 1], ["pex", 0], ["dht", 0]] as const
  ) {
    const book = new AddressBook();
    const address = { host: "a", port: 1 };
    book.add(address, "pex");
    book.rest(book.get(address)!, 0, false);
    assertEquals(book.endRest(address, origin, 1_000), ends === 1, origin);
    assertEquals(book.next(1_000, () => false) !== null, ends === 1, origin);
    book.rest(book.get(address)!, 0, true);
    assertEquals(book.endRest(address, origin, 1_000), false, "both sides have everything");
  }
});

test("AddressBook.endRest() leaves an address alone that has just failed, unless the user named it", () => {
  const book = new AddressBook();
  const address = { host: "a", port: 1 };
  book.add(address, "tracker");
  book.failed(book.get(address)!, 0);
  assertEquals([book.endRest(address, "tracker", 0), book.endRest(address, "magnet", 0)], [false, true]);
});

test("AddressBook.wake() lets addresses that worked, rest or were named be dialled at once, thirty at most", () => {
  const book = new AddressBook();
  const add = (host: string, origin: "pex" | "magnet") => {
    book.add({ host, port: 1 }, origin);
    return book.get({ host, port: 1 })!;
  };
  book.rest(add("resting", "pex"), 0, false);
  book.rest(add("seed", "pex"), 0, true);
  book.failed(add("named", "magnet"), 0);
  book.failed(add("stranger", "pex"), 0);
  const known = add("known", "pex");
  known.hasWorked = true;
  book.failed(known, 0);
  book.wake(1_000);
  const due = () => book.list().filter(({ retryAtMs }) => retryAtMs <= 1_000).map(({ key }) => key.split(":")[0]);
  assertEquals(due(), ["resting", "named", "known"]);
  for (let i = 0; i < 100; i++) book.rest(add(`more ${i}`, "pex"), 1_000, false);
  const before = due().length;
  book.wake(1_000);
  assertEquals(due().length, before + 30);
});

test("AddressBook.failed() keeps an address that worked while there is no neighbour at all", () => {
  const book = new AddressBook();
  book.add({ host: "a", port: 1 }, "tracker");
  const entry = book.get({ host: "a", port: 1 })!;
  entry.hasWorked = true;
  book.isAlone = true;
  for (let i = 0; i < 20; i++) book.failed(entry, 0);
  assertEquals(book.size, 1);
  book.isAlone = false;
  book.failed(entry, 0);
  assertEquals(book.size, 0);
});

test("AddressBook.endedEarly() lets a peer be dialled again after a second, three times, then as any other", () => {
  const book = new AddressBook();
  book.add({ host: "a", port: 1 }, "tracker");
  const entry = book.get({ host: "a", port: 1 })!;
  const delays: number[] = [];
  for (let i = 0; i < 5; i++) {
    book.endedEarly(entry, 0);
    delays.push(book.nextRetryMs()!);
  }
  assertEquals(delays, [1_000, 1_000, 1_000, 5_000, 5_000]);
});

test("AddressBook stays bounded, in total and per host", () => {
  const book = new AddressBook();
  for (let i = 0; i < MAX_ADDRESSES + 100; i++) book.add({ host: `h${i}`, port: 1 }, "dht");
  assertEquals(book.size, MAX_ADDRESSES);
  assertEquals(book.add({ host: "better", port: 1 }, "tracker"), true);
  const other = new AddressBook();
  for (let port = 1; port < 100; port++) other.add({ host: "one", port }, "pex");
  assertEquals(other.size, 16);
});

function candidate(id: number, fields: Partial<ChokeCandidate> = {}): ChokeCandidate {
  const unchokedSinceMs = -Infinity;
  return {
    id,
    interested: true,
    downloadRate: 0,
    uploadRate: 0,
    unchoked: false,
    unchokedSinceMs,
    snubbed: false,
    ...fields,
  };
}

test("chooseUnchoked() rewards uploaders, keeps an optimistic slot and starves no waiting peer", () => {
  const peers = [1, 2, 3, 4, 5, 6].map((id) => candidate(id, { downloadRate: id * 10 }));
  const chosen = chooseUnchoked(peers, { seeding: false, slots: 4, round: 0, nowMs: 0 });
  assertEquals([...chosen].sort(), [1, 4, 5, 6]);
  const snubbed = [candidate(1, { downloadRate: 99, snubbed: true }), candidate(2), candidate(3)];
  assertEquals([...chooseUnchoked(snubbed, { seeding: false, slots: 2, round: 1, nowMs: 0 })].includes(2), true);
  const few = [candidate(1), candidate(2, { interested: false })];
  assertEquals([...chooseUnchoked(few, { seeding: true, slots: 4, round: 0, nowMs: 0 })], [1]);
});

test("chooseUnchoked() gives every leecher of a seed its turn", () => {
  let peers = [1, 2, 3, 4, 5, 6, 7].map((id) => candidate(id));
  const served = new Set<number>();
  for (let round = 0; round < 20; round++) {
    const nowMs = round * 10_000;
    const chosen = chooseUnchoked(peers, { seeding: true, slots: 3, round, nowMs });
    assertEquals(chosen.size, 3);
    peers = peers.map((p) => {
      const unchoked = chosen.has(p.id);
      if (unchoked) served.add(p.id);
      return { ...p, unchoked, unchokedSinceMs: unchoked && !p.unchoked ? nowMs : p.unchokedSinceMs };
    });
  }
  assertEquals(served.size, 7);
});

test("Assembly keeps a late writer from changing a block that another peer finished", () => {
  const assembly = new Assembly(0, new Uint8Array(40_000), 0);
  assertEquals(assembly.blocks, 3);
  const slow = assembly.begin(0, 1);
  assembly.finishElsewhere(0, 2, new Uint8Array(16_384).fill(2), 1);
  slow.fill(9);
  assertEquals(assembly.view(0)[0], 2);
  assertEquals(assembly.finish(0, 1, 2), false);
  assembly.begin(1, 1).fill(1);
  assembly.finish(1, 1, 3);
  assembly.begin(2, 2);
  assembly.abandon(2, 2);
  assertEquals(assembly.complete, false);
  assembly.begin(2, 1);
  assembly.finish(2, 1, 4);
  assertEquals(assembly.complete, true);
  assertEquals([...assembly.contributors()].sort(), [1, 2]);
});

test("Assembly.addPart() puts a block together from parts in any order, and drop() forgets those of a liar", () => {
  const assembly = new Assembly(0, new Uint8Array(20_000), 0);
  const part = (bytes: number, value: number) => new Uint8Array(bytes).fill(value);
  assembly.addPart(1, 1000, 2, part(2616, 2), 1);
  assert(!assembly.empty && !assembly.has(1));
  assembly.addPart(1, 0, 1, part(1000, 1), 2);
  assertEquals([assembly.has(1), assembly.isMixed, assembly.complete], [true, true, false]);
  assertEquals([...assembly.view(1)], [...part(1000, 1), ...part(2616, 2)]);
  assembly.addPart(0, 0, 3, part(8192, 3), 3);
  assertEquals(assembly.drop(3), [0]);
  assembly.addPart(0, 8192, 4, part(8192, 4), 4);
  assertEquals(assembly.has(0), false);
  assembly.addPart(0, 0, 5, part(8192, 5), 5);
  assertEquals(assembly.complete, true);
  assertEquals([assembly.view(0)[8191], assembly.view(0)[8192]], [5, 4]);
});

test("Evidence.convict() returns the senders whose blocks differ from the good copy", () => {
  const evidence = new Evidence();
  const peer = (source: number) => ({ source, host: `h${source}`, peerIdHex: "aa" });
  evidence.record(5, ["a", "x", "c"], [peer(1), peer(2), peer(1)]);
  evidence.record(5, ["a", "b", "y"], [peer(1), peer(1), peer(3)]);
  assertEquals(evidence.convict(5, ["a", "b", "c"]).map((s) => s.source).sort(), [2, 3]);
  assertEquals(evidence.has(5), false);
});

test("PeerSession.ready() takes the time to the handshake for the round trip when connecting was faster", () => {
  const rttOf = (connectMs: number | null, handshakeMs: number, encrypted: boolean) => {
    const clock = new FakeClock();
    const swarm = { clock, torrent: { transfer: null, uploads: null }, ready: () => {} } as unknown as PeerSwarm;
    const session = new PeerSession(swarm, 1, "192.0.2.1", null);
    session.rttMs = connectMs;
    clock.advance(handshakeMs);
    session.ready({ peerId: new Uint8Array(20), fast: true, dht: false, encrypted });
    return session.rttMs;
  };
  // The relay next door accepted at once.
  assertEquals(rttOf(1, 160, false), 160);
  assertEquals(rttOf(1, 320, true), 160);
  assertEquals(rttOf(200, 160, false), 200);
  // A peer that connected to us: nothing was measured.
  assertEquals(rttOf(null, 160, false), null);
});
