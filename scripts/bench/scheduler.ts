/**
 * Measures the cost of scheduling one block: `deno run scripts/bench/scheduler.ts`. The host is reduced to a queue, so
 * that nearly all of the time is the scheduler's. Budget: 2 µs per block (450 MB/s are 28,000 blocks/s, 5 % of a core).
 */
import { Scheduler } from "../../src/swarm/scheduler/scheduler.ts";

const BLOCK_BYTES = 16_384;

interface Case {
  readonly name: string;
  readonly pieceBytes: number;
  readonly pieces: number;
  readonly peers: number;
  /** Share of pieces each peer has. */
  readonly share: number;
  readonly mode: "reader" | "background";
}

/** Runs until everything is here; returns microseconds per block. */
function measure(run: Case): number {
  const blocks = Math.ceil(run.pieceBytes / BLOCK_BYTES);
  const totalBytes = run.pieces * run.pieceBytes;
  let queue: number[] = [];
  const scheduler = new Scheduler(
    { pieceCount: run.pieces, pieceLengthBytes: run.pieceBytes, totalBytes, blockBytes: BLOCK_BYTES },
    {
      request: (peer, piece, offset) => void queue.push(peer, piece, offset),
      cancel: () => {},
      interested: () => {},
      drop: () => {},
    },
    () => {},
  );
  let nowMs = 0;
  for (let peer = 0; peer < run.peers; peer++) {
    scheduler.addPeer(peer, 0, { requestQueueLimit: 500, rttMs: 0.5, fast: true });
    if (run.share >= 1) scheduler.peerHasAll(peer, 0);
    else {
      const bits = new Uint8Array((run.pieces + 7) >> 3);
      for (let i = 0; i < bits.length; i++) {
        bits[i] = (Math.imul(i * 200 + peer, 2654435761) >>> 24) | (peer === 0 ? 255 : 0);
      }
      scheduler.peerBitfield(peer, bits, 0);
    }
    scheduler.unchoked(peer, 0);
  }
  const began = performance.now();
  let position = 0;
  const demand = (): void =>
    scheduler.setReader(1, {
      position,
      end: totalBytes,
      bytesPerSecond: null,
      readAheadBytes: null,
      waitingEnd: Math.min(totalBytes, position + 1_048_576),
    }, nowMs);
  if (run.mode === "reader") demand();
  else scheduler.setBackground({ firstPiece: 0, endPiece: run.pieces }, 0);
  const have = new Uint8Array(run.pieces);
  let next = 0;
  let received = 0;
  let idle = 0;
  let tickMs = 0;
  const total = run.pieces * blocks;
  while (received < total) {
    const batch = queue;
    queue = [];
    if (batch.length === 0) {
      if (++idle > 1000) throw new Error(`${run.name}: no request at ${received} of ${total}`);
      scheduler.tick(nowMs += 20);
    } else idle = 0;
    for (let i = 0; i < batch.length; i += 3) {
      const peer = batch[i]!;
      const piece = batch[i + 1]!;
      nowMs += 0.035;
      scheduler.progress(peer, BLOCK_BYTES, nowMs);
      if (scheduler.blockReceived(peer, piece, batch[i + 2]!, nowMs)) received++;
      if (scheduler.pieceComplete(piece) && have[piece] === 0) {
        have[piece] = 1;
        scheduler.pieceVerified(piece, nowMs);
        if (run.mode === "reader") {
          const before = next;
          while (next < run.pieces && have[next] === 1) next++;
          if (next !== before) {
            position = next * run.pieceBytes;
            demand();
          }
        }
      }
      if (nowMs >= tickMs) {
        scheduler.tick(nowMs);
        tickMs = nowMs + 20;
      }
    }
  }
  return ((performance.now() - began) * 1000) / total;
}

const MiB = 1_048_576;
const cases: Case[] = [
  { name: "1 seed, reader, 1 MiB pieces", pieceBytes: MiB, pieces: 4096, peers: 1, share: 1, mode: "reader" },
  { name: "1 seed, background, 1 MiB pieces", pieceBytes: MiB, pieces: 4096, peers: 1, share: 1, mode: "background" },
  { name: "200 seeds, reader, 1 MiB pieces", pieceBytes: MiB, pieces: 4096, peers: 200, share: 1, mode: "reader" },
  { name: "200 parts, background, 1 MiB", pieceBytes: MiB, pieces: 4096, peers: 200, share: 0.5, mode: "background" },
  { name: "1 seed, reader, 400k × 16 KiB", pieceBytes: 16_384, pieces: 400_000, peers: 1, share: 1, mode: "reader" },
  {
    name: "20 parts, background, 400k × 16 KiB",
    pieceBytes: 16_384,
    pieces: 400_000,
    peers: 20,
    share: 0.5,
    mode: "background",
  },
];
measure({ ...cases[0]!, pieces: 512 });
for (const run of cases) console.log(`${run.name.padEnd(38)} ${measure(run).toFixed(2).padStart(7)} µs/block`);
