/**
 * A playback session: a lease on a swarm, the readers of one client on one file, and what `stat`, `cmd` and events say of
 * it. Sessions know nothing of each other; what they share (swarm, index) is shared below them.
 */
import { deadline } from "../bytes/deadline.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { AudioTranscoding } from "../media/transcode/types.ts";
import type { Presentation } from "../media/types.ts";
import type { Clock, Timer } from "../ports.ts";
import type { StallReason, Swarm, SwarmLease, SwarmReader } from "../swarm/types.ts";
import type { MetainfoFile } from "../transport/types.ts";
import { EventQueue } from "./events.ts";
import { fetchIndexTail, indexComesFirst } from "./index-tail.ts";

/** What a session delivers: MPEG TS, HLS, or the file as it is. */
export type OutputKind = "ts" | "hls" | "file";

/** How often activity and stalls are looked at. */
const WATCH_MS = 1000;
/** Media prebuffered before `dl`: the first of these two. */
const PREBUFFER_SECONDS = 2;
const PREBUFFER_MAX_BYTES = 1024 * 1024;

/** What makes two requests the same session: B8. */
export interface SessionIdentity {
  readonly infohashHex: string;
  readonly fileIndex: number;
  readonly output: OutputKind;
  /** `pid`, else the client's address. */
  readonly client: string;
}

/** Everything a session is made of. */
export interface SessionParts {
  readonly id: string;
  readonly identity: SessionIdentity;
  readonly clock: Clock;
  readonly lease: SwarmLease;
  readonly file: MetainfoFile;
  readonly isDefaultFile: boolean;
  /** null for output `file`. */
  readonly presentation: Presentation | null;
  readonly preferredAudioLanguage: string | null;
  /** Which audio is made into AAC; null: none. */
  readonly transcode: AudioTranscoding | null;
  readonly clientSessionId: number;
  readonly activityTimeoutMs: number;
  /** A body that gets no byte for this long ends: a dead swarm never hangs a player. */
  readonly readTimeoutMs: number;
  /** Whether `download_stopped` is told. */
  readonly stopNotifications: boolean;
  readonly onStopped: (session: PlaybackSession) => void;
}

/** See the module. */
export class PlaybackSession {
  readonly id: string;
  readonly identity: SessionIdentity;
  readonly file: MetainfoFile;
  readonly isDefaultFile: boolean;
  readonly presentation: Presentation | null;
  readonly preferredAudioLanguage: string | null;
  readonly transcode: AudioTranscoding | null;
  readonly clientSessionId: number;
  readonly events = new EventQueue();
  readonly startedMs: number;
  readonly #parts: SessionParts;
  readonly #stopping = new AbortController();
  readonly #readers = new Set<SwarmReader>();
  #activityTimeoutMs: number;
  #lastActivityMs: number;
  #prebufferedBytes = 0;
  #prebufferBytes: number;
  #stallReason: StallReason | null = null;
  #errorMessage: string | null = null;
  #watch: Timer | null = null;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.identity = parts.identity;
    this.file = parts.file;
    this.isDefaultFile = parts.isDefaultFile;
    this.presentation = parts.presentation;
    this.preferredAudioLanguage = parts.preferredAudioLanguage;
    this.transcode = parts.transcode;
    this.clientSessionId = parts.clientSessionId;
    this.#activityTimeoutMs = parts.activityTimeoutMs;
    this.startedMs = this.#lastActivityMs = parts.clock.monotonic();
    const twoSeconds = (parts.presentation?.bytesPerSecond ?? PREBUFFER_MAX_BYTES) * PREBUFFER_SECONDS;
    this.#prebufferBytes = Math.min(parts.file.sizeBytes, PREBUFFER_MAX_BYTES, Math.ceil(twoSeconds));
    void this.#prebuffer();
    this.#schedule();
  }

  get swarm(): Swarm {
    return this.#parts.lease.swarm;
  }

  /** Fires when the session stops; the reason says why. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  get stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** True until the first seconds are there. */
  get prebuffering(): boolean {
    return this.#prebufferedBytes < this.#prebufferBytes;
  }

  /** 0–100. */
  get prebufferProgress(): number {
    return this.#prebufferBytes === 0 ? 100 : Math.floor(100 * this.#prebufferedBytes / this.#prebufferBytes);
  }

  get stallReason(): StallReason | null {
    return this.#stallReason;
  }

  get errorMessage(): string | null {
    return this.#errorMessage ?? this.swarm.status().message ?? this.presentation?.warnings[0] ?? null;
  }

  /** Milliseconds without activity after which the session stops itself. */
  set activityTimeoutMs(value: number) {
    this.#activityTimeoutMs = value;
    this.touch();
  }

  /** The player did something. */
  touch(): void {
    this.#lastActivityMs = this.#parts.clock.monotonic();
  }

  /**
   * Streams what `produce` makes, in its own reader: bounded by what the client takes, ended by the session's end, by
   * the client leaving, or by `readTimeoutMs` without a byte.
   */
  stream(produce: (source: SwarmReader, signal: AbortSignal) => AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = this.swarm.openReader(this.file.index);
    if (this.presentation?.bytesPerSecond) reader.setBitrate(this.presentation.bytesPerSecond);
    this.#readers.add(reader);
    const leaving = new AbortController();
    const follow = () => leaving.abort(abortError(this.signal));
    if (this.stopped) follow();
    else this.signal.addEventListener("abort", follow, { once: true });
    const iterator = produce(reader, leaving.signal)[Symbol.asyncIterator]();
    const finish = () => {
      this.signal.removeEventListener("abort", follow);
      this.#readers.delete(reader);
      reader.close();
    };
    const { clock, readTimeoutMs } = this.#parts;
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const timer = clock.setTimeout(() => leaving.abort(this.#silence(reader)), readTimeoutMs);
        try {
          const { done, value } = await iterator.next();
          this.touch();
          if (done) {
            finish();
            controller.close();
          } else {
            this.#errorMessage = null;
            controller.enqueue(value);
          }
        } catch (error) {
          finish();
          // Waiting was activity: the session stays so that `stat` can tell why the body ended.
          this.touch();
          if (!this.stopped && error instanceof MillraceError) this.#errorMessage = error.message;
          controller.error(error);
        } finally {
          timer.cancel();
        }
      },
      cancel: async () => {
        leaving.abort(new MillraceError("aborted", "the client left"));
        finish();
        await iterator.return?.().catch(() => {});
      },
    }, { highWaterMark: 1 });
  }

  /** Ends the session: readers end, the lease goes back. Idempotent. */
  stop(reason: string): void {
    if (this.stopped) return;
    this.#watch?.cancel();
    if (this.#parts.stopNotifications) this.events.push({ name: "download_stopped", params: { reason } });
    this.events.close();
    this.#stopping.abort(new MillraceError("closed", `the session was stopped: ${reason}`));
    for (const reader of this.#readers) reader.close();
    this.#readers.clear();
    this.#parts.lease.release();
    this.#parts.onStopped(this);
  }

  #silence(reader: SwarmReader): MillraceError {
    return new MillraceError(
      "timeout",
      `no data for ${this.#parts.readTimeoutMs} ms: ${reader.stallReason() ?? "slow_peers"}`,
    );
  }

  /** Fetches the beginning whether or not a player has come yet, so that it finds the first seconds there. */
  async #prebuffer(): Promise<void> {
    if (this.#prebufferBytes === 0) return;
    const reader = this.swarm.openReader(this.file.index, { readAheadBytes: 0 });
    this.#readers.add(reader);
    const late = deadline(this.#parts.clock, this.#parts.readTimeoutMs, this.signal, () => this.#silence(reader));
    let forgetTail = () => {};
    try {
      const step = Math.max(16 * 1024, Math.ceil(this.#prebufferBytes / 8));
      for (let at = 0; at < this.#prebufferBytes; at += step) {
        const length = Math.min(step, this.#prebufferBytes - at);
        const read = reader.read(at, length, { signal: late.signal });
        if (at === 0 && this.presentation === null) forgetTail = fetchIndexTail(this.swarm, this.file, this.signal);
        const bytes = await read;
        if (at === 0 && indexComesFirst(bytes)) forgetTail();
        this.#prebufferedBytes = at + length;
        if (this.prebuffering) this.events.push({ name: "prebuffering", params: { progress: this.prebufferProgress } });
      }
      this.events.push({ name: "playing", params: {} });
    } catch (error) {
      if (!this.stopped && error instanceof MillraceError) this.#errorMessage = error.message;
      this.#prebufferBytes = this.#prebufferedBytes;
    } finally {
      late.cancel();
      this.#readers.delete(reader);
      reader.close();
    }
  }

  #schedule(): void {
    if (this.stopped) return;
    this.#watch = this.#parts.clock.setTimeout(() => {
      this.#look();
      this.#schedule();
    }, WATCH_MS);
  }

  #look(): void {
    if (this.#parts.clock.monotonic() - this.#lastActivityMs > this.#activityTimeoutMs) {
      this.stop("inactivity");
      return;
    }
    let reason: StallReason | null = null;
    for (const reader of this.#readers) reason ??= reader.stallReason();
    if (reason === this.#stallReason) return;
    this.#stallReason = reason;
    if (reason === null) this.events.push({ name: "playing", params: {} });
    else this.events.push({ name: "stalled", params: { reason } });
  }
}
