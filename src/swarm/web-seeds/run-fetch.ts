/** Fetches one run of blocks from a web seed: a request for each file that it lies in. */
import type { Clock } from "../../ports.ts";
import { MillraceError } from "../../errors.ts";
import type { Metainfo, MetainfoFile } from "../../metainfo/types.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";
import type { BlockRun } from "../scheduler/types.ts";
import type { BlockWriter } from "./block-writer.ts";
import type { Fault, WebBody } from "./web-body.ts";
import type { WebSpan } from "./web-spans.ts";

/** A response that breaks off after at least this much is continued at once, bytes; servers cut long ones. */
const PROGRESS_BYTES = 64 * 1024;

/** Longest time for one run, ms: what a slow server has not sent by then, others may. Runs are made to take 2 s. */
const MAX_RUN_MS = 15_000;

/** Silence after which a run that others take over is a failure, ms: above what a loaded server needs. */
const SILENT_MS = 2_500;

/** Where the bytes come from. */
export interface BodySource {
  readonly clock: Clock;
  readonly metainfo: Metainfo;
  /** Where the server keeps `[start, start + length)` of the torrent. */
  spans(start: number, length: number): WebSpan[];
  /** The body of a file from the span on; or why there is none. */
  open(span: WebSpan & { readonly url: string }, signal: AbortSignal): Promise<WebBody | Fault>;
  /** Called when the span has arrived or was given up. */
  leave(body: WebBody, isDone: boolean): void;
  /** Counts payload. */
  received(bytes: number): void;
  /** Resolves when the limit on downloads lets more in; undefined: it does now. */
  throttle(): Promise<void> | undefined;
}

/** How a run ended: null when all of it is downloaded, or nobody wants the rest any more. */
export type RunEnd = { readonly fault: Fault; readonly file: MetainfoFile | null } | null;

/** One run under way. */
export class RunFetch {
  readonly run: BlockRun;
  /** Bytes so far. */
  receivedBytes = 0;
  readonly #source: BodySource;
  readonly #writer: BlockWriter;
  #beganMs: number;
  #throttledMs = 0;
  #heardMs: number;
  /** The file that it reads, or read last. */
  file: MetainfoFile | null = null;
  #body: WebBody | null = null;
  readonly #control = new AbortController();

  /** Call `fetch` to begin. */
  constructor(source: BodySource, run: BlockRun, writer: BlockWriter) {
    this.#source = source;
    this.run = run;
    this.#writer = writer;
    this.#beganMs = this.#heardMs = source.clock.monotonic();
  }

  /** Time that the server took so far, ms. */
  get elapsedMs(): number {
    return this.#source.clock.monotonic() - this.#beganMs - this.#throttledMs;
  }

  /** Nobody wants the rest of it any more: ends it at once. */
  stop(): void {
    this.#control.abort(new MillraceError("aborted", "nobody wants the rest of this run"));
    if (this.#body !== null) this.#leave(this.#body, false);
  }

  /** Resolves when it is over; never rejects. */
  async fetch(): Promise<RunEnd> {
    const { clock, metainfo } = this.#source;
    const { piece, offset, length } = this.run;
    try {
      for (const span of this.#source.spans(piece * metainfo.pieceLengthBytes + offset, length)) {
        if (span.url === null) this.#writer.writeZeros(span.length);
        else {
          this.file = span.file;
          const fault = await this.#fetchSpan({ ...span, url: span.url });
          if (fault !== null) return { fault, file: span.file };
        }
      }
      return null;
    } catch (error) {
      const isSilent = clock.monotonic() - this.#heardMs >= SILENT_MS;
      if (this.#control.signal.aborted && !isSilent) return null;
      const reason = this.#control.signal.aborted
        ? "it was silent while others delivered"
        : error instanceof Error
        ? error.message
        : String(error);
      return { fault: { scope: "either", reason, restMs: null }, file: this.file };
    }
  }

  async #fetchSpan(span: WebSpan & { readonly url: string }): Promise<Fault | null> {
    let left = span.length;
    while (left > 0) {
      const asked = { ...span, offset: span.offset + span.length - left, length: left };
      const body = await this.#source.open(asked, this.#control.signal);
      if (!("next" in body)) return body;
      this.#body = body;
      const before = left;
      try {
        left -= await this.#read(body, asked.offset, left);
      } catch (error) {
        left -= Math.max(0, body.at - asked.offset);
        this.#leave(body, false);
        if (this.#control.signal.aborted || before - left < PROGRESS_BYTES) throw error;
        continue;
      }
      this.#leave(body, left === 0 || body.isWhole && this.#isOver);
      if (left > 0 && this.#isOver) return this.#slowFault();
      if (left > 0 && before - left < PROGRESS_BYTES) {
        return { scope: "either", reason: "it ended early", restMs: null };
      }
    }
    return null;
  }

  /** Reads up to `length` bytes from `offset` of the file on; returns how many came before the body ended. */
  async #read(body: WebBody, offset: number, length: number): Promise<number> {
    while (body.at < offset) if (await body.next(offset - body.at) === null) return 0;
    // Skipping to this place of a whole file may have taken long.
    if (body.isWhole) this.#beganMs = this.#source.clock.monotonic() - this.#throttledMs;
    for (let left = length; left > 0;) {
      const chunk = await body.next(left);
      if (chunk === null) return length - left;
      this.#control.signal.throwIfAborted();
      left -= chunk.length;
      this.receivedBytes += chunk.length;
      this.#source.received(chunk.length);
      this.#writer.write(chunk);
      await this.#throttle();
      this.#heardMs = this.#source.clock.monotonic();
      if (left > 0 && this.#isOver) return length - left;
    }
    return length;
  }

  get #isOver(): boolean {
    return this.elapsedMs > MAX_RUN_MS;
  }
  async #throttle(): Promise<void> {
    const { clock } = this.#source;
    const wait = this.#source.throttle();
    if (wait === undefined) return;
    const sinceMs = clock.monotonic();
    await wait;
    this.#throttledMs += clock.monotonic() - sinceMs;
  }

  /** A server that is slow but works keeps its place; its runs become shorter. */
  #slowFault(): Fault | null {
    if (this.receivedBytes >= BLOCK_BYTES) return null;
    return { scope: "server", reason: `it sent ${this.receivedBytes} bytes in ${MAX_RUN_MS / 1000} s`, restMs: null };
  }

  #leave(body: WebBody, isDone: boolean): void {
    this.#body = null;
    this.#source.leave(body, isDone);
  }
}
