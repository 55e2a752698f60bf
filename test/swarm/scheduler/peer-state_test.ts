import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type ActivePiece, type BlockRequest, PeerState } from "../../../src/swarm/scheduler/peer-state.ts";
import { defaultTuning } from "../../../src/swarm/scheduler/tuning.ts";

const BLOCK = 16_384;
const SLACK_MS = 40;

/** A peer whose pipe is kept as full as it wants; `answer` lets the far end answer its oldest requests. */
class Pipe {
  readonly peer = new PeerState(1, 500, 1, true, BLOCK, defaultTuning);

  fill(nowMs: number): void {
    while (this.peer.outstanding < this.peer.depth(SLACK_MS, 4)) {
      const { peer } = this;
      const request: BlockRequest = {
        peer,
        part: {} as ActivePiece,
        block: 0,
        sentMs: nowMs,
        older: null,
        newer: null,
        copy: null,
        rank: 0,
      };
      peer.enqueue(request);
    }
  }

  answer(count: number, nowMs: number): void {
    for (let i = 0; i < count; i++) {
      const request = this.peer.oldest!;
      this.peer.onBytes(BLOCK, nowMs);
      this.peer.onBlock(nowMs - request.sentMs, SLACK_MS, nowMs);
      this.peer.dequeue(request);
      this.fill(nowMs);
    }
  }
}

test("PeerState deepens its pipe to the limit when the peer answers in bursts", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 500; nowMs <= 5000; nowMs += 500) pipe.answer(pipe.peer.outstanding, nowMs);
  assertEquals(pipe.peer.depth(SLACK_MS, 4), 500);
  assert(pipe.peer.rttMs >= 500, `round trip ${pipe.peer.rttMs} ms`);
});

test("PeerState owes what two bursts hold when the peer sends so much at each and no more", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 500; nowMs <= 20_000; nowMs += 500) pipe.answer(Math.min(32, pipe.peer.outstanding), nowMs);
  const depth = pipe.peer.depth(SLACK_MS, 4);
  assert(depth >= 32 && depth <= 72, `depth ${depth}`);
});

test("PeerState forgets the pauses of a peer that sends steadily later", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 500; nowMs <= 5000; nowMs += 500) pipe.answer(Math.min(32, pipe.peer.outstanding), nowMs);
  assert(pipe.peer.rttMs >= 500);
  for (let nowMs = 5020; nowMs <= 25_000; nowMs += 20) pipe.answer(1, nowMs);
  assertLess(pipe.peer.rttMs, 200);
});

test("PeerState takes no pause from a slow link, however coarsely its blocks arrive", () => {
  const pipe = new Pipe();
  pipe.fill(0);
  for (let nowMs = 400; nowMs <= 20_000; nowMs += 400) pipe.answer(1, nowMs);
  assertLess(pipe.peer.depth(SLACK_MS, 4), 4);
});

test("rate() takes a burst for no more than a tenth of a second's worth, and finds the rate once bursts follow", () => {
  const { peer } = new Pipe();
  peer.onBytes(BLOCK, 1000);
  for (let i = 0; i < 3; i++) peer.onBytes(BLOCK, 1000.4);
  assert(peer.measured);
  assertLess(peer.rate(0), 3 * BLOCK * 10 + 1);
  assertLess(peer.depth(SLACK_MS, 4), 6);
  for (let nowMs = 1200; nowMs < 11_000; nowMs += 200) for (let i = 0; i < 4; i++) peer.onBytes(BLOCK, nowMs);
  assertLess(Math.abs(peer.rate(0) / (4 * BLOCK * 5) - 1), 0.12);
});
