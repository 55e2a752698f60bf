/** A host around the real `Scheduler`: peers on modelled links, hashing, eviction, banning; all on virtual time. */
import { Scheduler } from "../../src/swarm/scheduler/scheduler.ts";
import type { Tuning } from "../../src/swarm/scheduler/tuning.ts";
import { EventQueue, seededRandom } from "./event-queue.ts";
import { MessageLog } from "./message-log.ts";
import { type PeerProfile, SimPeer } from "./sim-peer.ts";

export interface SwarmProfile {
  readonly seed?: number;
  readonly totalBytes: number;
  readonly pieceBytes: number;
  readonly peers: readonly PeerProfile[];
  /** Receiver's downlink, bytes/s. Default 1 GB/s. */
  readonly downlink?: number;
  /** The host looks at its sockets only this often, as when its thread is busy. Default 0: at once. */
  readonly hostQuantumMs?: number;
  /** The host does nothing in these spans (its process is stopped). */
  readonly pauses?: readonly { readonly atMs: number; readonly endMs: number }[];
  readonly tuning?: Partial<Tuning>;
}

const BLOCK_BYTES = 16_384;
/** Hashing speed, bytes/ms. */
const HASH_BYTES_PER_MS = 1_000_000;

export class SimSwarm {
  readonly queue = new EventQueue();
  readonly scheduler: Scheduler;
  readonly pieceCount: number;
  readonly pieceBytes: number;
  readonly totalBytes: number;
  readonly have: Uint8Array;
  readonly peers = new Map<number, SimPeer>();
  readonly random: () => number;
  /** Everything that the scheduler decides, and when. */
  readonly log = new MessageLog();
  receivedBytes = 0;
  wastedBytes = 0;
  failedPieces = 0;
  requests = 0;
  haveCount = 0;
  readonly banned: number[] = [];
  readonly dropped: number[] = [];
  /** Called when a piece was verified. */
  readonly onPiece: (() => void)[] = [];
  readonly #suspects = new Map<number, Set<number>>();
  readonly #corrupt = new Map<number, Set<number>>();
  /** First failed copies. */
  readonly #copies = new Map<
    number,
    { readonly senders: ReadonlyMap<number, number>; readonly corrupt: ReadonlySet<number> }
  >();
  /** Piece → offset of each block that counted → its sender. */
  readonly #senders = new Map<number, Map<number, number>>();
  readonly #pauses: readonly { readonly atMs: number; readonly endMs: number }[];
  readonly #downlink: number;
  #downFreeMs = 0;
  #ticking = false;
  #nextPeer = 0;

  constructor(profile: SwarmProfile) {
    this.random = seededRandom(profile.seed ?? 1);
    this.totalBytes = profile.totalBytes;
    this.pieceBytes = profile.pieceBytes;
    this.pieceCount = Math.ceil(profile.totalBytes / profile.pieceBytes);
    this.have = new Uint8Array(this.pieceCount);
    this.#pauses = profile.pauses ?? [];
    this.#downlink = profile.downlink ?? 1e9;
    const shape = {
      pieceCount: this.pieceCount,
      pieceLengthBytes: profile.pieceBytes,
      totalBytes: profile.totalBytes,
      blockBytes: BLOCK_BYTES,
    };
    this.scheduler = new Scheduler(
      shape,
      {
        request: (peer, piece, offset, length) => {
          this.requests++;
          this.log.note(this.nowMs, "request", peer, piece, offset, length);
          this.peers.get(peer)?.request(piece, offset, length);
        },
        cancel: (peer, piece, offset, length) => {
          this.log.note(this.nowMs, "cancel", peer, piece, offset, length);
          this.peers.get(peer)?.cancel(piece, offset);
        },
        interested: (peer, value) => {
          this.log.note(this.nowMs, "interested", peer, Number(value));
          if (value) this.peers.get(peer)?.start();
        },
        drop: (peer) => {
          this.log.note(this.nowMs, "drop", peer);
          this.dropped.push(peer);
          this.queue.after(0, () => this.leave(peer));
        },
      },
      (piece) => {
        this.#corrupt.delete(piece);
        this.#senders.delete(piece);
      },
      { random: this.random, ...profile.tuning },
    );
    for (const peer of profile.peers) {
      this.queue.at(peer.joinAtMs ?? 0, () => this.#join(peer, profile.hostQuantumMs ?? 0));
    }
  }

  get nowMs(): number {
    return this.queue.nowMs;
  }

  #join(profile: PeerProfile, quantum: number): void {
    const id = this.#nextPeer++;
    const { queue, scheduler } = this;
    const peer = new SimPeer(profile, queue, {
      arrive: (bytes, then) => {
        this.#downFreeMs = Math.max(this.#downFreeMs, queue.nowMs) + (bytes * 1000) / this.#downlink;
        const atMs = quantum > 0 ? Math.ceil(this.#downFreeMs / quantum) * quantum : this.#downFreeMs;
        queue.at(this.#awake(atMs), then);
      },
      progress: (bytes) => scheduler.progress(id, bytes, queue.nowMs),
      block: (piece, offset, length, corrupt) => this.#block(id, piece, offset, length, corrupt),
      choke: () => scheduler.choked(id, queue.nowMs),
      unchoke: () => {
        scheduler.unchoked(id, queue.nowMs);
        this.tick();
      },
      reject: (piece, offset) => scheduler.rejected(id, piece, offset, queue.nowMs),
    }, this.random);
    this.peers.set(id, peer);
    scheduler.addPeer(id, queue.nowMs, {
      requestQueueLimit: profile.requestQueueLimit ?? 250,
      rttMs: profile.rttMs,
      fast: profile.fast !== false,
    });
    const share = profile.share ?? 1;
    if (share >= 1 && profile.lacks === undefined) scheduler.peerHasAll(id, queue.nowMs);
    else {
      const bits = new Uint8Array((this.pieceCount + 7) >> 3);
      for (let piece = 0; piece < this.pieceCount; piece++) {
        if (this.random() < share && profile.lacks?.(piece) !== true) bits[piece >> 3]! |= 0x80 >> (piece & 7);
      }
      scheduler.peerBitfield(id, bits, queue.nowMs);
    }
    if (profile.leaveAtMs !== undefined) queue.at(profile.leaveAtMs, () => this.leave(id));
  }

  leave(id: number): void {
    const peer = this.peers.get(id);
    if (peer === undefined) return;
    peer.gone = true;
    this.peers.delete(id);
    this.scheduler.removePeer(id, this.nowMs);
  }

  #block(id: number, piece: number, offset: number, length: number, corrupt: boolean): void {
    this.receivedBytes += length;
    const { scheduler, queue } = this;
    if (!scheduler.blockReceived(id, piece, offset, queue.nowMs, length)) {
      this.wastedBytes += length;
      return;
    }
    if (corrupt) {
      let blocks = this.#corrupt.get(piece);
      if (blocks === undefined) this.#corrupt.set(piece, blocks = new Set());
      blocks.add(offset);
    }
    const senders = this.#senders.get(piece) ?? new Map<number, number>();
    this.#senders.set(piece, senders.set(offset, id));
    if (!scheduler.pieceComplete(piece)) return;
    queue.after(this.pieceBytes / HASH_BYTES_PER_MS, () => this.#hashed(piece));
  }

  #hashed(piece: number): void {
    const { scheduler, nowMs } = this;
    const senders = this.#senders.get(piece)!;
    this.#senders.delete(piece);
    const corrupt = this.#corrupt.get(piece);
    if (corrupt !== undefined) {
      this.#corrupt.delete(piece);
      this.failedPieces++;
      this.wastedBytes += this.pieceBytes;
      const before = this.#suspects.get(piece);
      const suspects = new Set(before);
      for (const offset of corrupt) suspects.add(senders.get(offset)!);
      this.#suspects.set(piece, suspects);
      const sources = [...new Set(senders.values())];
      // A host mixes the piece from two copies if one peer explains where they differ.
      const isSettled = before !== undefined && suspects.size === 1 && sources.length > 1;
      if (!isSettled) {
        if (before === undefined) this.#copies.set(piece, { senders, corrupt });
        else this.#copies.delete(piece);
        scheduler.pieceFailed(piece, nowMs);
        if (sources.length === 1) this.#ban(sources[0]!);
        return;
      }
    }
    // With the good piece at hand, a host sees which blocks of the failed one were wrong, and whose they were.
    for (const suspect of this.#suspects.get(piece) ?? []) this.#ban(suspect);
    this.#suspects.delete(piece);
    this.#copies.delete(piece);
    this.have[piece] = 1;
    this.haveCount++;
    scheduler.pieceVerified(piece, nowMs);
    for (const listener of this.onPiece) listener();
  }

  #ban(id: number): void {
    if (!this.peers.has(id)) return;
    this.banned.push(id);
    const { scheduler, nowMs } = this;
    this.leave(id);
    // What it sent of unfinished pieces is thrown away.
    for (const [piece, senders] of this.#senders) {
      if (scheduler.pieceComplete(piece)) continue;
      const offsets = [...senders].flatMap(([offset, peer]) => peer === id ? [offset] : []);
      for (const offset of offsets) {
        senders.delete(offset);
        this.#corrupt.get(piece)?.delete(offset);
      }
      if (this.#corrupt.get(piece)?.size === 0) this.#corrupt.delete(piece);
      if (offsets.length > 0) scheduler.blocksLost(piece, offsets.map((offset) => offset / BLOCK_BYTES), nowMs);
    }
    // Pieces that it spoiled before need only its blocks again.
    for (const [piece, { senders, corrupt }] of [...this.#copies]) {
      if (scheduler.pieceComplete(piece) || ![...senders.values()].includes(id)) continue;
      this.#copies.delete(piece);
      const now = this.#senders.get(piece) ?? new Map<number, number>();
      this.#senders.set(piece, now);
      for (const [offset, peer] of senders) {
        if (this.banned.includes(peer) || !scheduler.blockRestored(peer, piece, offset)) continue;
        now.set(offset, peer);
        if (corrupt.has(offset)) this.#corrupt.set(piece, (this.#corrupt.get(piece) ?? new Set()).add(offset));
      }
      if (scheduler.pieceComplete(piece)) {
        this.queue.after(this.pieceBytes / HASH_BYTES_PER_MS, () => this.#hashed(piece));
      }
    }
  }

  evict(piece: number): void {
    if (this.have[piece] === 0) return;
    this.have[piece] = 0;
    this.haveCount--;
    this.scheduler.pieceLost(piece, this.nowMs);
  }

  /** First time from `atMs` on at which the host does anything. */
  #awake(atMs: number): number {
    return this.#pauses.find((pause) => atMs >= pause.atMs && atMs < pause.endMs)?.endMs ?? atMs;
  }

  /** Starts the timer when it doesn't run. */
  tick(): void {
    if (this.#ticking) return;
    const next = this.scheduler.tick(this.nowMs);
    if (next === null) return;
    this.#ticking = true;
    this.queue.at(this.#awake(this.nowMs + next), () => {
      this.#ticking = false;
      this.tick();
    });
  }

  /** Verified bytes from `position` on. */
  availableFrom(position: number): number {
    let piece = Math.floor(position / this.pieceBytes);
    while (piece < this.pieceCount && this.have[piece] === 1) piece++;
    return Math.max(0, Math.min(piece * this.pieceBytes, this.totalBytes) - position);
  }

  /** Share of received bytes thrown away. */
  get duplicatePercent(): number {
    return this.receivedBytes === 0 ? 0 : (100 * this.wastedBytes) / this.receivedBytes;
  }
}
