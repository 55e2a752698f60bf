/** The requests of one peer, served in order as fast as its socket and the rate limit allow. */
import { guarded } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import { payloadBytes, PIECE_HEADER_BYTES } from "../../wire/piece-messages.ts";
import { BLOCK_BYTES, type PeerLink } from "../../wire/types.ts";
import type { TokenBucket } from "../token-bucket.ts";
import type { UploadCache } from "./upload-cache.ts";
import type { UploadRun } from "./upload-run.ts";

/** Requests a peer may have waiting; twice what our extended handshake announces, so that no race causes a refusal. */
const MAX_QUEUED_REQUESTS = 512;

/** Blocks sent in one write at most: as many as a connection takes before it asks us to wait. */
const MAX_BATCH_BLOCKS = 16;

/**
 * If fewer blocks than this are sent at once, they are copied: otherwise a peer that reads slowly would hold a whole
 * run in memory for them.
 */
const MIN_LENT_BLOCKS = 4;

/** Runs are loaded this far ahead of the block being sent, in requests: one run. */
const PREFETCH_REQUESTS = 64;

interface Request {
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

/** The peer that gets what is in the queue (`PeerSession`). */
export interface UploadingPeer {
  /** Whether `reject` may be sent (BEP 6). */
  readonly fast: boolean;
  uploaded(bytes: number): void;
}

/** One peer's upload queue. A fault of ours in a timer or a promise of it ends the link to that peer. */
export class UploadQueue {
  readonly #peer: UploadingPeer;
  readonly #link: PeerLink;
  readonly #cache: UploadCache;
  readonly #bucket: TokenBucket;
  #requests: Request[] = [];
  #head = 0;
  #isBlocked = false;
  #isLoading = false;
  #isClosed = false;
  #isScheduled = false;
  /**
   * The runs that the link may be sending from, newest first. So a peer that does not read holds no more than these in
   * memory.
   */
  #lent: [UploadRun | null, UploadRun | null] = [null, null];
  readonly #failed: (cause: unknown) => void;
  readonly #pump: () => void;

  constructor(peer: UploadingPeer, link: PeerLink, cache: UploadCache, bucket: TokenBucket) {
    this.#peer = peer;
    this.#link = link;
    this.#cache = cache;
    this.#bucket = bucket;
    this.#failed = (cause) => link.close(new MillraceError("internal", "sending to a peer failed", { cause }));
    this.#pump = guarded(() => this.#run(), this.#failed);
    link.onDrain = () => {
      this.#isBlocked = false;
      this.#pump();
    };
  }

  /** Requests waiting. */
  get length(): number {
    return this.#requests.length - this.#head;
  }

  /** Queues a request that was already checked; false when the queue is full. */
  push(piece: number, offset: number, length: number): boolean {
    if (this.#isClosed || this.length >= MAX_QUEUED_REQUESTS) return false;
    this.#requests.push({ piece, offset, length });
    if (this.#isScheduled) return true;
    this.#isScheduled = true;
    // Requests arrive many at a time: those for adjacent blocks are served together.
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#pump();
    });
    return true;
  }

  /** Withdraws a request; returns whether it was still waiting. */
  cancel(piece: number, offset: number, length: number): boolean {
    for (let i = this.#head; i < this.#requests.length; i++) {
      const r = this.#requests[i]!;
      if (r.piece !== piece || r.offset !== offset || r.length !== length) continue;
      this.#requests.splice(i, 1);
      return true;
    }
    return false;
  }

  /** Empties the queue; waiting requests are rejected if the peer supports BEP 6. */
  refuseAll(): void {
    for (let i = this.#head; i < this.#requests.length; i++) this.#refuse(this.#requests[i]!);
    this.#requests = [];
    this.#head = 0;
  }

  close(): void {
    this.#isClosed = true;
    this.#requests = [];
    this.#head = 0;
    this.#lent = [null, null];
    this.#bucket.forget(this.#pump);
    this.#link.onDrain = null;
  }

  #run(): void {
    while (!this.#isClosed && !this.#isBlocked && !this.#isLoading && this.length > 0) {
      if (!this.#bucket.open) return this.#bucket.whenOpen(this.#pump);
      const request = this.#requests[this.#head]!;
      const { piece, offset, length } = request;
      const isBlock = this.#cache.holds(piece, offset, length);
      const run = isBlock ? this.#cache.peek(piece, offset) : null;
      if (run !== null) this.#send(run, this.#take());
      else this.#load(request, isBlock).catch(this.#failed);
      this.#prefetch();
    }
  }

  /** Takes the first request, and those for the blocks after it that may leave in the same write. */
  #take(): Request[] {
    const batch: Request[] = [];
    for (;;) {
      const request = this.#requests[this.#head]!;
      batch.push(request);
      this.#shift();
      this.#bucket.spend(request.length + PIECE_HEADER_BYTES);
      const next = this.#requests[this.#head];
      const isNext = next !== undefined && next.piece === request.piece && next.offset === request.offset + BLOCK_BYTES;
      if (!isNext || batch.length === MAX_BATCH_BLOCKS) return batch;
      if (!this.#cache.sameRun(request.offset, next.offset) || !this.#bucket.open) return batch;
      if (!this.#cache.holds(next.piece, next.offset, next.length)) return batch;
    }
  }

  #send(run: UploadRun, batch: readonly Request[]): void {
    const link = this.#link;
    const { piece, offset } = batch[0]!;
    const view = run.messages(offset, batch.length);
    const isLent = batch.length >= MIN_LENT_BLOCKS && this.#mayLend(run);
    const hasRoom = link.pieces(piece, offset, isLent ? view : view.slice());
    // A link that encrypts has made a copy. The run is then lent without need, but only for a moment.
    if (isLent) run.lend(link, link.counters.sentBytes);
    this.#peer.uploaded(payloadBytes(view));
    if (!hasRoom) this.#isBlocked = true;
  }

  #mayLend(run: UploadRun): boolean {
    const [newest, oldest] = this.#lent;
    if (run === newest || run === oldest) return true;
    if (oldest !== null && oldest.isLentTo(this.#link)) return false;
    this.#lent = [run, newest];
    return true;
  }

  /** Loads the runs that will be sent soon. */
  #prefetch(): void {
    const ahead = this.#requests[Math.min(this.#head + PREFETCH_REQUESTS, this.#requests.length - 1)];
    if (ahead === undefined) return;
    const { piece, offset, length } = ahead;
    if (this.#cache.holds(piece, offset, length)) this.#cache.prefetch(piece, offset);
  }

  async #load(request: Request, isBlock: boolean): Promise<void> {
    this.#isLoading = true;
    const { piece, offset, length } = request;
    let answer: () => void;
    try {
      if (isBlock) {
        const run = await this.#cache.load(piece, offset);
        answer = () => this.#send(run, this.#take());
      } else {
        const bytes = await this.#cache.read(piece, offset, length);
        answer = () => this.#sendAlone(bytes);
      }
    } catch {
      answer = () => {
        this.#shift();
        this.#refuse(request);
      };
    }
    this.#isLoading = false;
    if (this.#isFirst(request)) answer();
    this.#run();
  }

  /** Whether the request was neither withdrawn nor refused meanwhile. */
  #isFirst(request: Request): boolean {
    return !this.#isClosed && this.#requests[this.#head] === request;
  }

  #sendAlone(bytes: Uint8Array): void {
    const { piece, offset, length } = this.#requests[this.#head]!;
    this.#shift();
    this.#bucket.spend(length + PIECE_HEADER_BYTES);
    this.#peer.uploaded(length);
    if (!this.#link.piece(piece, offset, bytes)) this.#isBlocked = true;
  }

  #shift(): void {
    this.#head++;
    // Compacting only now and then makes shifting cheap: no copy per request.
    if (this.#head < 256 && this.#head < this.#requests.length) return;
    this.#requests = this.#requests.slice(this.#head);
    this.#head = 0;
  }

  #refuse(request: Request): void {
    if (this.#peer.fast) this.#link.reject(request.piece, request.offset, request.length);
  }
}
