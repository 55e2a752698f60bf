/** The common part of all playback sessions: identity, activity, events, bodies that end, and an end of their own. */
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, Timer } from "../ports.ts";
import type { StallReason } from "../swarm/types.ts";
import type { Problem } from "./problem.ts";
import { OWN, type ShareHolder } from "../bytes/shares.ts";
import type { HlsFormat } from "../media/model/types.ts";
import { EventLog, type PlaybackEvent } from "./events.ts";

/** What a session delivers: MPEG TS, HLS, or the file as it is. */
export type OutputKind = "ts" | "hls" | "file";

/** Reason of `Session.stop` after a long time without use. A request for one of its URLs brings it back. */
export const INACTIVITY = "inactivity";
/** Reason of `Session.stop` when the engine ends. The next run of the engine brings it back. */
export const SHUTDOWN = "shutdown";

/** How often activity and stalls are checked. */
const WATCH_MS = 1000;
/** A body from which its client takes nothing is cut after this, ms: so long a viewer may pause. */
export const LONGEST_PAUSE_MS = 3_600_000;

/** The error of a body that was cut after a pause of `LONGEST_PAUSE_MS`. */
export function pausedForTooLong(): MillraceError {
  return new MillraceError("timeout", `the client took nothing for ${LONGEST_PAUSE_MS / 60_000} minutes`);
}

/** What makes two requests the same session. */
export interface SessionIdentity {
  readonly infohashHex: string;
  readonly fileIndex: number;
  readonly output: OutputKind;
  /** Of a file's HLS; `auto` for other sessions. */
  readonly hlsFormat: HlsFormat;
  /** `pid`, else the client's address. */
  readonly client: string;
  /** Origin of the page that plays, or another word for a client apart from the user's programs; null: one of those. */
  readonly owner: string | null;
}

/** Is notified about sessions, by their ids. */
export interface SessionObserver {
  /** Playing waits from now on. */
  stalled(id: string, reason: StallReason): void;
  /** `reason` as in `Session.stop`. */
  ended(id: string, reason: string): void;
}

/** What every session is made of. */
export interface SessionBaseParts {
  readonly id: string;
  readonly identity: SessionIdentity;
  /** Whose share of scarce resources it takes. Default: this machine's own programs. */
  readonly holder?: ShareHolder;
  readonly clock: Clock;
  readonly clientSessionId: number;
  readonly preferredAudioLanguage: string | null;
  readonly activityTimeoutMs: number;
  /** A body that gets no byte for this long ends: a dead swarm never hangs a player. */
  readonly readTimeoutMs: number;
  /** Whether `download_stopped` is reported. */
  readonly stopNotifications: boolean;
  readonly onStopped: (reason: string) => void;
  /** Called when the session can't be played; it stays for a while so that `stat` can say why. */
  readonly onFailed: () => void;
  /** Playing waits from now on. */
  readonly onStalled: (reason: StallReason) => void;
}

/** How `Session.body` reads. */
export interface BodyParts {
  /** Makes the bytes; the signal fires when the session stops, the client leaves or nothing comes for too long. */
  produce(signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Why nothing came. */
  silence(): string;
  /** Called once when the body is over, however. */
  finish(): void;
}

/** A body that has not ended. */
interface OpenBody {
  /** Since when (monotonic ms) it waits for its client to take more; null: the client waits for it. */
  pausedSinceMs: number | null;
  /** Ends it with an error, although its client takes nothing. */
  cut(reason: MillraceError): void;
}

/** A playback session. Subclasses call `watch` at the end of their constructor. */
export abstract class Session {
  readonly id: string;
  readonly identity: SessionIdentity;
  /** Of the newest start that named one, else -1. */
  clientSessionId: number;
  readonly preferredAudioLanguage: string | null;
  readonly events = new EventLog();
  readonly startedMs: number;
  /** Time, for subclasses. */
  protected readonly clock: Clock;
  /** A body that gets no byte for this long ends. */
  protected readonly readTimeoutMs: number;
  /** Whose share of scarce resources it takes. */
  readonly holder: ShareHolder;
  /** Newest trouble of this session. */
  protected trouble: Problem | null = null;
  readonly #parts: SessionBaseParts;
  readonly #stopping = new AbortController();
  readonly #bodies = new Set<OpenBody>();
  /** Settled with the first pull of a body. */
  readonly #begun = new WeakMap<ReadableStream<Uint8Array>, Promise<void>>();
  #activityTimeoutMs: number;
  #lastActivityMs: number;
  #stallReason: StallReason | null = null;
  #hasToldEnd = false;
  #failed = false;
  #watch: Timer | null = null;

  constructor(parts: SessionBaseParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.identity = parts.identity;
    this.clientSessionId = parts.clientSessionId;
    this.preferredAudioLanguage = parts.preferredAudioLanguage;
    this.clock = parts.clock;
    this.holder = parts.holder ?? OWN;
    this.readTimeoutMs = parts.readTimeoutMs;
    this.#activityTimeoutMs = parts.activityTimeoutMs;
    this.startedMs = this.#lastActivityMs = parts.clock.monotonic();
  }

  /** True until the first seconds are there. */
  abstract get prebuffering(): boolean;
  /** 0–100. */
  abstract get prebufferProgress(): number;
  /** What a user should know, else null. */
  abstract get problem(): Problem | null;
  /**
   * Resolves when the output can be read, rejects with the reason if it never will. Waiting for it does not count as
   * activity.
   */
  abstract get playable(): Promise<void>;
  /** Why playing waits now, null when it does not. */
  protected abstract stall(): StallReason | null;
  /** Releases everything that the session holds. */
  protected abstract release(): void;

  /** Fires when the session stops; the reason says why. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  get stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Whether it turned out that this can't be played. */
  get failed(): boolean {
    return this.#failed;
  }

  get stallReason(): StallReason | null {
    return this.#stallReason;
  }

  /** Milliseconds without activity after which the session stops itself. An open body is activity. */
  set activityTimeoutMs(value: number) {
    this.#activityTimeoutMs = value;
    this.touch();
  }

  /** Time since the player last did something, ms. A player that pauses does nothing. */
  get idleMs(): number {
    return this.clock.monotonic() - this.#lastActivityMs;
  }

  /** Whether a client reads a body, or pauses one that it will read on. */
  get hasBody(): boolean {
    return this.#bodies.size > 0;
  }

  /** The player did something. */
  touch(): void {
    this.#lastActivityMs = this.clock.monotonic();
  }

  /**
   * Returns itself, for another start that joined it. `clientSessionId` is -1 if that start named none; a trial leaves
   * no trace.
   */
  rejoined({ clientSessionId, isTrial }: { readonly clientSessionId: number; readonly isTrial?: boolean }): this {
    if (isTrial === true) return this;
    if (clientSessionId !== -1) this.clientSessionId = clientSessionId;
    this.touch();
    return this;
  }

  /** Ends the session: its readers end, and it releases what it holds. Idempotent. */
  stop(reason: string): void {
    if (this.stopped) return;
    this.#watch?.cancel();
    if (this.#parts.stopNotifications && !this.#hasToldEnd) this.tell("download_stopped", { reason });
    this.events.close();
    const closed = new MillraceError("closed", `the session was stopped: ${reason}`);
    this.#stopping.abort(closed);
    // The others see the signal; these would stay open as long as their clients take nothing.
    for (const { pausedSinceMs, cut } of [...this.#bodies]) if (pausedSinceMs !== null) cut(closed);
    this.release();
    this.#parts.onStopped(reason);
  }

  /**
   * Ends a session that can't be played. It releases what it holds, and its reason can be fetched until nobody has
   * asked for the length of the activity timeout. All listeners are notified, because nothing else would notify them.
   */
  protected fail(error: unknown): void {
    if (this.stopped || this.#failed) return;
    this.#failed = true;
    this.trouble = error instanceof MillraceError ? error : { message: "internal error", code: "internal" };
    this.tellEnd(this.trouble.message);
    this.release();
    this.#parts.onFailed();
  }

  /** Notifies all listeners, whether or not they asked for it, that no more data comes: nothing else would. Once. */
  protected tellEnd(reason: string): void {
    if (this.#hasToldEnd) return;
    this.#hasToldEnd = true;
    this.tell("download_stopped", { reason });
  }

  /** Resolves when the first bytes of `body`, which `body()` made, are there; rejects with the reason why they never will. */
  begun(body: ReadableStream<Uint8Array>): Promise<void> {
    return this.#begun.get(body) ?? Promise.resolve();
  }

  /** Adds an event. */
  protected tell(name: PlaybackEvent["name"], params: PlaybackEvent["params"] = {}): void {
    this.events.push({ name, params });
  }

  /**
   * Begins to check activity and stalls, each second. The session stops with `ending`, of the swarm that it plays from: the
   * next start joins another one.
   */
  protected watch(ending: AbortSignal): void {
    const stop = () => this.stop(abortError(ending).message);
    ending.addEventListener("abort", stop, { once: true });
    // Not by the option `signal` of `addEventListener`: Node collects all but the last of its links to one `ending`, and then removes
    // nothing, so a swarm that many watch one after the other would keep all their sessions.
    this.signal.addEventListener("abort", () => ending.removeEventListener("abort", stop), { once: true });
    if (ending.aborted) queueMicrotask(stop);
    this.#lookLater();
  }

  #lookLater(): void {
    if (this.stopped) return;
    this.#watch = this.clock.setTimeout(() => {
      this.#look();
      this.#lookLater();
    }, WATCH_MS);
  }

  /**
   * Streams: bounded by what the client takes, ended by the session's end, the client leaving, silence, or a pause of
   * `LONGEST_PAUSE_MS`.
   */
  protected body(parts: BodyParts): ReadableStream<Uint8Array> {
    const leaving = new AbortController();
    const follow = () => leaving.abort(abortError(this.signal));
    if (this.stopped) follow();
    else this.signal.addEventListener("abort", follow, { once: true });
    const iterator = parts.produce(leaving.signal)[Symbol.asyncIterator]();
    const open: OpenBody = { pausedSinceMs: null, cut: () => {} };
    this.#bodies.add(open);
    const finish = () => {
      this.#bodies.delete(open);
      this.signal.removeEventListener("abort", follow);
      parts.finish();
    };
    let begin = () => {};
    let fail = (_error: unknown) => {};
    const begun = new Promise<void>((resolve, reject) => [begin, fail] = [resolve, reject]);
    begun.catch(() => {});
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        open.cut = (reason) => {
          leaving.abort(reason);
          finish();
          controller.error(reason);
          iterator.return?.().catch(() => {});
        };
      },
      pull: async (controller) => {
        open.pausedSinceMs = null;
        const late = () => leaving.abort(this.silence(parts.silence()));
        const timer = this.clock.setTimeout(late, this.readTimeoutMs);
        try {
          const { done, value } = await iterator.next();
          this.touch();
          if (done) {
            finish();
            controller.close();
          } else {
            this.trouble = null;
            controller.enqueue(value);
          }
          begin();
        } catch (error) {
          fail(error);
          finish();
          // Waiting was activity: the session stays so that `stat` can say why the body ended.
          this.touch();
          const isTrouble = error instanceof MillraceError && error.code !== "aborted";
          if (!this.stopped && isTrouble) this.trouble = error;
          controller.error(error);
        } finally {
          open.pausedSinceMs = this.clock.monotonic();
          timer.cancel();
        }
      },
      cancel: async () => {
        leaving.abort(new MillraceError("aborted", "the client left"));
        finish();
        await iterator.return?.().catch(() => {});
      },
    }, { highWaterMark: 1 });
    this.#begun.set(body, begun);
    return body;
  }

  /** The error of a body that got nothing for too long. */
  protected silence(reason: string): MillraceError {
    return new MillraceError("timeout", `no data for ${this.readTimeoutMs} ms: ${reason}`);
  }

  /** Ends the bodies whose clients pause for too long. */
  #cutPaused(): void {
    const untilMs = this.clock.monotonic() - LONGEST_PAUSE_MS;
    for (const { pausedSinceMs, cut } of [...this.#bodies]) {
      if (pausedSinceMs === null || pausedSinceMs > untilMs) continue;
      cut(pausedForTooLong());
    }
  }

  #look(): void {
    this.#cutPaused();
    if (!this.hasBody && this.idleMs > this.#activityTimeoutMs) {
      this.stop(INACTIVITY);
      return;
    }
    if (this.#failed) return;
    const reason = this.stall();
    if (reason === this.#stallReason) return;
    this.#stallReason = reason;
    if (reason === null) this.tell("playing");
    else {
      this.tell("stalled", { reason });
      this.#parts.onStalled(reason);
    }
  }
}
