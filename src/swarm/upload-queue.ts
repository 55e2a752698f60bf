/** The requests of one peer, served in order as fast as its socket and the rate limit allow. */
import type { PeerLink } from "../wire/types.ts";
import type { TokenBucket } from "./token-bucket.ts";
import type { UploadCache } from "./upload-cache.ts";

/** Requests a peer may have waiting; twice what our extended handshake announces, so that no race causes a refusal. */
const MAX_QUEUED_REQUESTS = 512;

/** Bytes beyond a block that a piece message costs (BEP 3). */
const PIECE_HEADER_BYTES = 13;

interface Request {
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

/** What the queue needs of its peer. */
export interface UploadQueueHost {
  readonly link: PeerLink;
  /** Whether `reject` may be sent (BEP 6). */
  readonly fast: boolean;
  /** Whether every block must be a copy, because the link changes what it sends (encryption). */
  readonly copies: boolean;
  sent(bytes: number): void;
}

/** One peer's upload queue. */
export class UploadQueue {
  private readonly host: UploadQueueHost;
  private readonly cache: UploadCache;
  private readonly bucket: TokenBucket;
  private requests: Request[] = [];
  private head = 0;
  private blocked = false;
  private loading = false;
  private isClosed = false;
  private readonly pump = () => this.run();

  constructor(host: UploadQueueHost, cache: UploadCache, bucket: TokenBucket) {
    this.host = host;
    this.cache = cache;
    this.bucket = bucket;
    host.link.onDrain = () => {
      this.blocked = false;
      this.run();
    };
  }

  /** Requests waiting. */
  get length(): number {
    return this.requests.length - this.head;
  }

  /** Queues a request that was already checked; false when the queue is full. */
  push(piece: number, offset: number, length: number): boolean {
    if (this.isClosed || this.length >= MAX_QUEUED_REQUESTS) return false;
    this.requests.push({ piece, offset, length });
    if (this.length > 1) this.cache.prefetch(piece, offset);
    this.run();
    return true;
  }

  /** Withdraws a request; returns whether it was still waiting. */
  cancel(piece: number, offset: number, length: number): boolean {
    for (let i = this.head; i < this.requests.length; i++) {
      const r = this.requests[i]!;
      if (r.piece !== piece || r.offset !== offset || r.length !== length) continue;
      this.requests.splice(i, 1);
      return true;
    }
    return false;
  }

  /** Empties the queue; waiting requests are rejected if the peer supports BEP 6. */
  refuseAll(): void {
    for (let i = this.head; i < this.requests.length; i++) this.refuse(this.requests[i]!);
    this.requests = [];
    this.head = 0;
  }

  close(): void {
    this.isClosed = true;
    this.requests = [];
    this.head = 0;
    this.bucket.forget(this.pump);
    this.host.link.onDrain = null;
  }

  private run(): void {
    while (!this.isClosed && !this.blocked && !this.loading && this.length > 0) {
      if (!this.bucket.open) return this.bucket.whenOpen(this.pump);
      const request = this.requests[this.head]!;
      const data = this.cache.peek(request.piece, request.offset, request.length);
      if (data === null) return this.load(request);
      this.shift();
      this.send(request, data);
    }
  }

  private send(request: Request, data: Uint8Array): void {
    this.bucket.spend(request.length + PIECE_HEADER_BYTES);
    this.host.sent(request.length);
    const bytes = this.host.copies ? data.slice() : data;
    if (!this.host.link.piece(request.piece, request.offset, bytes)) this.blocked = true;
  }

  private load(request: Request): void {
    this.loading = true;
    const { piece, offset, length } = request;
    const job = this.cache.fits(offset, length)
      ? this.cache.load(piece, offset).then(() => null)
      : this.cache.read(piece, offset, length);
    job.then((bytes) => {
      if (bytes !== null && this.requests[this.head] === request) {
        this.shift();
        this.send(request, bytes);
      }
    }, () => {
      if (this.requests[this.head] === request) {
        this.shift();
        this.refuse(request);
      }
    }).finally(() => {
      this.loading = false;
      this.run();
    });
  }

  private shift(): void {
    this.head++;
    // Compacting only now and then makes shifting cheap: no copy per request.
    if (this.head < 256 && this.head < this.requests.length) return;
    this.requests = this.requests.slice(this.head);
    this.head = 0;
  }

  private refuse(request: Request): void {
    if (this.host.fast) this.host.link.reject(request.piece, request.offset, request.length);
  }
}
