/** One web seed (BEP 19): an HTTP server that delivers runs of missing blocks, one request at a time. */
import { deadline } from "../bytes/deadline.ts";
import { withoutCredentials } from "../bytes/url-credentials.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, Logger, Timer } from "../ports.ts";
import { fetchRedirected, type TorrentFetches } from "../discovery/redirects.ts";
import { BLOCK_BYTES } from "../wire/types.ts";
import { pieceBytes } from "./layout.ts";
import type { TokenBucket } from "./token-bucket.ts";
import type { Transfer } from "./transfer.ts";
import { webSpans } from "./web-seed-url.ts";

/** Size limit of one request, bytes: a request costs a round trip, and a seek wastes at most this much. */
const RUN_BYTES = 4 * 1024 * 1024;

/** A server that sends nothing for this long is given up, ms. */
const SILENCE_MS = 10_000;

/** Pause after a failure, ms, doubled with each further failure in a row. */
const FIRST_BACKOFF_MS = 2_000;
const LAST_BACKOFF_MS = 300_000;

/** What a web seed needs. */
export interface WebSeedHost {
  readonly clock: Clock;
  /** How a web seed's URL is reached; it may be refused. */
  fetchesFor(url: string): TorrentFetches;
  readonly downloadBucket: TokenBucket;
  downloaded(bytes: number): void;
  readonly log: Logger;
}

/** Logs that something failed at the web seed `url`. */
export function logFailure(log: Logger, url: string, reason: string): void {
  log.log("info", "web seed failed", { url: withoutCredentials(url), reason });
}

/** A run reserved with the scheduler. */
interface Run {
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

/** Fetches from one URL until closed. `source` is the swarm's number for it. */
export class WebSeed {
  readonly url: string;
  readonly source: number;
  readonly #host: WebSeedHost;
  readonly #transfer: Transfer;
  readonly #stopWork: () => void;
  readonly #ending = new AbortController();
  #busy = false;
  #failures = 0;
  #timer: Timer | null = null;
  #closed = false;

  constructor(host: WebSeedHost, transfer: Transfer, url: string, source: number) {
    this.#host = host;
    this.#transfer = transfer;
    this.url = url;
    this.source = source;
    this.#enter();
    this.#stopWork = transfer.onWork(() => this.#work());
  }

  /** Ends it; after corrupt data, for good. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#stopWork();
    this.#ending.abort();
    this.#leave();
  }

  get #nowMs(): number {
    return this.#host.clock.monotonic();
  }

  #enter(): void {
    this.#transfer.scheduler.addWebSeed(this.source, this.#nowMs);
  }

  #leave(): void {
    this.#transfer.sourceLeft(this.source);
    this.#transfer.scheduler.removePeer(this.source, this.#nowMs);
    this.#transfer.kick();
  }

  #work(): void {
    if (this.#busy || this.#closed || this.#timer !== null || !this.#host.downloadBucket.open) return;
    const run = this.#transfer.scheduler.reserveRun(this.source, RUN_BYTES, this.#nowMs);
    if (run === null) return;
    this.#busy = true;
    this.#fetchRun(run).then(() => this.#succeeded(), (error) => this.#fail(error));
  }

  #succeeded(): void {
    this.#busy = false;
    this.#failures = 0;
    this.#work();
  }

  /** Reserved blocks go to other sources at once, and the server gets a pause. */
  #fail(error: unknown): void {
    this.#busy = false;
    if (this.#closed) return;
    this.#leave();
    this.#failures++;
    logFailure(this.#host.log, this.url, error instanceof Error ? error.message : String(error));
    const pauseMs = Math.min(LAST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (this.#failures - 1));
    this.#timer = this.#host.clock.setTimeout(() => {
      this.#timer = null;
      this.#enter();
      this.#work();
    }, pauseMs);
  }

  async #fetchRun(run: Run): Promise<void> {
    const { metainfo } = this.#transfer;
    const writer = new RunWriter(this.#transfer, this.source, run, (bytes) => this.#received(bytes));
    const start = run.piece * metainfo.pieceLengthBytes + run.offset;
    for (const span of webSpans(metainfo, this.url, start, run.length)) {
      if (span.url === null) writer.write(new Uint8Array(span.length));
      else await this.#fetchSpan(span.url, span.offset, span.length, writer);
    }
    writer.end();
  }

  async #fetchSpan(url: string, offset: number, length: number, writer: RunWriter): Promise<void> {
    let limit = deadline(this.#host.clock, SILENCE_MS, this.#ending.signal);
    const abort = new AbortController();
    const forward = () => abort.abort(limit.signal.reason);
    limit.signal.addEventListener("abort", forward);
    const alive = () => {
      limit.cancel();
      limit = deadline(this.#host.clock, SILENCE_MS, this.#ending.signal);
      limit.signal.addEventListener("abort", forward);
    };
    try {
      // Ranges count the bytes of the file, so the answer must not be compressed; some runtimes ask for that by default.
      const headers = { range: `bytes=${offset}-${offset + length - 1}`, "accept-encoding": "identity" };
      const response = await fetchRedirected(
        this.#host.fetchesFor(this.url),
        url,
        { headers, signal: abort.signal },
        "connection_failed",
      );
      alive();
      if (response.status !== 206) {
        await response.body?.cancel();
        throw new MillraceError("connection_failed", `web seed returned ${response.status} to a range request`);
      }
      let left = length;
      if (response.body === null) throw new MillraceError("connection_failed", "web seed sent no body");
      for await (const chunk of response.body) {
        alive();
        if (chunk.length > left) throw new MillraceError("protocol_violation", "web seed sent more than was requested");
        left -= chunk.length;
        writer.write(chunk);
        await this.#throttle();
      }
      if (left > 0) throw new MillraceError("connection_failed", "web seed ended early");
    } finally {
      limit.cancel();
    }
  }

  #received(bytes: number): void {
    this.#host.downloadBucket.spend(bytes);
    this.#host.downloaded(bytes);
    this.#transfer.scheduler.progress(this.source, bytes, this.#nowMs);
  }

  #throttle(): Promise<void> | undefined {
    if (this.#host.downloadBucket.open) return undefined;
    return new Promise((resolve) => this.#host.downloadBucket.whenOpen(resolve));
  }
}

/** Cuts a run of bytes into blocks and delivers them. */
class RunWriter {
  readonly #transfer: Transfer;
  readonly #source: number;
  readonly #piece: number;
  readonly #received: (bytes: number) => void;
  readonly #pieceEnd: number;
  #offset: number;
  #target: Uint8Array | null = null;
  #blockLength = 0;
  #filled = 0;

  constructor(transfer: Transfer, source: number, run: Run, received: (bytes: number) => void) {
    this.#transfer = transfer;
    this.#source = source;
    this.#piece = run.piece;
    this.#offset = run.offset;
    this.#received = received;
    this.#pieceEnd = pieceBytes(transfer.metainfo, run.piece);
  }

  write(bytes: Uint8Array): void {
    this.#received(bytes.length);
    for (let at = 0; at < bytes.length;) {
      if (this.#filled === 0) {
        this.#blockLength = Math.min(BLOCK_BYTES, this.#pieceEnd - this.#offset);
        this.#target = this.#transfer.blockTarget(this.#source, this.#piece, this.#offset, this.#blockLength);
      }
      const count = Math.min(bytes.length - at, this.#blockLength - this.#filled);
      this.#target?.set(bytes.subarray(at, at + count), this.#filled);
      this.#filled += count;
      at += count;
      if (this.#filled < this.#blockLength) return;
      this.#filled = 0;
      this.#transfer.blockArrived(this.#source, this.#piece, this.#offset, this.#blockLength, this.#target !== null);
      this.#offset += this.#blockLength;
    }
  }

  /** The run is over; an incomplete block is given up. */
  end(): void {
    if (this.#filled > 0) this.#transfer.abandonBlock(this.#source);
  }
}
