/** Records what the scheduler asks of its host, for tests of single decisions. */
import { Scheduler } from "../../../src/swarm/scheduler/scheduler.ts";
import type { Tuning } from "../../../src/swarm/scheduler/tuning.ts";
import type { ReaderDemand } from "../../../src/swarm/scheduler/types.ts";
import { seededRandom } from "../../simulation/event-queue.ts";

export interface Ask {
  readonly peer: number;
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

export const BLOCK_BYTES = 16_384;

export class FakeHost {
  readonly scheduler: Scheduler;
  /** Requests not yet answered, cancelled or voided. */
  asked: Ask[] = [];
  readonly cancelled: Ask[] = [];
  readonly interest = new Map<number, boolean>();
  readonly dropped: number[] = [];
  readonly forgotten: number[] = [];
  /** Senders of the blocks of each piece that counted, one entry per block. */
  readonly senders = new Map<number, number[]>();
  readonly pieceBytes: number;
  readonly totalBytes: number;
  nowMs = 0;

  constructor(pieceCount: number, blocksPerPiece: number, tuning: Partial<Tuning> = {}, lastPieceBytes?: number) {
    this.pieceBytes = blocksPerPiece * BLOCK_BYTES;
    this.totalBytes = (pieceCount - 1) * this.pieceBytes + (lastPieceBytes ?? this.pieceBytes);
    const shape = {
      pieceCount,
      pieceLengthBytes: this.pieceBytes,
      totalBytes: this.totalBytes,
      blockBytes: BLOCK_BYTES,
    };
    this.scheduler = new Scheduler(
      shape,
      {
        request: (peer, piece, offset, length) => void this.asked.push({ peer, piece, offset, length }),
        cancel: (peer, piece, offset, length) => {
          this.cancelled.push({ peer, piece, offset, length });
          this.#take(peer, piece, offset);
        },
        interested: (peer, value) => void this.interest.set(peer, value),
        drop: (peer) => void this.dropped.push(peer),
      },
      (piece) => {
        this.forgotten.push(piece);
        this.senders.delete(piece);
      },
      { random: seededRandom(1), ...tuning },
    );
  }

  /** Adds an unchoked seed (or a peer with the given pieces). */
  peer(id: number, options: { pieces?: number[]; choked?: boolean; fast?: boolean; limit?: number } = {}): void {
    const { scheduler, nowMs } = this;
    scheduler.addPeer(id, nowMs, { requestQueueLimit: options.limit ?? 250, rttMs: 50, fast: options.fast ?? true });
    if (options.pieces === undefined) scheduler.peerHasAll(id, nowMs);
    else for (const piece of options.pieces) scheduler.peerHas(id, piece, nowMs);
    if (options.choked !== true) scheduler.unchoked(id, nowMs);
  }

  read(id: number, position: number, demand: Partial<ReaderDemand> = {}): void {
    this.scheduler.setReader(id, {
      position,
      end: this.totalBytes,
      bytesPerSecond: 1_000_000,
      readAheadBytes: null,
      waitingEnd: position,
      ...demand,
    }, this.nowMs);
  }

  #take(peer: number, piece: number, offset: number): Ask | undefined {
    const at = this.asked.findIndex((ask) => ask.peer === peer && ask.piece === piece && ask.offset === offset);
    return at < 0 ? undefined : this.asked.splice(at, 1)[0];
  }

  of(peer: number): Ask[] {
    return this.asked.filter((ask) => ask.peer === peer);
  }

  /** The block arrives whole. */
  deliver(ask: Ask): boolean {
    this.#take(ask.peer, ask.piece, ask.offset);
    this.scheduler.progress(ask.peer, ask.length, this.nowMs);
    const wanted = this.scheduler.blockReceived(ask.peer, ask.piece, ask.offset, this.nowMs, ask.length);
    if (wanted) this.senders.set(ask.piece, [...this.senders.get(ask.piece) ?? [], ask.peer]);
    return wanted;
  }

  /** Delivers the requested blocks of a piece (only from `peer`, if given) until it is complete. */
  deliverPiece(piece: number, peer?: number): void {
    for (let round = 0; !this.scheduler.pieceComplete(piece) && round < 1000; round++) {
      this.nowMs += 5;
      const ask = this.asked.find((a) => a.piece === piece && (peer === undefined || a.peer === peer));
      const next = ask ?? this.asked.find((a) => peer === undefined || a.peer === peer);
      if (next === undefined) return;
      this.deliver(next);
    }
  }

  advance(ms: number): void {
    const end = this.nowMs + ms;
    while (this.nowMs < end) {
      this.nowMs += 20;
      this.scheduler.tick(this.nowMs);
    }
  }
}

/** The distinct pieces among the requests. */
export const pieces = (asks: readonly { piece: number }[]): number[] => [...new Set(asks.map((ask) => ask.piece))];
