import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { decodeLiveMessage, encodeLiveMessage } from "../../src/live/messages.ts";
import { Flight } from "../../src/live/node/line/flight.ts";
import { LineMeter } from "../../src/live/node/line/line-meter.ts";
import { LinkFlight } from "../../src/live/node/neighbour/link-flight.ts";
import type { LiveLink } from "../../src/live/node/neighbour/live-lane.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { seededRandom } from "../simulation/event-queue.ts";
import { EventWheel } from "../simulation/event-wheel.ts";
import { SimLine } from "../simulation/sim-line.ts";

const BLOCK = 16_384;

/** A sender with more to send than its line carries, to neighbours that are 20 to 80 ms away and get blocks by turns. */
class Rig {
  readonly queue = new EventWheel();
  readonly flight: Flight;
  readonly #line: SimLine;
  readonly peers: LivePeer[];
  /** Neighbours that take nothing. */
  readonly dead = new Set<LivePeer>();
  /** Blocks that each was given. */
  readonly given = new Map<LivePeer, number>();
  /** Longest time that a block was recently under way, less its way, ms. */
  waitedMs = 0;
  #next = 0;
  #wants: number;
  #isAsleep = false;

  /** `rate`: bytes a second that the line carries; `wants`: what there is to send, bytes a second. */
  constructor(
    { rate, wants = Infinity, burst = 1, peers = 4, limit = Infinity, isProbed = false, lateMs = 0 }: {
      rate: number;
      wants?: number;
      /** Blocks that come to be sent at the same moment, on average. */
      burst?: number;
      peers?: number;
      limit?: number;
      isProbed?: boolean;
      /** By how much the first answer of each neighbour is late, ms. */
      lateMs?: number;
    },
  ) {
    const options = {
      guessBytesPerS: () => 125_000,
      isTold: false,
      isProbed,
      limitBytesPerS: limit,
      random: seededRandom(1),
    };
    this.flight = new Flight(options);
    this.#wants = wants;
    const line = this.#line = new SimLine(this.queue, rate);
    this.peers = Array.from({ length: peers }, (_, i) => this.#neighbour(line, 20 + 20 * i, lateMs));
    for (const peer of this.peers) this.flight.mark(peer, 0);
    if (wants === Infinity) this.#pump(Infinity);
    else this.#feed(wants, burst);
    const tick = () => {
      this.flight.tick(this.peers, this.queue.nowMs);
      this.#pump(this.#wants === Infinity ? Infinity : 0);
      this.queue.after(100, tick);
    };
    tick();
  }

  #credit = 0;
  readonly #random = seededRandom(2);

  #feed(wants: number, burst = 1): void {
    const blocks = burst === 1 ? 1 : 1 + Math.floor(2 * burst * this.#random());
    this.queue.after(blocks * BLOCK / wants * 1000, () => {
      this.#pump(blocks);
      this.#feed(wants, burst);
    });
  }

  /** A newcomer that is `rttMs` away connects. A second later it alone gets `wants` bytes a second. */
  leaveAllTo(rttMs: number, wants: number): void {
    const newcomer = this.#neighbour(this.#line, rttMs);
    this.flight.mark(newcomer, this.queue.nowMs);
    this.queue.run(this.queue.nowMs + 1000);
    for (const peer of this.peers.splice(0, Infinity, newcomer)) this.flight.drop(peer);
    this.#wants = wants;
    this.#credit = 0;
    this.#feed(wants);
  }

  /** A newcomer that is `rttMs` away gets blocks like the others. Its first PING waits for `routerMs` more, in the router's queue. */
  join(rttMs: number, routerMs: number): void {
    const newcomer = this.#neighbour(this.#line, rttMs, routerMs);
    this.flight.mark(newcomer, this.queue.nowMs);
    this.peers.push(newcomer);
  }

  #neighbour(line: SimLine, rttMs: number, routerMs = 0): LivePeer {
    const { queue } = this;
    let delayMs = rttMs + routerMs;
    const waiting: { bytes: number; nonces: bigint[]; atMs: number }[] = [];
    const echo = (nonce: bigint) => {
      queue.after(delayMs, () => {
        if (this.dead.has(peer)) return;
        this.flight.echoed(peer, nonce, null, queue.nowMs);
        this.#pump(0);
      });
      delayMs = rttMs;
    };
    const lane = {
      get headBytes() {
        return waiting[0]?.bytes ?? null;
      },
      headSent: () => {
        const { nonces, atMs } = waiting.shift()!;
        this.waitedMs = Math.max(this.waitedMs, queue.nowMs - atMs);
        nonces.forEach(echo);
      },
    };
    const take = (bytes: number) => {
      waiting.push({ bytes, nonces: [], atMs: queue.nowMs });
      if (waiting.length === 1) line.add(lane);
    };
    const link = {
      send: (bytes: Uint8Array) => {
        const message = decodeLiveMessage(bytes);
        // FILL.
        if (message === null) take(bytes.length);
        if (message?.type !== "ping") return;
        assertEquals(encodeLiveMessage(message).length, 9);
        const last = waiting.at(-1);
        if (last === undefined) echo(message.nonce);
        else last.nonces.push(message.nonce);
      },
      piece: () => take(BLOCK),
    } as unknown as LiveLink;
    const peer: LivePeer = new LivePeer(link, { role: "viewer", upBytesPerS: null }, 0);
    return peer;
  }

  #pump(blocks: number): void {
    const { flight, queue, peers } = this;
    this.#credit += blocks;
    let tries = 0;
    while (this.#credit > 0 && flight.hasRoom(queue.nowMs) && tries < peers.length) {
      const peer = peers[this.#next++ % peers.length]!;
      tries++;
      if (flight.isFull(peer)) continue;
      tries = 0;
      this.#credit--;
      this.given.set(peer, (this.given.get(peer) ?? 0) + 1);
      peer.link.piece(0, 0, new Uint8Array());
      flight.handed(peer, BLOCK, queue.nowMs);
    }
    flight.isLimited = this.#credit > 0 && !flight.hasRoom(queue.nowMs);
    const pauseMs = flight.pauseMs(queue.nowMs);
    if (this.#credit <= 0 || pauseMs === 0 || this.#isAsleep) return;
    this.#isAsleep = true;
    queue.after(pauseMs, () => {
      this.#isAsleep = false;
      this.#pump(0);
    });
  }

  /** Runs until `ms`, and forgets how long blocks have waited before the last two seconds. */
  run(ms: number): this {
    this.queue.run(ms - 2000);
    this.waitedMs = 0;
    this.queue.run(ms);
    return this;
  }

  get known(): number {
    return this.flight.line.bytesPerS;
  }
}

test("Flight learns what a line carries within two seconds, whatever the sockets take", () => {
  for (const rate of [50_000, 250_000, 1_000_000, 5_000_000]) {
    const rig = new Rig({ rate }).run(2500);
    assert(rig.flight.line.isKnown, `${rate} is not known`);
    assert(Math.abs(rig.known / rate - 1) < 0.25, `${rate}: ${rig.known}`);
  }
});

test("Flight probes a line to a quarter of its rate, though the first answers of all neighbours are late", () => {
  for (const rate of [50_000, 100_000, 250_000, 500_000]) {
    const { flight } = new Rig({ rate, wants: 1, isProbed: true, lateMs: 80 }).run(2000);
    assert(
      flight.line.isKnown && Math.abs(flight.line.bytesPerS / rate - 1) < 0.25,
      `${rate}: ${flight.line.bytesPerS}`,
    );
  }
});

test("LinkFlight is settled by the third time on the idle line, and no guess after the first", () => {
  const link = new LinkFlight();
  const steps = [30, null, null, 15, null].map((queuedMs, i) => {
    link.measured({ sentMs: 1000 * i, atMs: null, queuedMs, ownMs: 0 }, 1000 * i + (i === 1 ? 90 : 40));
    return [link.isGuessed, link.isSettled, link.rttMs];
  });
  assertEquals(steps, [
    [true, false, 10],
    [false, false, 90],
    [false, false, 40],
    [false, false, 40],
    [false, true, 40],
  ]);
});

test("LinkFlight.measured() takes the time of a block for no part of the way, however long the line stays busy", () => {
  const link = new LinkFlight();
  const other = 5_000_000;
  let nowMs = 0;
  /** A PING that travels for 20 ms each way, behind a block unless the line is idle. */
  const ping = (isIdle: boolean, wayMs = 20) => {
    nowMs += 1000;
    const ownMs = isIdle ? 0 : 60;
    const echo = { sentMs: nowMs, atMs: other + nowMs + ownMs + wayMs, queuedMs: isIdle ? null : 0, ownMs };
    return link.measured(echo, nowMs + ownMs + 2 * wayMs);
  };
  assertEquals([ping(true), ping(true), ping(true)], [0, 0, 0]);
  for (let s = 0; s < 300; s++) assertEquals(ping(false), 60);
  assertEquals([link.rttMs, link.isGuessed, link.isSettled], [40, false, false]);
  // The way has become longer: known after a period, without an idle moment and with one.
  for (let s = 0; s < 120; s++) ping(false, 50);
  assertEquals([ping(false, 50), link.rttMs], [60, 100]);
  for (let s = 0; s < 120; s++) ping(s % 20 === 0, 80);
  assertEquals([ping(false, 80), link.rttMs, link.isSettled], [60, 160, true]);
});

test("LineMeter.arrived() weighs the first sample of a line with what a burst showed", () => {
  const line = new LineMeter(() => 125_000, false);
  line.probed(800_000);
  const arrival = { bytes: BLOCK, allBytes: BLOCK, aheadBytes: 6 * BLOCK, waitedMs: 100, baseMs: 40, isSure: true };
  const links = [{}, {}];
  for (let i = 0; i <= 8; i++) line.arrived({ ...arrival, link: links[i % 2]!, wasLimited: true }, 40 * i);
  // A quarter of the way to 410 kB/s, not down to half as much again as has arrived.
  assert(line.bytesPerS > 650_000 && line.bytesPerS < 750_000, `${line.bytesPerS}`);
});

test("Flight takes a line that is busy in short bursts for no faster than it is", () => {
  for (const [rate, load] of [[250_000, 0.7], [500_000, 0.95]] as const) {
    const rig = new Rig({ rate, wants: load * rate, burst: 3, peers: 8 });
    const shares: number[] = [];
    for (let s = 10; s <= 120; s += 2) shares.push(rig.run(1000 * s).known / rate);
    assert(Math.max(...shares) < 1.15 && Math.min(...shares) > 0.8, `${rate}: ${shares.map((one) => one.toFixed(2))}`);
  }
});

test("Flight keeps a line busy and lets few blocks wait in it", () => {
  for (const rate of [250_000, 1_000_000, 5_000_000]) {
    const rig = new Rig({ rate });
    rig.queue.run(4000);
    const before = [...rig.given.values()].reduce((sum, blocks) => sum + blocks, 0);
    rig.run(8000);
    const sent = ([...rig.given.values()].reduce((sum, blocks) => sum + blocks, 0) - before) * BLOCK / 4;
    assert(sent > 0.93 * rate && sent < 1.02 * rate, `${rate}: ${sent}`);
    assert(Math.abs(rig.known / rate - 1) < 0.1, `${rate}: ${rig.known}`);
    assert(rig.waitedMs < 250, `${rate}: ${rig.waitedMs} ms`);
  }
});

test("Flight believes no more than half as much again as what arrived while the line is not the limit", () => {
  const rig = new Rig({ rate: 12_500_000, wants: 600_000 }).run(6000);
  assertEquals(rig.flight.line.isKnown, false);
  assert(rig.known >= 550_000 && rig.known <= 900_000, `${rig.known}`);
});

test("Flight keeps the user's limit", () => {
  const rig = new Rig({ rate: 1_000_000, limit: 200_000 }).run(5000);
  const sent = [...rig.given.values()].reduce((sum, blocks) => sum + blocks, 0) * BLOCK / 5;
  assert(sent > 180_000 && sent < 215_000, `${sent}`);
});

test("Flight is held up by a neighbour that takes nothing for no more than a moment", () => {
  const rig = new Rig({ rate: 500_000 });
  rig.queue.run(3000);
  const [dead, ...others] = rig.peers;
  rig.dead.add(dead!);
  rig.queue.run(4500);
  const count = () => others.reduce((sum, peer) => sum + rig.given.get(peer)!, 0);
  const before = count();
  const givenToDead = rig.given.get(dead!)!;
  rig.queue.run(6500);
  assert((count() - before) * BLOCK / 2 > 450_000, `${(count() - before) * BLOCK / 2}`);
  assertEquals([rig.given.get(dead!), rig.flight.stalledMs(dead!, rig.queue.nowMs) > 3000], [givenToDead, true]);
  assert(Math.abs(rig.known / 500_000 - 1) < 0.1, `${rig.known}`);
});

test("Flight measures a neighbour again that connected while the line was busy", () => {
  const rig = new Rig({ rate: 500_000 });
  rig.queue.run(3000);
  rig.leaveAllTo(60, 100_000);
  rig.queue.run(20_000);
  assertEquals(Math.round(rig.peers[0]!.flight.rttMs!), 60);
});

test("Flight measures a newcomer in the moments in which a busy line is idle", () => {
  const rig = new Rig({ rate: 500_000, wants: 300_000, peers: 1 });
  rig.queue.run(5000);
  rig.join(30, 0);
  rig.queue.run(6000);
  assertEquals(rig.peers.at(-1)!.flight.isSettled, true);
});

test("Flight does not take a slow line for a fast one when the first PING to a newcomer waits for the line", () => {
  const rig = new Rig({ rate: 60_000 });
  rig.queue.run(5000);
  const before = rig.known;
  rig.join(60, 400);
  let most = 0;
  for (let ms = 5000; ms <= 9000; ms += 50) {
    rig.queue.run(ms);
    most = Math.max(most, rig.known);
  }
  assert(rig.given.get(rig.peers.at(-1)!)! > 2);
  assert(before < 70_000 && most < 1.3 * before, `${before}, then up to ${most}`);
});

test("LinkFlight.measured() deducts no longer queue from a first PING than that was on its way", () => {
  const link = new LinkFlight();
  const other = 5_000_000;
  link.measured({ sentMs: 1000, atMs: other + 1023, queuedMs: 265, ownMs: 0 }, 1046);
  const waitedMs = link.measured({ sentMs: 2000, atMs: other + 2023, queuedMs: 0, ownMs: 0 }, 2046);
  assert(waitedMs >= 0 && waitedMs <= 36, `${waitedMs}`);
});

test("Flight takes no answer for arrival that is not the echo of its own", () => {
  const { flight, peers: [peer] } = new Rig({ rate: 50_000, wants: 1 });
  flight.handed(peer!, BLOCK, 0);
  assertEquals(flight.echoed(peer!, 12345n, null, 10), false);
  assertEquals(flight.inFlightBytes, BLOCK);
  flight.drop(peer!);
  assertEquals(flight.inFlightBytes, 0);
});
