/** One member of a simulated swarm of streamers: the engine's scheduler and choker on a modelled up-link. */
import { CHOKE_ROUND_MS, chooseUnchoked, DEFAULT_UPLOAD_SLOTS } from "../../src/swarm/upload/choker.ts";
import { RateMeter } from "../../src/swarm/rate-meter.ts";
import { Scheduler } from "../../src/swarm/scheduler/scheduler.ts";
import { logOf } from "./message-log.ts";
import type { SchedulerShape } from "../../src/swarm/scheduler/types.ts";
import type { Tuning } from "../../src/swarm/scheduler/tuning.ts";
import { uploadSlots } from "../../src/swarm/upload/upload-slots.ts";
import type { EventWheel } from "./event-wheel.ts";
import { SimLine } from "./sim-line.ts";
import { UploadLane } from "./upload-lane.ts";

/** What a peer that asks but gets nothing for this long is called (as in the engine's sessions), ms. */
const SNUBBED_AFTER_MS = 60_000;
/** Hashing speed, bytes/ms. */
const HASH_BYTES_PER_MS = 1_000_000;
/** Requests that peers accept, as the engine announces. */
const REQUEST_QUEUE_LIMIT = 256;

/** What a member knows about a neighbour. */
interface Neighbour {
  readonly member: Streamer;
  /** What we send it, and what it sends us. */
  readonly upload: UploadLane;
  readonly download: UploadLane;
  readonly uploadRate: RateMeter;
  readonly downloadRate: RateMeter;
  unchokedSinceMs: number;
  lastBlockMs: number;
}

/** A member; it has everything (a seeder) or downloads. */
export class Streamer {
  readonly id: number;
  readonly queue: EventWheel;
  readonly totalBytes: number;
  readonly pieceBytes: number;
  readonly have: Uint8Array;
  readonly scheduler: Scheduler;
  readonly neighbours = new Map<number, Neighbour>();
  /** Called when a piece was verified. */
  readonly onPiece: (() => void)[] = [];
  haveCount = 0;
  /** Payload that came from the seeder and from other viewers, bytes, and what of it was thrown away. */
  fromSeederBytes = 0;
  fromViewersBytes = 0;
  wastedBytes = 0;
  isGone = false;
  readonly #line: SimLine;
  #round = 0;
  #slots = DEFAULT_UPLOAD_SLOTS;
  #isTicking = false;

  constructor(
    id: number,
    queue: EventWheel,
    shape: SchedulerShape,
    upBytesPerS: number,
    isSeeder: boolean,
    tuning: Partial<Tuning>,
  ) {
    this.id = id;
    this.queue = queue;
    this.totalBytes = shape.totalBytes;
    this.pieceBytes = shape.pieceLengthBytes;
    this.have = new Uint8Array(shape.pieceCount).fill(isSeeder ? 1 : 0);
    this.haveCount = isSeeder ? shape.pieceCount : 0;
    this.#line = new SimLine(queue, upBytesPerS);
    this.scheduler = new Scheduler(
      shape,
      {
        request: (peer, piece, offset, length) => {
          logOf(queue)?.note(this.nowMs, "request", id, peer, piece, offset, length);
          this.neighbours.get(peer)?.download.request(piece, offset, length);
        },
        cancel: (peer, piece, offset, length) => {
          logOf(queue)?.note(this.nowMs, "cancel", id, peer, piece, offset, length);
          this.neighbours.get(peer)?.download.cancel(piece, offset);
        },
        interested: (peer, value) => this.neighbours.get(peer)?.download.setInterested(value),
        drop: (peer) => queue.after(0, () => this.#part(peer)),
      },
      () => {},
      tuning,
    );
    if (isSeeder) { for (let piece = 0; piece < shape.pieceCount; piece++) this.scheduler.pieceVerified(piece, 0); }
    this.#everyRound();
  }

  get nowMs(): number {
    return this.queue.nowMs;
  }

  get isSeeder(): boolean {
    return this.haveCount === this.have.length;
  }

  /** Connects two members; both know at once what the other has. */
  static connect(a: Streamer, b: Streamer, rttMs: number): void {
    const aToB = new UploadLane(a.#line, a.queue, rttMs / 2);
    const bToA = new UploadLane(b.#line, b.queue, rttMs / 2);
    a.#meet(b, aToB, bToA, rttMs);
    b.#meet(a, bToA, aToB, rttMs);
  }

  #meet(member: Streamer, upload: UploadLane, download: UploadLane, rttMs: number): void {
    const { nowMs, scheduler } = this;
    const neighbour: Neighbour = {
      member,
      upload,
      download,
      uploadRate: new RateMeter(nowMs),
      downloadRate: new RateMeter(nowMs),
      unchokedSinceMs: -Infinity,
      lastBlockMs: nowMs,
    };
    this.neighbours.set(member.id, neighbour);
    upload.onInterest = () => this.#fillSlots();
    upload.onSent = (bytes) => neighbour.uploadRate.add(bytes, this.nowMs);
    download.onUnchoke = () => {
      scheduler.unchoked(member.id, this.nowMs);
      this.tick();
    };
    download.onChoke = () => scheduler.choked(member.id, this.nowMs);
    download.onReject = (piece, offset) => scheduler.rejected(member.id, piece, offset, this.nowMs);
    download.onBytes = (bytes) => {
      neighbour.downloadRate.add(bytes, this.nowMs);
      scheduler.progress(member.id, bytes, this.nowMs);
    };
    download.onBlock = (piece, offset, length) => this.#block(neighbour, piece, offset, length);
    scheduler.addPeer(member.id, nowMs, { requestQueueLimit: REQUEST_QUEUE_LIMIT, rttMs, fast: true });
    if (member.isSeeder) scheduler.peerHasAll(member.id, nowMs);
    else scheduler.peerBitfield(member.id, bitfield(member.have), nowMs);
    this.tick();
  }

  /** Ends the connection to `id` on both sides. */
  #part(id: number): void {
    const neighbour = this.neighbours.get(id);
    if (neighbour === undefined) return;
    this.neighbours.delete(id);
    neighbour.upload.close();
    neighbour.download.close();
    this.scheduler.removePeer(id, this.nowMs);
    neighbour.member.#part(this.id);
    this.#fillSlots();
  }

  leave(): void {
    this.isGone = true;
    for (const id of [...this.neighbours.keys()]) this.#part(id);
  }

  #block(from: Neighbour, piece: number, offset: number, length: number): void {
    from.lastBlockMs = this.nowMs;
    if (from.member.id === 0) this.fromSeederBytes += length;
    else this.fromViewersBytes += length;
    if (!this.scheduler.blockReceived(from.member.id, piece, offset, this.nowMs)) {
      this.wastedBytes += length;
      return;
    }
    if (this.scheduler.pieceComplete(piece)) {
      this.queue.after(this.pieceBytes / HASH_BYTES_PER_MS, () => this.#verified(piece));
    }
  }

  #verified(piece: number): void {
    if (this.isGone || this.have[piece] === 1) return;
    this.have[piece] = 1;
    this.haveCount++;
    this.scheduler.pieceVerified(piece, this.nowMs);
    for (const { member, upload } of this.neighbours.values()) {
      this.queue.after(upload.oneWayMs, () => {
        if (!member.neighbours.has(this.id)) return;
        member.scheduler.peerHas(this.id, piece, member.nowMs);
        member.tick();
      });
    }
    for (const listener of this.onPiece) listener();
  }

  #everyRound(): void {
    // Members decide at times of their own, as their clocks began at different moments.
    this.queue.after(this.#round === 0 ? (this.id * 997) % CHOKE_ROUND_MS : CHOKE_ROUND_MS, () => {
      if (this.isGone) return;
      this.#choke();
      this.#round++;
      this.#everyRound();
    });
    if (this.#round === 0) this.#round = 1;
  }

  #choke(): void {
    const { nowMs } = this;
    const neighbours = [...this.neighbours.values()];
    this.#slots = uploadSlots(
      DEFAULT_UPLOAD_SLOTS,
      neighbours.reduce((sum, one) => sum + one.uploadRate.rate(nowMs), 0),
    );
    const chosen = chooseUnchoked(
      [...this.neighbours].map(([id, neighbour]) => ({
        id,
        interested: neighbour.upload.isInterested,
        downloadRate: neighbour.downloadRate.rate(nowMs),
        uploadRate: neighbour.uploadRate.rate(nowMs),
        unchoked: !neighbour.upload.isChoking,
        unchokedSinceMs: neighbour.unchokedSinceMs,
        snubbed: neighbour.download.isAsked && nowMs - neighbour.lastBlockMs > SNUBBED_AFTER_MS,
      })),
      { seeding: this.isSeeder, slots: this.#slots, round: this.#round, nowMs },
    );
    for (const [id, neighbour] of this.neighbours) this.#setChoking(neighbour, !chosen.has(id));
  }

  /** As the engine does between rounds: a free slot is given away at once. */
  #fillSlots(): void {
    const interested = [...this.neighbours.values()].filter(({ upload }) => upload.isInterested);
    const waiting = interested.filter(({ upload }) => upload.isChoking);
    const free = this.#slots - (interested.length - waiting.length);
    for (const neighbour of waiting.slice(0, Math.max(0, free))) this.#setChoking(neighbour, false);
  }

  #setChoking(neighbour: Neighbour, value: boolean): void {
    if (neighbour.upload.isChoking === value) return;
    if (!value) neighbour.unchokedSinceMs = this.nowMs;
    neighbour.upload.setChoking(value);
  }

  /** Starts the scheduler's timer when it doesn't run. */
  tick(): void {
    if (this.#isTicking || this.isGone) return;
    const next = this.scheduler.tick(this.nowMs);
    if (next === null) return;
    this.#isTicking = true;
    this.queue.after(next, () => {
      this.#isTicking = false;
      this.tick();
    });
  }

  /** Verified bytes from `position` on. */
  availableFrom(position: number): number {
    let piece = Math.floor(position / this.pieceBytes);
    while (piece < this.have.length && this.have[piece] === 1) piece++;
    return Math.max(0, Math.min(piece * this.pieceBytes, this.totalBytes) - position);
  }
}

/** `have`, a byte per piece, as on the wire. */
function bitfield(have: Uint8Array): Uint8Array {
  const bits = new Uint8Array((have.length + 7) >> 3);
  have.forEach((here, piece) => here === 1 && (bits[piece >> 3]! |= 0x80 >> (piece & 7)));
  return bits;
}
