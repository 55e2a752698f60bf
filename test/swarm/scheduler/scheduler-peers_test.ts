/** How the scheduler reacts to what peers say, before and after their handshake. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { FakeHost, pieces } from "./fake-host.ts";

test("choked() moves the peer's requests to others at once", () => {
  const host = new FakeHost(10, 8);
  host.peer(0);
  host.read(1, 0, { readAheadBytes: 1 });
  const blocks = host.of(0).map((ask) => ask.offset);
  assertEquals(blocks.length, 8);
  host.peer(1);
  host.asked = [];
  host.scheduler.choked(0, host.nowMs);
  assertEquals(host.of(1).map((ask) => ask.offset).sort((a, b) => a - b), blocks);
  assertEquals(host.cancelled, []); // a choke voids requests by itself
});

test("suggested() has a peer asked first for those pieces of the background that nobody began", () => {
  const host = new FakeHost(300, 1);
  for (let piece = 0; piece < 200; piece++) host.scheduler.suggested(0, piece); // nobody by that number
  host.peer(0, { choked: true });
  for (let piece = 299; piece > 0; piece--) host.scheduler.suggested(0, piece);
  host.scheduler.pieceVerified(127, 0);
  host.scheduler.setBackground({ firstPiece: 0, endPiece: 300 }, 0);
  host.scheduler.unchoked(0, 0);
  host.scheduler.tick(0);
  // The newest 128.
  assertEquals(host.asked.slice(0, 3).map(({ piece }) => piece), [128, 126, 125]);
});

test("allowedFast() allows requests for those pieces to a choking peer", () => {
  const host = new FakeHost(10, 4);
  host.peer(0, { choked: true });
  host.read(1, 0);
  assertEquals(host.asked, []);
  host.scheduler.allowedFast(0, 2, 0);
  assertEquals(pieces(host.asked), [2]);
  host.peer(1, { choked: true, fast: false });
  host.scheduler.allowedFast(1, 2, 0);
  assertEquals(host.of(1), []);
});

test("rejected() asks another peer and not the rejecting one for that piece", () => {
  const host = new FakeHost(10, 4);
  host.peer(0);
  host.peer(1);
  host.read(1, 0, { readAheadBytes: 1 });
  const ask = host.of(0)[0]!;
  host.asked = host.asked.filter((other) => other !== ask);
  host.scheduler.rejected(0, ask.piece, ask.offset, 0);
  assert(host.of(1).some((other) => other.offset === ask.offset));
  assert(!host.of(0).some((other) => other.offset === ask.offset));
});

test("peerLacks() stops requests for a piece the peer lost, even if it had everything (BEP 54)", () => {
  for (const fast of [false, true]) {
    const host = new FakeHost(6, 2);
    host.peer(0, { fast });
    host.read(1, 0, { waitingEnd: 10 });
    assert(host.asked.some((ask) => ask.piece === 0));
    host.scheduler.peerLacks(0, 0, 0);
    host.scheduler.peerLacks(0, 0, 0);
    host.scheduler.peerLacks(0, 99, 0);
    assertEquals(host.scheduler.stallReason(1, 5000), "missing_piece");
    // A peer with BEP 6 rejects; then another is asked.
    if (fast) { for (const ask of [...host.asked]) if (ask.piece === 0) host.scheduler.rejected(0, 0, ask.offset, 0); }
    host.asked = host.asked.filter((ask) => ask.piece !== 0);
    host.peer(1, { pieces: [0] });
    assertEquals(host.asked.filter((ask) => ask.piece === 0).map((ask) => ask.peer), [1, 1], `fast ${fast}`);
    // It gets the piece again, and the other peer leaves.
    host.scheduler.peerHas(0, 0, 0);
    host.asked = host.asked.filter((ask) => ask.peer !== 1);
    host.scheduler.removePeer(1, 0);
    assertEquals(host.asked.filter((ask) => ask.piece === 0).map((ask) => ask.peer), [0, 0]);
  }
});

test("peerLacks() ends interest in a peer that has nothing else", () => {
  const host = new FakeHost(4, 1);
  host.read(1, 0, { waitingEnd: 10 });
  host.peer(0, { pieces: [2, 3] });
  assertEquals(host.interest.get(0), true);
  host.scheduler.peerLacks(0, 2, 0);
  assertEquals(host.interest.get(0), true);
  host.scheduler.peerLacks(0, 3, 0);
  assertEquals(host.interest.get(0), false);
  host.scheduler.peerLacks(7, 3, 0);
});

test("presume() requests what a reader needs before the handshake is done, and continues once unchoked", () => {
  const host = new FakeHost(10, 64);
  host.read(1, 0);
  for (let id = 0; id < 4; id++) host.scheduler.presume(id, 0, 50);
  assertEquals(host.asked.length, 64);
  assertEquals(pieces(host.asked), [0]);
  for (let id = 0; id < 4; id++) host.peer(id, { choked: true });
  assertEquals(host.asked.length, 64);
  assertEquals(host.cancelled, []);
  for (let id = 0; id < 4; id++) host.scheduler.unchoked(id, 0);
  host.deliverPiece(0);
  assert(host.scheduler.pieceComplete(0));
  assertEquals(host.cancelled, []);
});

test("presume() requests nothing while nobody reads", () => {
  const host = new FakeHost(10, 64);
  host.scheduler.setBackground({ firstPiece: 0, endPiece: 10 }, 0);
  host.scheduler.presume(0, 0, 50);
  assertEquals(host.asked, []);
});

test("addPeer() takes back requests to a presumed peer that lacks the fast extension", () => {
  const host = new FakeHost(10, 64);
  host.read(1, 0);
  host.scheduler.presume(0, 0, 50);
  assertEquals(host.of(0).length, 16);
  host.asked = [];
  host.peer(0, { fast: false });
  assertEquals(host.of(0).length, 16);
  host.deliverPiece(0);
  assert(host.scheduler.pieceComplete(0));
});

test("rejected() moves a request that a presumed, choking peer rejects to another peer", () => {
  const host = new FakeHost(10, 64);
  host.read(1, 0);
  host.scheduler.presume(0, 0, 50);
  const refused = host.asked.splice(0);
  host.peer(0, { choked: true });
  host.peer(1);
  for (const ask of refused) host.scheduler.rejected(0, ask.piece, ask.offset, 0);
  assertEquals(host.of(0), []);
  host.deliverPiece(0, 1);
  assert(host.scheduler.pieceComplete(0));
});

test("peerBitfield() frees blocks requested from a presumed peer that lacks them", () => {
  const host = new FakeHost(10, 64);
  host.read(1, 0);
  host.scheduler.presume(0, 0, 50);
  host.asked = [];
  host.scheduler.addPeer(0, 0, { requestQueueLimit: 250, rttMs: 50, fast: true });
  host.scheduler.peerBitfield(0, Uint8Array.of(0b0100_0000, 0), 0);
  host.peer(1, { pieces: [0] });
  host.deliverPiece(0, 1);
  assert(host.scheduler.pieceComplete(0));
});

test("tick() repeats the requests that the only peer ignored while it was presumed", () => {
  const host = new FakeHost(10, 64);
  host.read(1, 0);
  host.scheduler.presume(0, 0, 50);
  host.peer(0);
  host.asked = [];
  host.advance(2000);
  assert(host.of(0).some((ask) => ask.piece === 0 && ask.offset === 0));
});

test("tick() asks a silent peer that has no others beside it again, unless BEP 6 makes it answer, and drops it then", () => {
  for (const fast of [false, true]) {
    const host = new FakeHost(4, 4, { slowBlockMs: 1e9 });
    host.peer(0, { fast });
    host.read(1, 0);
    host.nowMs += 100;
    host.deliver(host.of(0)[0]!);
    let repeats = 0;
    while (host.dropped.length === 0) {
      const cancelled = host.cancelled.length;
      host.advance(500);
      if (host.cancelled.length > cancelled) repeats++;
    }
    assertEquals(repeats, fast ? 0 : 3);
  }
});

test("rejected() waits longer from reject to reject, and less once the peer sends a block", () => {
  const host = new FakeHost(1, 8);
  host.peer(0);
  host.read(1, 0);
  const reject = () => {
    for (const ask of [...host.asked]) {
      host.asked.splice(host.asked.indexOf(ask), 1);
      host.scheduler.rejected(0, ask.piece, ask.offset, host.nowMs);
    }
    const sinceMs = host.nowMs;
    while (host.asked.length === 0) host.advance(20);
    return host.nowMs - sinceMs;
  };
  const pausesMs = Array.from({ length: 8 }, reject);
  assert(pausesMs.every((ms, i) => Math.abs(ms - Math.min(5000, 100 * 2 ** i)) <= 300), `${pausesMs}`);
  host.deliver(host.asked[0]!);
  assert(reject() <= 400);
});
