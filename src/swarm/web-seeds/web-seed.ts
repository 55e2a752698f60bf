/** A web seed (BEP 17, BEP 19) in use: an HTTP server that delivers runs of missing blocks, several requests at a time. */
import { leadTo } from "../../bytes/guarded-clock.ts";
import { withoutCredentials } from "../../bytes/url-credentials.ts";
import type { TorrentFetches } from "../../discovery/redirects.ts";
import type { MetainfoFile } from "../../metainfo/types.ts";
import type { Clock, Logger } from "../../ports.ts";
import type { BlockRun } from "../scheduler/types.ts";
import type { TokenBucket } from "../token-bucket.ts";
import type { Transfer } from "../data/transfer.ts";
import { BlockWriter } from "./block-writer.ts";
import { backoffMs, type Mirror } from "./mirror.ts";
import { type BodySource, type RunEnd, RunFetch } from "./run-fetch.ts";
import { type Fault, openBody, type WebBody } from "./web-body.ts";
import { pieceSpans, type WebSpan, webSpans } from "./web-spans.ts";
import { WholeFile } from "./whole-file.ts";

/** Size of a run, bytes: the least and the most. A seek wastes at most what is under way. */
const MIN_RUN_BYTES = 16 * 1024;
const MAX_RUN_BYTES = 4 * 1024 * 1024;

/** Runs are made to take this long, ms: ten round trips of the farthest servers, so that the request hardly counts. */
const RUN_MS = 2_000;

/** Files that fail one after another before the server counts as failed: it does not have this torrent. */
const MAX_FILE_FAILURES = 8;

/** What a web seed needs. */
export interface WebSeedHost {
  readonly clock: Clock;
  /** How a web seed's URL is reached; it may be refused. */
  fetchesFor(url: string): TorrentFetches;
  readonly downloadBucket: TokenBucket;
  downloaded(bytes: number): void;
  readonly log: Logger;
}

/** What it is one of. */
export interface WebSeedPool {
  /** Called when the web seed is of no use for `pauseMs` and was closed. */
  gaveUp(pauseMs: number): void;
  /** As in `BodySource`. */
  throttle(): Promise<void> | undefined;
}

/** Logs that something failed at the web seed `url`. */
export function logFailure(log: Logger, url: string, reason: string): void {
  log.log("info", "web seed failed", { url: withoutCredentials(url), reason });
}

/** Fetches from one server until closed, or until it gives up its place. */
export class WebSeed implements BodySource {
  readonly mirror: Mirror;
  /** When it was first asked; null before. */
  askedMs: number | null = null;
  /** True once the server has sent something. */
  hasAnswered = false;
  readonly #host: WebSeedHost;
  readonly #transfer: Transfer;
  readonly #pool: WebSeedPool;
  readonly #fetches = new Set<RunFetch>();
  #whole: WholeFile | null = null;
  #fileFailures = 0;
  #pausedUntilMs = -Infinity;
  #offerUntilMs = -Infinity;
  #isChecking = false;
  #closed = false;

  constructor(host: WebSeedHost, transfer: Transfer, mirror: Mirror, pool: WebSeedPool) {
    this.#host = host;
    this.#transfer = transfer;
    this.mirror = mirror;
    this.#pool = pool;
    transfer.scheduler.addWebSeed(mirror.source, this.#nowMs);
  }

  get clock(): Clock {
    return this.#host.clock;
  }

  get metainfo(): Transfer["metainfo"] {
    return this.#transfer.metainfo;
  }

  spans(start: number, length: number): WebSpan[] {
    const list = this.mirror.kind === "files" ? webSpans : pieceSpans;
    return list(this.metainfo, this.mirror.url, start, length);
  }

  /** Ends it: what it was to fetch goes to others. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const fetch of this.#fetches) fetch.stop();
    this.#whole?.close();
    const { source } = this.mirror;
    this.#transfer.sourceLeft(source);
    this.#transfer.scheduler.removePeer(source, this.#nowMs);
    this.#transfer.kick();
  }

  /** Something changed that may give it work. */
  work(): void {
    if (this.#closed) return;
    const nowMs = this.#nowMs;
    if (nowMs >= this.#offerUntilMs) this.#offer();
    if (this.#closed) return;
    if (nowMs < this.#pausedUntilMs) {
      if (this.#fetches.size === 0) this.#giveUp(this.#pausedUntilMs - nowMs);
      return;
    }
    while (this.#fetches.size < this.#room && this.#host.downloadBucket.open) {
      const run = this.#transfer.scheduler.webRuns.reserve(this.mirror.source, this.mirror.runBytes, nowMs);
      if (run === null) return;
      this.askedMs ??= nowMs;
      this.#fetch(run);
    }
  }

  /** Some blocks were taken back. */
  cancelled(): void {
    if (this.#isChecking || this.#fetches.size === 0) return;
    this.#isChecking = true;
    // Blocks are taken back one by one, many in a row.
    const check = Promise.resolve().then(() => {
      this.#isChecking = false;
      const { webRuns } = this.#transfer.scheduler;
      for (const fetch of this.#fetches) if (!webRuns.isWanted(this.mirror.source, fetch.run)) fetch.stop();
    });
    leadTo(this.#host.clock, check);
  }

  async open(span: WebSpan & { readonly url: string }, signal: AbortSignal): Promise<WebBody | Fault> {
    const { mirror } = this;
    if (!mirror.sendsRanges && this.#whole?.holds(span) !== true) {
      this.#whole?.close();
      this.#whole = null;
    }
    let whole = this.#whole;
    if (whole === null) {
      const fetches = this.#host.fetchesFor(mirror.url);
      const asksRange = mirror.sendsRanges && span.file !== null;
      const body = await openBody({ clock: this.clock, fetches, span, asksRange, signal });
      if (!("next" in body)) return body;
      if (this.#closed || signal.aborted) body.close();
      this.hasAnswered = true;
      if (!body.isWhole || span.file === null || span.length === span.file.sizeBytes) return body;
      mirror.sendsRanges = false;
      this.#whole = whole = new WholeFile(this.#transfer, mirror.source, span.file, body, this.clock);
    }
    await whole.skipTo(span.offset, signal, (bytes) => this.received(bytes));
    return whole.body;
  }

  leave(body: WebBody, isDone: boolean): void {
    if (this.#whole?.body === body && isDone) return this.#whole.rest();
    if (this.#whole?.body === body) this.#whole = null;
    if (isDone) body.finish();
    else body.close();
  }

  received(bytes: number): void {
    this.#host.downloadBucket.spend(bytes);
    this.#host.downloaded(bytes);
    this.#transfer.scheduler.progress(this.mirror.source, bytes, this.#nowMs);
  }

  throttle(): Promise<void> | undefined {
    return this.#pool.throttle();
  }

  get #nowMs(): number {
    return this.#host.clock.monotonic();
  }

  /** Requests that it may have now. */
  get #room(): number {
    return this.hasAnswered && this.mirror.sendsRanges ? this.mirror.maxRequests : 1;
  }

  #fetch(run: BlockRun): void {
    const fetch = new RunFetch(this, run, new BlockWriter(this.#transfer, this.mirror.source, this.#startOf(run)));
    this.#fetches.add(fetch);
    leadTo(this.#host.clock, fetch.fetch().then((end) => this.#ended(fetch, end)));
  }

  #startOf({ piece, offset }: BlockRun): number {
    return piece * this.metainfo.pieceLengthBytes + offset;
  }

  #ended(fetch: RunFetch, end: RunEnd): void {
    this.#fetches.delete(fetch);
    if (this.#closed) return;
    this.#transfer.scheduler.webRuns.giveBack(this.mirror.source, fetch.run, this.#nowMs);
    if (fetch.receivedBytes > 0) this.#learnRate(fetch);
    if (end !== null) this.#failed(end.fault, end.file);
    else if (fetch.receivedBytes > 0) {
      this.mirror.failures = this.#fileFailures = 0;
      if (fetch.file !== null) this.mirror.fileCame(fetch.file);
    }
    this.work();
    this.#transfer.kick();
  }

  /** Runs grow until they take long enough: what the first ones took says little, as TCP starts slowly. */
  #learnRate({ receivedBytes, elapsedMs }: RunFetch): void {
    const growth = elapsedMs < RUN_MS / 4 ? 4 : 2;
    const bytes = elapsedMs < RUN_MS
      ? Math.max(this.mirror.runBytes, growth * receivedBytes)
      : receivedBytes * RUN_MS / elapsedMs;
    this.mirror.runBytes = Math.round(Math.min(Math.max(bytes, MIN_RUN_BYTES), MAX_RUN_BYTES));
  }

  #failed(fault: Fault, file: MetainfoFile | null): void {
    const { mirror } = this;
    const isOfFile = fault.scope === "file" || fault.scope === "either" && this.hasAnswered;
    logFailure(this.#host.log, mirror.url, isOfFile && file !== null ? `${file.path}: ${fault.reason}` : fault.reason);
    if (isOfFile && file !== null) {
      mirror.fileFailed(file, this.#nowMs, fault.restMs ?? undefined);
      if (++this.#fileFailures < MAX_FILE_FAILURES) return this.#offer();
    }
    if (fault.isBusy === true) {
      mirror.maxRequests = Math.max(1, Math.min(mirror.maxRequests - 1, this.#fetches.size));
      this.#pausedUntilMs = this.#nowMs + fault.restMs!;
      if (this.#fetches.size > 0) return;
    }
    this.#giveUp(fault.restMs ?? backoffMs(++mirror.failures));
  }

  /** Reports to the scheduler which pieces the server has. */
  #offer(): void {
    const { have, untilMs } = this.mirror.offer(this.#nowMs);
    this.#offerUntilMs = untilMs;
    if (have.count === 0) return this.#giveUp(untilMs - this.#nowMs);
    this.#transfer.scheduler.peerBitfield(this.mirror.source, have.bytes, this.#nowMs);
  }

  #giveUp(pauseMs: number): void {
    if (this.#closed) return;
    this.close();
    this.#pool.gaveUp(pauseMs);
  }
}
