import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type ActivePiece, type BlockRequest, PeerState } from "../../../src/swarm/scheduler/peer-state.ts";
import { defaultTuning } from "../../../src/swarm/scheduler/tuning.ts";

const BLOCK = 16_384;
const SLACK_MS = 40;

/** A peer kept as busy as its depth allows; `answer` lets the far end serve its oldest requests. */
class Pipe {
  readonly peer = new PeerState(1, 500, 1, true, BLOCK, defaultTuning);

  fill(nowMs: number): void {
    while (this.peer.room(SLACK_MS, 4, nowMs) === "any") this.ask(nowMs);
  }

  ask(nowMs: number, repeated = false): void {
    const { peer } = this;
    const request: BlockRequest = {
      peer,
      part: {} as ActivePiece,
      block: 0,
      from: 0,
      bytes: BLOCK,
      cut: null,
      sentMs: nowMs,
      repeated,
      dueMs: 0,
      stray: false,
      older: null,
      newer: null,
      copy: null,
      rank: 0,
    };
    peer.enqueue(request);
  }

  answer(count: number, nowMs: number, bytes = BLOCK): void {
    for (let i = 0; i < count; i++) {
      const request = this.peer.oldest!;
      this.peer.onBytes(bytes, nowMs);
      this.peer.onWhole();
      this.peer.onBlock(request, SLACK_MS, nowMs);
      this.peer.dequeue(request);
      this.fill(nowMs);
    }
  }
}

/** What it owes, oldest first. */
function requestsAt(peer: PeerState): BlockRequest[] {
  const list: BlockRequest[] = [];
  for (let request = peer.oldest; request !== null; request = request.newer) list.push(request);
  return list;
}

test("PeerState deepens its pipe to the limit when the peer answers in bursts", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 500; nowMs <= 5000; nowMs += 500) pipe.answer(pipe.peer.outstanding, nowMs);
  assertEquals(pipe.peer.depth(SLACK_MS, 4), 500);
  assert(pipe.peer.rttMs >= 500, `round trip ${pipe.peer.rttMs} ms`);
});

test("PeerState limits its depth to two bursts when the peer sends a fixed amount per burst", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 500; nowMs <= 23_000; nowMs += 500) pipe.answer(Math.min(32, pipe.peer.outstanding), nowMs);
  const depth = pipe.peer.depth(SLACK_MS, 4);
  assert(depth >= 32 && depth <= 72, `depth ${depth}`);
});

test("PeerState forgets the pauses of a peer that later sends steadily", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 500; nowMs <= 5000; nowMs += 500) pipe.answer(Math.min(32, pipe.peer.outstanding), nowMs);
  assert(pipe.peer.rttMs >= 500);
  for (let nowMs = 5020; nowMs <= 25_000; nowMs += 20) pipe.answer(1, nowMs);
  assertLess(pipe.peer.rttMs, 200);
});

test("PeerState sees no pauses on a slow link, however unevenly its blocks arrive", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 400; nowMs <= 20_000; nowMs += 400) pipe.answer(1, nowMs);
  assertLess(pipe.peer.depth(SLACK_MS, 4), 4);
});

test("rate() counts a burst as at least a tenth of a second, and finds the rate once more bursts follow", () => {
  const { peer } = new Pipe();
  peer.onBytes(BLOCK, 1000);
  for (let i = 0; i < 3; i++) peer.onBytes(BLOCK, 1000.4);
  assert(peer.measured);
  assertLess(peer.rate(0), 3 * BLOCK * 10 + 1);
  assertLess(peer.depth(SLACK_MS, 4), 6);
  for (let nowMs = 1200; nowMs < 11_000; nowMs += 200) for (let i = 0; i < 4; i++) peer.onBytes(BLOCK, nowMs);
  assertLess(Math.abs(peer.rate(0) / (4 * BLOCK * 5) - 1), 0.12);
});

/** A peer of 250 kB/s and a round trip of 100 ms, kept busy for 5 s in steps of 4 KiB. */
function steadyPipe(): { pipe: Pipe; nowMs: number } {
  const pipe = new Pipe();
  pipe.peer.settle(500, true, 100);
  pipe.fill(0);
  let nowMs = 100;
  for (let sent = 1; nowMs < 5000; sent++) {
    nowMs += 4096 / 250;
    if (sent % 4 === 0) pipe.answer(1, nowMs, 4096);
    else pipe.peer.onBytes(4096, nowMs);
    pipe.fill(nowMs);
  }
  return { pipe, nowMs };
}

test("room() keeps a round trip, the slack and a block on the way, not more", () => {
  const { pipe, nowMs } = steadyPipe();
  const blockMs = BLOCK / 250;
  assertLess(pipe.peer.outstanding * blockMs, 100 + SLACK_MS + 2 * blockMs);
  // A further block comes when those before it are through: the round trip is over by then.
  const eta = pipe.peer.etaMs(1, nowMs);
  assert(eta > 100 + blockMs && eta < 100 + SLACK_MS + 2.1 * blockMs, `${eta} ms`);
});

test("room() offers an awaited block to a peer whose pipe is full of strays, and nothing else", () => {
  const { pipe, nowMs } = steadyPipe();
  const { peer } = pipe;
  assertEquals(peer.room(SLACK_MS, 4, nowMs), "none");
  for (let request = peer.oldest; request !== null; request = request.newer) peer.strand(request, nowMs);
  assert(requestsAt(peer).some(({ stray }) => stray));
  assertEquals(peer.room(SLACK_MS, 4, nowMs), "awaited");
  const eta = peer.etaMs(1, nowMs);
  pipe.ask(nowMs);
  assertLess(Math.abs(peer.etaMs(1, nowMs) - eta - BLOCK / 250), 1);
});

test("etaMs() counts cancelled blocks until they come or are overdue", () => {
  const { pipe, nowMs } = steadyPipe();
  const { peer } = pipe;
  const eta = peer.etaMs(1, nowMs);
  const newest = requestsAt(peer).at(-1)!;
  peer.dequeue(newest);
  peer.expectCancelled(7, newest.sentMs);
  assertEquals(peer.etaMs(1, nowMs), eta);
  assert(peer.late.take(7));
  assertLess(peer.etaMs(1, nowMs), eta);
  peer.expectCancelled(8, newest.sentMs);
  assertEquals(peer.etaMs(1, nowMs), eta);
  assertLess(peer.etaMs(1, nowMs + 1000), eta);
});

test("onBlock() learns no round trip from a block that answers an earlier, cancelled request", () => {
  const pipe = new Pipe();
  pipe.peer.settle(500, true, 160);
  pipe.ask(0, true);
  pipe.answer(1, 5);
  assertEquals(pipe.peer.rttMs, 160);
});

test("settle() takes the round trip of the handshake: something nearer may have accepted the connection", () => {
  const near = new PeerState(1, 16, 1, true, BLOCK, defaultTuning);
  near.settle(250, true, 160);
  assertEquals(near.rttMs, 160);
});
