import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { BLOCK_BYTES, FakeHost, pieces } from "./fake-host.ts";

const MiB = 1_048_576;

test("setReader() splits a single piece evenly over peers with no history", () => {
  const host = new FakeHost(10, 64);
  for (let id = 0; id < 4; id++) host.peer(id);
  host.read(1, 0);
  const first = host.asked.filter((ask) => ask.piece === 0);
  assertEquals(first.length, 64); // 16 each
  for (let id = 0; id < 4; id++) assertEquals(first.filter((ask) => ask.peer === id).length, 16);
  assertEquals(new Set(first.map((ask) => ask.offset)).size, 64);
});

test("setReader() asks for the short last block of the last piece with its true length", () => {
  const host = new FakeHost(3, 4, {}, BLOCK_BYTES + 100);
  host.peer(0);
  host.read(1, 2 * host.pieceBytes);
  assertEquals(host.asked.map((ask) => [ask.piece, ask.offset, ask.length]), [[2, 0, BLOCK_BYTES], [
    2,
    BLOCK_BYTES,
    100,
  ]]);
});

test("setReader() fetches only awaited bytes when the read-ahead is 0", () => {
  const host = new FakeHost(100, 4);
  host.peer(0);
  host.read(1, 10 * host.pieceBytes + 5, { readAheadBytes: 0, waitingEnd: 10 * host.pieceBytes + 5 });
  assertEquals(host.asked, []);
  host.read(1, 10 * host.pieceBytes + 5, { readAheadBytes: 0, waitingEnd: 11 * host.pieceBytes + 1 });
  for (let piece = 10; piece < 12; piece++) host.deliverPiece(piece);
  assertEquals(host.asked, []);
  assert(host.scheduler.pieceComplete(10) && host.scheduler.pieceComplete(11) && !host.scheduler.pieceComplete(12));
});

test("setReader() serves what others want within the time by which a reader yields first, and then its bytes", () => {
  // Two readers wait, the one that came first for the piece 50: both bytes are due now.
  const first = (yieldMs: number) => {
    const host = new FakeHost(100, 16);
    const wait = (id: number, piece: number, yieldsMs: number) =>
      host.read(id, piece * host.pieceBytes, {
        readAheadBytes: 0,
        waitingEnd: (piece + 1) * host.pieceBytes,
        yieldMs: yieldsMs,
      });
    wait(1, 50, yieldMs);
    wait(2, 0, 0);
    host.peer(0);
    const asked: number[] = [];
    for (let ask = host.asked[0]; ask !== undefined; ask = host.asked[0]) {
      asked.push(ask.piece);
      host.nowMs += 10;
      host.deliver(ask);
    }
    return asked;
  };
  const half = (piece: number) => new Array<number>(16).fill(piece);
  // Neither yields: they take turns.
  assertEquals(first(0).slice(0, 16).toSorted(), [...half(0).slice(8), ...half(50).slice(8)]);
  for (const yieldMs of [0.5, 2000]) assertEquals(first(yieldMs), [...half(0), ...half(50)]);
});

test("setReader() fills no deep pipes with bytes that yield: what is wanted next would wait for them", () => {
  const asked = (yieldMs: number) => {
    const host = new FakeHost(100, 64);
    for (let id = 0; id < 4; id++) host.peer(id);
    host.read(1, 0, { readAheadBytes: 0, waitingEnd: host.pieceBytes, yieldMs });
    return host.asked.length;
  };
  for (const yieldMs of [0, 0.5]) assertEquals(asked(yieldMs), 64);
  assertEquals(asked(2000), 16);
});

test("setReader() cancels what isn't critical when the position jumps, but for blocks that come within a round trip", () => {
  const host = new FakeHost(200, 64);
  for (let id = 0; id < 2; id++) host.peer(id);
  host.read(1, 0);
  const before = host.asked.length;
  assert(before > 4);
  host.read(1, 100 * MiB);
  assertEquals(host.cancelled.length, before - 2);
  assertEquals(host.asked.filter(({ piece }) => piece === 0).map(({ peer }) => peer), [0, 1]);
  assertEquals(pieces(host.asked), [0, 100]);
  assert(!host.scheduler.wanted(0) && host.scheduler.wanted(100));
});

test("setReader() keeps other readers' requests when the new position is already here", () => {
  const host = new FakeHost(200, 64);
  host.peer(0);
  for (let piece = 100; piece < 200; piece++) host.scheduler.pieceVerified(piece, 0);
  host.read(1, 0);
  host.read(2, 120 * MiB);
  assertEquals(host.cancelled, []);
});

test("removeReader() cancels what only that reader needed, but for blocks that come within a round trip", () => {
  const host = new FakeHost(200, 8);
  for (let id = 0; id < 2; id++) host.peer(id);
  host.read(1, 0);
  host.read(2, 150 * host.pieceBytes);
  host.scheduler.removeReader(1, 0);
  assert(host.asked.filter((ask) => ask.piece < 150).length <= 2);
  assert(host.asked.some((ask) => ask.piece >= 150));
  host.scheduler.removeReader(2, 0);
  assertEquals(host.asked.length, 2);
});

test("setReader() asks nobody again for blocks that were on their way when the reader before went", () => {
  const host = new FakeHost(200, 8);
  for (let id = 0; id < 4; id++) host.peer(id);
  host.read(1, 0, { waitingEnd: BLOCK_BYTES });
  const first = [...host.asked];
  host.scheduler.removeReader(1, host.nowMs);
  const kept = first.filter((ask) => host.asked.includes(ask));
  assertEquals(kept.map(({ peer }) => peer), [0, 1, 2, 3]);
  host.nowMs += 10;
  host.read(2, 0, { waitingEnd: BLOCK_BYTES });
  for (const { piece, offset } of kept) {
    assertEquals(host.asked.filter((ask) => ask.piece === piece && ask.offset === offset).length, 1);
  }
});

test("setReader() asks only for the awaited piece after a seek until blocks of the old place have come", () => {
  const host = new FakeHost(400, 8);
  for (let id = 0; id < 2; id++) host.peer(id);
  host.read(1, 0);
  // Steady peers of a block every 20 ms each, so that their pipes hold what a round trip of 50 ms needs.
  for (let i = 0; i < 100; i++) {
    host.advance(20);
    for (let id = 0; id < 2; id++) host.deliver(host.of(id)[0]!);
  }
  const old = host.asked.filter(({ piece }) => piece < 300);
  assert(old.length >= 4, `${old.length} blocks were on their way`);
  const place = 300 * host.pieceBytes;
  host.read(1, place, { waitingEnd: place + BLOCK_BYTES });
  assertEquals(pieces(host.asked.filter(({ piece }) => piece >= 300)), [300]);
  const ofPiece = () => host.asked.filter(({ piece }) => piece === 300);
  for (let i = 0; i < 40 && ofPiece().length > 0; i++) {
    host.advance(20);
    for (let id = 0; id < 2; id++) host.deliver(host.of(id)[0]!);
  }
  assert(host.scheduler.pieceComplete(300));
  assert(host.asked.some(({ piece }) => piece > 300), "the pipes ran dry");
});

test("forget() is called for abandoned pieces beyond the limit", () => {
  const host = new FakeHost(400, 64, { abandonedLimitBytes: 3 * MiB });
  host.peer(0);
  for (let i = 0; i < 8; i++) {
    host.read(1, i * 40 * MiB);
    host.nowMs += 60;
    host.deliver(host.asked[0]!);
  }
  assertEquals(host.forgotten.slice(0, 3), [0, 40, 80]);
});

test("blockReceived() accepts a block whose request was cancelled, but none that was never requested", () => {
  const host = new FakeHost(200, 64);
  host.peer(0);
  host.peer(1);
  host.read(1, 0);
  const early = host.of(0)[0]!;
  host.read(1, 100 * MiB);
  assert(host.deliver(early));
  assert(!host.deliver(early)); // a second time
  assert(!host.deliver({ peer: 1, piece: 100, offset: 63 * BLOCK_BYTES, length: BLOCK_BYTES }));
  assert(!host.deliver({ peer: 1, piece: 7, offset: 0, length: BLOCK_BYTES }));
  assert(!host.scheduler.blockReceived(1, 100, 5, 0)); // not on a block's boundary
});

test("tick() gives a silent peer's blocks to others, probes it and asks to drop it", () => {
  const host = new FakeHost(100, 64);
  host.peer(0);
  host.peer(1);
  host.read(1, 0);
  const step = (ms: number): void => {
    for (const end = host.nowMs + ms; host.nowMs < end;) {
      host.advance(20);
      const ask = host.of(1)[0];
      if (ask !== undefined) host.deliver(ask);
    }
  };
  step(1000);
  assertEquals(host.of(0), []);
  step(10_000);
  assertEquals(host.of(0).length, 1); // the probe
  assertEquals(host.dropped, []);
  step(25_000);
  assertEquals(host.dropped, [0]);
});

test("tick() takes requests from an overloaded peer to make room for a silent peer's blocks", () => {
  const host = new FakeHost(100, 1);
  host.peer(0);
  host.peer(1);
  host.read(1, 0);
  const [first] = host.of(0);
  for (let i = 0; i < 40; i++) {
    host.nowMs++;
    host.deliver(host.of(1)[0]!);
  }
  // After a fast burst it continues slowly.
  const owed = host.of(1).length;
  for (let i = 0; i < 8; i++) {
    host.advance(100);
    host.deliver(host.of(1)[0]!);
  }
  assertEquals(host.of(0), []);
  assert(owed - 8 > 16, `peer 1 owed ${owed} blocks`);
  assert(host.of(1).some((ask) => ask.piece === first!.piece), "the most urgent block was requested from nobody");
});

test("tick() leaves requests with the only peer until it must be dropped", () => {
  const host = new FakeHost(100, 64);
  host.peer(0);
  host.read(1, 0);
  const before = host.asked.length;
  host.advance(5000);
  assertEquals(host.asked.length, before);
  assertEquals(host.cancelled, []);
  host.advance(27_000);
  assertEquals(host.dropped, [0]);
});

test("tick() requests a second copy of a critical block from a faster peer, and cancels the loser", () => {
  const host = new FakeHost(1, 8);
  host.peer(0);
  host.peer(1);
  host.read(1, 0, { waitingEnd: host.totalBytes });
  for (let i = 0; i < 40 && host.of(1).length > 0; i++) {
    host.advance(20);
    if (host.of(1).length > 0) host.deliver(host.of(1)[0]!);
  }
  host.advance(200);
  const copies = host.of(1);
  assert(copies.length > 0, "the fast peer did not take over");
  while (host.of(1).length > 0) host.deliver(host.of(1)[0]!);
  assert(host.scheduler.pieceComplete(0));
  assertEquals(host.asked, []);
  assert(host.cancelled.some((ask) => ask.peer === 0));
});

test("tick() returns null when there is nothing to wait for", () => {
  const host = new FakeHost(2, 1);
  assertEquals(host.scheduler.tick(0), null);
  host.peer(0);
  host.read(1, 0);
  assertEquals(host.scheduler.tick(0), 20);
  for (const piece of [0, 1]) {
    host.deliverPiece(piece);
    host.scheduler.pieceVerified(piece, host.nowMs);
  }
  assertEquals(host.scheduler.tick(host.nowMs), null);
});

test("interest follows what peers have, and lapses only some time after demand ended", () => {
  const host = new FakeHost(4, 1);
  host.peer(0);
  host.peer(1, { pieces: [2] });
  assertEquals(host.interest.size, 0);
  host.read(1, 0);
  assertEquals([...host.interest], [[0, true], [1, true]]);
  host.scheduler.pieceVerified(2, 0);
  assertEquals(host.interest.get(1), false);
  host.scheduler.pieceLost(2, 0);
  assertEquals(host.interest.get(1), true);
  host.scheduler.removeReader(1, 0);
  assertEquals(host.interest.get(0), true);
  assertEquals(host.scheduler.tick(4000), 6000);
  assertEquals(host.scheduler.tick(10_000), null);
  assertEquals([...host.interest.values()], [false, false]);
});

test("pieceFailed() refetches each block from another peer than before, and after a second failure all from one", () => {
  const host = new FakeHost(20, 8);
  for (let peer = 0; peer < 3; peer++) host.peer(peer);
  host.scheduler.setBackground({ firstPiece: 3, endPiece: 4 }, 0);
  const fetch = () => {
    const senders: number[] = [];
    for (let i = 0; i < 60 && !host.scheduler.pieceComplete(3); i++) {
      host.advance(20);
      for (const ask of [...host.asked]) if (host.deliver(ask)) senders[ask.offset / BLOCK_BYTES] = ask.peer;
    }
    return senders;
  };
  const first = fetch();
  assertEquals(first.length, 8);
  host.scheduler.pieceFailed(3, host.nowMs);
  const second = fetch();
  assertEquals(second.length, 8);
  assert(second.every((peer, block) => peer !== first[block]), `${first} then ${second}`);
  host.scheduler.pieceFailed(3, host.nowMs);
  assertEquals(new Set(fetch()).size, 1);
});

test("pieceFailed() lets the only peer send its blocks again, and blocksLost() requests only the lost ones", () => {
  const host = new FakeHost(4, 8);
  host.peer(0);
  host.scheduler.setBackground({ firstPiece: 0, endPiece: 1 }, 0);
  host.deliverPiece(0);
  host.scheduler.pieceFailed(0, host.nowMs);
  host.deliverPiece(0);
  assert(host.scheduler.pieceComplete(0));
  host.asked.length = 0;
  host.scheduler.blocksLost(0, [2, 5], host.nowMs);
  assert(!host.scheduler.pieceComplete(0));
  assertEquals(host.asked.map(({ offset }) => offset / BLOCK_BYTES), [2, 5]);
});

test("pieceLost() requests a piece again that a reader needs", () => {
  const host = new FakeHost(4, 1);
  host.peer(0);
  for (let piece = 0; piece < 4; piece++) host.scheduler.pieceVerified(piece, 0);
  host.read(1, 0);
  assertEquals(host.asked, []);
  host.scheduler.pieceLost(1, 0);
  assertEquals(pieces(host.asked), [1]);
});

test("setBackground() fetches the rarest piece first", () => {
  const host = new FakeHost(8, 64);
  for (let id = 1; id < 4; id++) host.peer(id, { pieces: [0, 1, 2, 3, 4, 6, 7], choked: true });
  host.peer(0, { pieces: [0, 1, 2, 3, 4, 5, 6, 7] });
  host.scheduler.setBackground({ firstPiece: 0, endPiece: 8 }, 0);
  assertEquals(pieces(host.asked), [5]);
  host.scheduler.setBackground(null, 0);
  // The first block comes before a cancel could have an effect.
  assertEquals(host.asked.length, 1);
});

test("stallReason() returns why a reader waits", () => {
  const host = new FakeHost(4, 1);
  assertEquals(host.scheduler.stallReason(1, 0), null);
  host.read(1, 0, { waitingEnd: 10 });
  assertEquals(host.scheduler.stallReason(1, 0), "no_peers");
  host.peer(0, { pieces: [1], choked: true });
  assertEquals(host.scheduler.stallReason(1, 0), "missing_piece");
  host.scheduler.peerHas(0, 0, 0);
  assertEquals(host.scheduler.stallReason(1, 0), "choked");
  host.scheduler.unchoked(0, 0);
  assertEquals(host.scheduler.stallReason(1, 500), null);
  assertEquals(host.scheduler.stallReason(1, 1500), "slow_peers");
  host.scheduler.pieceVerified(0, 1500);
  assertEquals(host.scheduler.stallReason(1, 1600), null);
});

test("calls about peers, pieces and readers that don't exist do nothing", () => {
  const host = new FakeHost(4, 1);
  const { scheduler } = host;
  scheduler.removePeer(5, 0);
  scheduler.setRequestQueueLimit(5, 1);
  scheduler.progress(5, 1, 0);
  scheduler.choked(5, 0);
  scheduler.unchoked(5, 0);
  scheduler.peerHas(5, 0, 0);
  scheduler.peerBitfield(5, new Uint8Array(1), 0);
  scheduler.rejected(5, 0, 0, 0);
  scheduler.removeReader(5, 0);
  assert(!scheduler.blockReceived(5, 0, 0, 0));
  host.peer(0);
  scheduler.peerHas(0, 99, 0);
  scheduler.allowedFast(0, 99, 0);
  scheduler.pieceLost(99, 0);
  assertEquals(host.asked, []);
});

test("expects() is true for requested blocks, even cancelled ones, and for no others", () => {
  const host = new FakeHost(4, 8);
  host.peer(0);
  host.read(1, 0);
  const { piece, offset } = host.asked[0]!;
  assert(host.scheduler.expects(0, piece, offset));
  assert(!host.scheduler.expects(1, piece, offset));
  assert(!host.scheduler.expects(0, 3, 7 * BLOCK_BYTES) || host.asked.some((ask) => ask.piece === 3));
  host.scheduler.removeReader(1, 0);
  assert(host.scheduler.expects(0, piece, offset));
  host.deliver({ peer: 0, piece, offset, length: BLOCK_BYTES });
  assert(!host.scheduler.expects(0, piece, offset));
});
