/** The data path of a torrent without peers: what happens to blocks when the scheduler changes its mind. */
import { before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { Ports } from "../../src/ports.ts";
import { Scheduler } from "../../src/swarm/scheduler/scheduler.ts";
import type { Sources } from "../../src/swarm/data/sources.ts";
import { Transfer } from "../../src/swarm/data/transfer.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MemoryStore } from "./support/memory-cache.ts";
import { makeTorrent } from "./support/torrent.ts";

const BLOCK_BYTES = 16_384;
const PIECE_BYTES = 65_536;
const PEER = 1;

let ports: Ports;
before(async () => {
  ports = await loadPorts();
});

test("Transfer accepts the blocks of a given-up piece when they are requested again", async () => {
  const torrent = await makeTorrent({ bytes: 64 * PIECE_BYTES, pieceLength: PIECE_BYTES });
  let scheduler!: Scheduler;
  const failed: number[] = [];
  const asked: (readonly [number, number])[] = [];
  const sources: Sources = {
    request: (_, piece, offset) => void asked.push([piece, offset]),
    cancel: () => {},
    interested: () => {},
    drop: () => {},
    suspect: () => undefined,
    convict: () => {},
    canAsk: () => true,
    setCongested: () => {},
    reportProgress: () => {},
  };
  const transfer = new Transfer({
    metainfo: torrent.metainfo,
    store: new MemoryStore(torrent.metainfo),
    ports: { clock: new FakeClock(), sha1: ports.sha1, sha256: ports.sha256 },
    buffers: { acquire: (bytes) => new Uint8Array(bytes), release: () => {} },
    createScheduler: (shape, sources, forgetPiece) => {
      // Pieces that no reader wants any more are given up at once.
      scheduler = new Scheduler(shape, sources, forgetPiece, { abandonedLimitBytes: 0 });
      const fail = scheduler.pieceFailed.bind(scheduler);
      scheduler.pieceFailed = (piece, nowMs) => {
        failed.push(piece);
        fail(piece, nowMs);
      };
      return scheduler;
    },
    sources,
    events: { verified: () => {}, lost: () => {}, trouble: () => {} },
  });
  try {
    const deliver = (offset: number) => {
      const target = transfer.blockTarget(PEER, 0, offset, BLOCK_BYTES);
      target?.set(torrent.data.subarray(offset, offset + BLOCK_BYTES));
      return transfer.blockArrived(PEER, 0, offset, BLOCK_BYTES, target !== null);
    };
    const readPiece = (piece: number) => {
      const position = piece * PIECE_BYTES;
      const demand = { position, end: torrent.data.length, bytesPerSecond: 1000, readAheadBytes: 0 };
      scheduler.setReader(1, { ...demand, waitingEnd: position + PIECE_BYTES }, 0);
      scheduler.tick(0);
    };
    scheduler.addPeer(PEER, 0, { requestQueueLimit: 250, rttMs: 10, fast: true });
    scheduler.peerHasAll(PEER, 0);
    scheduler.unchoked(PEER, 0);
    readPiece(0);
    assertEquals(deliver(0), BLOCK_BYTES);
    readPiece(60);
    asked.length = 0;
    readPiece(0);
    assert(asked.some(([piece, offset]) => piece === 0 && offset === 0), "the given-up block was not requested again");
    assertEquals(deliver(0), BLOCK_BYTES, "and counts again");
    assertEquals(failed, [], "a failed hash was counted");
  } finally {
    transfer.close();
  }
});
