import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { seededRandom } from "../../simulation/event-queue.ts";
import { type Ask, BLOCK_BYTES, FakeHost } from "./fake-host.ts";

const PIECE_COUNT = 40;

/**
 * Drives a scheduler with random events and checks that it keeps the protocol; then all peers behave and everything
 * must arrive. Returns how many parts of blocks were requested.
 */
function run(seed: number): number {
  let parts = 0;
  const random = seededRandom(seed);
  const int = (below: number): number => Math.floor(random() * below);
  const host = new FakeHost(
    PIECE_COUNT,
    1 + int(6),
    // With some seeds all peers count as slow, and are asked for parts of blocks.
    { random, activeLimitBytes: 500_000, abandonedLimitBytes: 200_000, slowBlockMs: seed % 2 === 0 ? 0 : 1_000 },
    777,
  );
  const { scheduler } = host;
  const choking = new Map<number, boolean>();
  const owns = new Map<number, Set<number>>();
  const limits = new Map<number, number>();
  const have = new Set<number>();
  const seen = new WeakSet<Ask>();
  const check = (): void => {
    for (const ask of host.asked) {
      if (seen.has(ask)) continue;
      seen.add(ask);
      assert(choking.has(ask.peer), "asked a peer that is gone");
      assert(!choking.get(ask.peer), "asked a choking peer");
      assert(owns.get(ask.peer)!.has(ask.piece), "asked for a piece the peer lacks");
      assert(!have.has(ask.piece), "asked for a piece that is here");
      if (ask.offset % BLOCK_BYTES !== 0) parts++;
    }
    // A few more than allowed: probes of silent peers (every 10 s, dropped after 30) don't count as requests.
    for (const [peer, limit] of limits) assert(host.of(peer).length <= limit + 3, "asked for more than allowed");
  };
  const gone = (peer: number): void => {
    choking.delete(peer);
    owns.delete(peer);
    limits.delete(peer);
    host.asked = host.asked.filter((ask) => ask.peer !== peer);
  };
  const settle = (piece: number, good: boolean): void => {
    if (have.has(piece) || !scheduler.pieceComplete(piece)) return;
    if (good) {
      have.add(piece);
      scheduler.pieceVerified(piece, host.nowMs);
    } else scheduler.pieceFailed(piece, host.nowMs);
  };
  const arrive = (ask: Ask, good: boolean): void => {
    host.deliver(ask);
    settle(ask.piece, good);
  };
  for (let step = 0; step < 600; step++) {
    const peer = int(6);
    const piece = int(PIECE_COUNT);
    switch (int(14)) {
      case 0:
        if (choking.has(peer)) {
          gone(peer);
          scheduler.removePeer(peer, host.nowMs);
        } else {
          choking.set(peer, true);
          owns.set(peer, new Set());
          limits.set(peer, 1 + int(20));
          scheduler.addPeer(peer, host.nowMs, { requestQueueLimit: limits.get(peer)!, rttMs: null, fast: true });
          const bits = new Uint8Array(5).map(() => int(256));
          for (let i = 0; i < PIECE_COUNT; i++) if ((bits[i >> 3]! & (0x80 >> (i & 7))) !== 0) owns.get(peer)!.add(i);
          scheduler.peerBitfield(peer, bits, host.nowMs);
        }
        break;
      case 1:
      case 2:
        if (!choking.has(peer)) break;
        choking.set(peer, false);
        scheduler.unchoked(peer, host.nowMs);
        break;
      case 3:
        if (!choking.has(peer)) break;
        choking.set(peer, true);
        host.asked = host.asked.filter((ask) => ask.peer !== peer);
        scheduler.choked(peer, host.nowMs);
        break;
      case 4:
        owns.get(peer)?.add(piece);
        scheduler.peerHas(peer, piece, host.nowMs);
        break;
      case 5: {
        const at = int(host.totalBytes);
        const waitingEnd = at + (random() < 0.5 ? int(200_000) : 0);
        host.read(int(3), at, { readAheadBytes: random() < 0.3 ? int(300_000) : null, waitingEnd });
        break;
      }
      case 6:
        scheduler.removeReader(int(3), host.nowMs);
        break;
      case 7:
        scheduler.setBackground(random() < 0.5 ? null : { firstPiece: int(20), endPiece: 20 + int(30) }, host.nowMs);
        break;
      case 8:
        have.delete(piece);
        scheduler.pieceLost(piece, host.nowMs);
        break;
      case 9: {
        const ask = host.asked[int(host.asked.length)];
        if (ask === undefined) break;
        host.asked = host.asked.filter((other) => other !== ask);
        scheduler.rejected(ask.peer, ask.piece, ask.offset, host.nowMs);
        break;
      }
      case 10:
        host.advance(20 * int(100));
        break;
      default: {
        host.nowMs += int(30);
        const ask = host.asked[int(host.asked.length)];
        if (ask !== undefined) arrive(ask, random() < 0.8);
      }
    }
    check();
  }
  for (let reader = 0; reader < 3; reader++) scheduler.removeReader(reader, host.nowMs);
  for (const peer of [...choking.keys()]) {
    gone(peer);
    scheduler.removePeer(peer, host.nowMs);
  }
  choking.set(9, false);
  owns.set(9, new Set(Array.from({ length: PIECE_COUNT }, (_, i) => i)));
  host.peer(9);
  scheduler.setBackground({ firstPiece: 0, endPiece: PIECE_COUNT }, host.nowMs);
  for (let round = 0; have.size < PIECE_COUNT && round < 5000; round++) {
    host.advance(20);
    for (let piece = 0; piece < PIECE_COUNT; piece++) settle(piece, true);
    for (const ask of [...host.asked]) arrive(ask, true);
  }
  assertEquals(have.size, PIECE_COUNT, `seed ${seed}`);
  assertEquals(host.asked, []);
  return parts;
}

test("Scheduler keeps the protocol under random events and recovers from them", () => {
  let parts = 0;
  for (let seed = 1; seed <= 60; seed++) parts += run(seed);
  assert(parts > 20, `${parts} parts of blocks`);
});
