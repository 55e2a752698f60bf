/** One direction of a simulated connection: requests on their way to an up-link, and what it sends for them. */
import type { EventWheel } from "./event-wheel.ts";
import type { LineQueue, SimLine } from "./sim-line.ts";

interface Pending {
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

/** What leaves the line at a time: a few packets, so that connections take turns as finely as a kernel has them do. */
const CHUNK_BYTES = 4096;
/** What sits in the kernel's send buffer and can't be called back. */
const SEND_BUFFER_BYTES = 65_536;

/** Requests of one downloader at one uploader (with BEP 6). Its events are called one latency later, on the other side. */
export class UploadLane implements LineQueue {
  readonly oneWayMs: number;
  isInterested = false;
  isChoking = true;
  onInterest: () => void = () => {};
  onSent: (bytes: number) => void = () => {};
  onChoke: () => void = () => {};
  onUnchoke: () => void = () => {};
  onReject: (piece: number, offset: number) => void = () => {};
  onBytes: (bytes: number) => void = () => {};
  onBlock: (piece: number, offset: number, length: number) => void = () => {};
  readonly #line: SimLine;
  readonly #queue: EventWheel;
  readonly #waiting: Pending[] = [];
  readonly #committed: Pending[] = [];
  #committedBytes = 0;
  #headSentBytes = 0;
  #asked = 0;
  #isClosed = false;

  constructor(line: SimLine, queue: EventWheel, oneWayMs: number) {
    this.#line = line;
    this.#queue = queue;
    this.oneWayMs = oneWayMs;
  }

  /** Whether the downloader has requests under way. */
  get isAsked(): boolean {
    return this.#asked > 0;
  }

  /** Whether requests wait that the kernel did not take yet. */
  get isBacklogged(): boolean {
    return this.#waiting.length > 0;
  }

  // The downloader's side

  request(piece: number, offset: number, length: number): void {
    this.#asked++;
    this.#later(() => {
      if (this.isChoking) return this.#reject(piece, offset);
      this.#waiting.push({ piece, offset, length });
      this.#commit();
    });
  }

  cancel(piece: number, offset: number): void {
    this.#later(() => {
      const at = this.#waiting.findIndex((one) => one.piece === piece && one.offset === offset);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      this.#reject(piece, offset);
    });
  }

  setInterested(value: boolean): void {
    this.#later(() => {
      this.isInterested = value;
      this.onInterest();
    });
  }

  // The uploader's side

  setChoking(value: boolean): void {
    this.isChoking = value;
    const refused = value ? this.#waiting.splice(0) : [];
    this.#later(() => value ? this.onChoke() : this.onUnchoke());
    for (const { piece, offset } of refused) this.#reject(piece, offset);
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting.length = this.#committed.length = 0;
  }

  get headBytes(): number | null {
    const head = this.#committed[0];
    return head === undefined ? null : Math.min(CHUNK_BYTES, head.length - this.#headSentBytes);
  }

  headSent(): void {
    const head = this.#committed[0];
    if (head === undefined) return;
    const bytes = this.headBytes!;
    this.#headSentBytes += bytes;
    this.onSent(bytes);
    const isWhole = this.#headSentBytes === head.length;
    if (isWhole) {
      this.#committed.shift();
      this.#committedBytes -= head.length;
      this.#headSentBytes = 0;
      // The line asks for the next head itself.
      this.#fill();
    }
    this.#later(() => {
      this.onBytes(bytes);
      if (!isWhole) return;
      this.#asked--;
      this.onBlock(head.piece, head.offset, head.length);
    });
  }

  #commit(): void {
    const wasEmpty = this.#committed.length === 0;
    this.#fill();
    if (wasEmpty && this.#committed.length > 0) this.#line.add(this);
  }

  #fill(): void {
    while (this.#waiting.length > 0 && this.#committedBytes < SEND_BUFFER_BYTES) {
      const next = this.#waiting.shift()!;
      this.#committed.push(next);
      this.#committedBytes += next.length;
    }
  }

  #reject(piece: number, offset: number): void {
    this.#later(() => {
      this.#asked--;
      this.onReject(piece, offset);
    });
  }

  #later(run: () => void): void {
    this.#queue.after(this.oneWayMs, () => this.#isClosed || run());
  }
}
