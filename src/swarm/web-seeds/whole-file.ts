/**
 * A file that a server sends whole, because it knows no ranges. It is read from its beginning on, only as far as somebody
 * wants it; what is skipped on the way is kept where it is missing.
 */
import type { MetainfoFile } from "../../metainfo/types.ts";
import type { Clock, Timer } from "../../ports.ts";
import type { Transfer } from "../data/transfer.ts";
import { BlockWriter } from "./block-writer.ts";
import type { WebBody } from "./web-body.ts";
import type { WebSpan } from "./web-spans.ts";

/** A response of which nobody wants more for this long is dropped, ms: a viewer's read-ahead is full, or he left. */
const IDLE_MS = 60_000;

/** Bytes taken at once while skipping. */
const CHUNK_BYTES = 64 * 1024;

/** A response under way. */
export class WholeFile {
  readonly body: WebBody;
  readonly #transfer: Transfer;
  readonly #source: number;
  readonly #file: MetainfoFile;
  readonly #clock: Clock;
  #idle: Timer | null = null;
  #isOpen = true;

  constructor(transfer: Transfer, source: number, file: MetainfoFile, body: WebBody, clock: Clock) {
    this.#transfer = transfer;
    this.#source = source;
    this.#file = file;
    this.body = body;
    this.#clock = clock;
  }

  /** Whether the span is still to come. */
  holds(span: WebSpan): boolean {
    return this.#isOpen && span.file === this.#file && span.offset >= this.body.at;
  }

  /** Reads on to `offset`. */
  async skipTo(offset: number, signal: AbortSignal, received: (bytes: number) => void): Promise<void> {
    this.#idle?.cancel();
    const { scheduler } = this.#transfer;
    const start = this.#file.offset;
    const writer = new BlockWriter(this.#transfer, this.#source, start + this.body.at, (piece, at, length) => {
      const end = piece * this.#transfer.metainfo.pieceLengthBytes + at + length;
      if (end > start + offset) return false;
      return scheduler.webRuns.reserveBlock(this.#source, piece, at, this.#clock.monotonic());
    });
    while (this.body.at < offset) {
      const chunk = await this.body.next(Math.min(CHUNK_BYTES, offset - this.body.at));
      if (chunk === null) return;
      received(chunk.length);
      writer.write(chunk);
      signal.throwIfAborted();
    }
  }

  /** Nobody needs more now. */
  rest(): void {
    if (this.body.at >= this.#file.sizeBytes) {
      this.#isOpen = false;
      return this.body.finish();
    }
    this.#idle?.cancel();
    this.#idle = this.#clock.setTimeout(() => this.close(), IDLE_MS);
  }

  close(): void {
    this.#isOpen = false;
    this.#idle?.cancel();
    this.body.close();
  }
}
