/** One response of a web seed: the bytes of a file from some place on, or why there are none. */
import { deadline } from "../../bytes/deadline.ts";
import { readBounded } from "../../bytes/read-bounded.ts";
import { MillraceError } from "../../errors.ts";
import { fetchRedirected, type TorrentFetches } from "../../discovery/redirects.ts";
import type { Clock, Timer } from "../../ports.ts";
import type { WebSpan } from "./web-spans.ts";

/** A server that sends nothing for this long while we wait is given up, ms. */
export const SILENCE_MS = 10_000;

/** Time for the end of a body whose bytes are all here, ms: only then can its connection be used again. */
const END_MS = 1_000;

/** Bytes before the asked range that are skipped: servers that round ranges do so to blocks of a disk or a cache. */
const MAX_ROUNDED_BYTES = 1024 * 1024;

/** Longest pause that a server may ask for, ms, and the one after a refusal that names none. */
const MAX_RETRY_MS = 60 * 60_000;
const DEFAULT_RETRY_MS = 5_000;

/** Length of a number of seconds in a body, bytes. */
const MAX_PAUSE_BYTES = 32;

/** Pause before a file is asked for again that the server says it does not have, ms. */
const ABSENT_MS = 10 * 60_000;

/** Statuses of addresses that a redirect led to and that have expired. */
const EXPIRED: ReadonlySet<number> = new Set([401, 403, 404, 410]);

/** What a request failed for: one file at this server, or the server. */
export interface Fault {
  /** "either": the server if it never sent anything, else the file. */
  readonly scope: "file" | "server" | "either";
  /** For the log. */
  readonly reason: string;
  /** Pause before it is asked again, ms; null: the longer, the more often it failed. */
  readonly restMs: number | null;
  /** The server has more requests than it takes. */
  readonly isBusy?: boolean;
}

/** The bytes of a file, from `at` on. Read it to its end or close it. */
export class WebBody {
  /** Offset of the next byte in the file. */
  at: number;
  /** The body is the whole file, from its beginning. */
  readonly isWhole: boolean;
  readonly #clock: Clock;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #control: AbortController;
  #rest: Uint8Array | null = null;
  #waitingSinceMs: number | null = null;
  #timer: Timer | null = null;

  /** `control` ends the request. */
  constructor(
    clock: Clock,
    stream: ReadableStream<Uint8Array>,
    control: AbortController,
    place: { at: number; isWhole: boolean },
  ) {
    this.#clock = clock;
    this.#reader = stream.getReader();
    this.#control = control;
    this.at = place.at;
    this.isWhole = place.isWhole;
  }

  /** The next bytes, `max` at most; null at the end. Rejects when it breaks off, or after a silence. */
  async next(max: number): Promise<Uint8Array | null> {
    const chunk = this.#rest ?? await this.#read();
    if (chunk === null) return null;
    this.#rest = chunk.length > max ? chunk.subarray(max) : null;
    const bytes = chunk.length > max ? chunk.subarray(0, max) : chunk;
    this.at += bytes.length;
    return bytes;
  }

  /** No more is needed. A body that is at its end leaves its connection to the next request; any other is dropped. */
  finish(): void {
    if (this.#rest !== null) return this.close();
    const late = this.#clock.setTimeout(() => this.close(), END_MS);
    this.#reader.read().then(({ done }) => {
      late.cancel();
      if (done) this.#timer?.cancel();
      else this.close();
    }, () => late.cancel());
  }

  /** Drops it with its connection. */
  close(): void {
    this.#timer?.cancel();
    this.#control.abort(new MillraceError("aborted", "nothing more is needed of this response"));
    this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<Uint8Array | null> {
    this.#waitingSinceMs = this.#clock.monotonic();
    if (this.#timer === null) this.#watch(SILENCE_MS);
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) this.#timer?.cancel();
        if (done) return null;
        if (value.length > 0) return value;
      }
    } finally {
      this.#waitingSinceMs = null;
    }
  }

  /** Times only the waits, not what we do meanwhile. */
  #watch(delayMs: number): void {
    this.#timer = this.#clock.setTimeout(() => {
      const silentMs = this.#waitingSinceMs === null ? 0 : this.#clock.monotonic() - this.#waitingSinceMs;
      if (silentMs < SILENCE_MS) return this.#watch(SILENCE_MS - silentMs);
      this.#control.abort(new MillraceError("timeout", `it sent nothing for ${SILENCE_MS / 1000} s`));
      this.#reader.cancel().catch(() => {});
    }, delayMs);
  }
}

/** A request for `span`. */
export interface SpanRequest {
  readonly clock: Clock;
  readonly fetches: TorrentFetches;
  readonly span: WebSpan & { readonly url: string };
  /** Whether part of the file is asked for; otherwise all that the URL names. */
  readonly asksRange: boolean;
  readonly signal: AbortSignal;
}

/**
 * Asks for a span; `signal` ends the wait for an answer. The body may begin before the span. Where a redirect led to an
 * address that has expired meanwhile, the server is asked once more. Rejects as `fetchRedirected` does.
 */
export async function openBody(request: SpanRequest): Promise<WebBody | Fault> {
  const { clock, fetches, span, signal } = request;
  const control = new AbortController();
  const silent = () => new MillraceError("timeout", `it did not answer within ${SILENCE_MS / 1000} s`);
  const limit = deadline(clock, SILENCE_MS, signal, silent);
  const stop = () => control.abort(limit.signal.reason);
  if (limit.signal.aborted) stop();
  limit.signal.addEventListener("abort", stop, { once: true });
  try {
    // Ranges count the bytes of the file, so the answer must not be compressed; some runtimes ask for that by default.
    const headers: Record<string, string> = { "accept-encoding": "identity" };
    if (request.asksRange) headers["range"] = `bytes=${span.offset}-${span.offset + span.length - 1}`;
    let isRedirected = false;
    const onRedirect = () => {
      isRedirected = true;
    };
    const ask = () => {
      return fetchRedirected(fetches, span.url, { headers, signal: control.signal, onRedirect }, "connection_failed");
    };
    let response = await ask();
    if (isRedirected && EXPIRED.has(response.status)) {
      response.body?.cancel().catch(() => {});
      response = await ask();
    }
    const begin = beginOf(response, request);
    if (typeof begin === "object" && span.file === null && begin.isBusy === true && response.body !== null) {
      return { ...begin, restMs: await namedPauseMs(response.body) ?? begin.restMs };
    }
    if (typeof begin === "object" || response.body === null) {
      response.body?.cancel().catch(() => {});
      return typeof begin === "object" ? begin : { scope: "either", reason: "it sent no body", restMs: null };
    }
    return new WebBody(clock, response.body, control, {
      at: begin,
      isWhole: response.status === 200 && span.file !== null,
    });
  } finally {
    limit.cancel();
  }
}

/** Where in the file the body of a response begins; or why it is of no use. */
function beginOf(response: Response, { clock, span }: SpanRequest): number | Fault {
  const { status, headers } = response;
  const file = (reason: string, restMs = ABSENT_MS): Fault => ({ scope: "file", reason, restMs });
  if (status === 429 || status === 503) {
    const restMs = retryMs(headers.get("retry-after"), clock.now()) ?? DEFAULT_RETRY_MS;
    return { scope: "server", reason: `it returned ${status}`, restMs, isBusy: true };
  }
  if (status === 401 || status === 407) return { scope: "server", reason: `it returned ${status}`, restMs: null };
  if (status >= 500) return { scope: "either", reason: `it returned ${status}`, restMs: null };
  const coding = headers.get("content-encoding") ?? "identity";
  if (coding !== "identity" && coding !== "") return file(`it sent the file as ${coding.slice(0, 20)}`);
  if (span.file === null && (status === 200 || status === 206)) {
    const length = headers.get("content-length");
    const isWhole = length === null || Number(length) === span.offset + span.length;
    return isWhole ? 0 : file("it sent another part of the piece than was asked for");
  }
  if (status === 200) {
    const length = headers.get("content-length");
    // Often a page that says the file is gone.
    if (length !== null && Number(length) !== span.file!.sizeBytes) {
      return file("it sent a file of another size");
    }
    return 0;
  }
  if (status !== 206) return file(`it returned ${status}`);
  const range = headers.get("content-range");
  if (range === null) {
    return headers.get("content-type")?.startsWith("multipart/") ? file("it sent several ranges at once") : span.offset;
  }
  const from = Number(/^bytes\s+(\d{1,15})-/i.exec(range)?.[1] ?? NaN);
  if (from <= span.offset && from >= span.offset - MAX_ROUNDED_BYTES) return from;
  return file("it sent another part of the file than was asked for");
}

/** BEP 17: the body of a 503 is the number of seconds. */
async function namedPauseMs(body: ReadableStream<Uint8Array>): Promise<number | null> {
  try {
    const bytes = await readBounded(
      body,
      MAX_PAUSE_BYTES,
      () => new MillraceError("too_large", "no number of seconds"),
    );
    return retryMs(new TextDecoder().decode(bytes), 0);
  } catch {
    return null;
  }
}

/** `Retry-After` (RFC 9110, section 10.2.3) as ms from now, 1 s to 1 h; null when it cannot be read. */
function retryMs(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 1000), MAX_RETRY_MS);
}
