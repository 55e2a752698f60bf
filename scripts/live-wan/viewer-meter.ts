/** Measures what one viewer receives, by the stream's own clock. */
import { stepBetween } from "../../src/bytes/ts/stamps.ts";
import { type SourceTimes, StreamClock } from "./stream-clock.ts";

/** A player begins when it has this much, ms. */
const START_BUFFER_MS = 1000;
/** A longer step between two PCRs is a gap: they come every 40 ms. */
const MAX_STEP_MS = 300;
const TICKS_PER_MS = 90;

/** What a viewer received. Times in ms. */
export interface ViewerFigures {
  /** From the request to a second of media; null when that never came. */
  readonly joinMs: number | null;
  /** Media that came, media that was left out, and for how long a player stood still when the run ended. */
  readonly mediaMs: number;
  readonly missingMs: number;
  readonly endedStillMs: number;
  /** The longest time for which a player had nothing to play. */
  readonly longestStillMs: number;
  /** How far the newest that came was behind the source, by samples. */
  readonly lagsMs: readonly number[];
  /** From the request to the end of the run. */
  readonly watchedMs: number;
}

/**
 * A player that takes everything at once, begins with a second of media, plays at normal speed and never skips of its own
 * accord. When nothing is left it stands still until more comes.
 */
export class ViewerMeter {
  readonly #source: SourceTimes;
  readonly #clock = new StreamClock();
  readonly #lagsMs: number[] = [];
  #requestedMs = NaN;
  #pcr: number | null = null;
  /** When the newest that came left the source, Unix ms. */
  #newestMs: number | null = null;
  #joinMs: number | null = null;
  /** When everything will have been played, Unix ms. */
  #emptyMs = Infinity;
  #mediaMs = 0;
  #missingMs = 0;
  #longestStillMs = 0;

  constructor(source: SourceTimes) {
    this.#source = source;
  }

  /** The player asks for the stream at that time, Unix ms. */
  requested(atMs: number): void {
    this.#requestedMs = atMs;
  }

  /** A part of the stream has come. */
  receives(chunk: Uint8Array, nowMs: number): void {
    for (const pcr of this.#clock.read(chunk)) {
      this.#standUntil(nowMs);
      const stepMs = this.#pcr === null ? 0 : stepBetween(this.#pcr, pcr) / TICKS_PER_MS;
      this.#pcr = pcr;
      this.#newestMs = this.#source.sentMs(pcr) ?? this.#newestMs;
      if (stepMs < 0 || stepMs > MAX_STEP_MS) {
        this.#missingMs += Math.abs(stepMs);
        continue;
      }
      this.#mediaMs += stepMs;
      this.#emptyMs += stepMs;
      if (this.#joinMs !== null || this.#mediaMs < START_BUFFER_MS) continue;
      this.#joinMs = nowMs - this.#requestedMs;
      this.#emptyMs = nowMs + this.#mediaMs;
    }
  }

  /** Notes how far the newest that came is behind the source. */
  sampleLag(nowMs: number): void {
    if (this.#joinMs !== null && this.#newestMs !== null) this.#lagsMs.push(nowMs - this.#newestMs);
  }

  /** The figures of a run that ends now. */
  end(nowMs: number): ViewerFigures {
    return {
      joinMs: this.#joinMs,
      mediaMs: this.#mediaMs,
      missingMs: this.#missingMs,
      endedStillMs: this.#standUntil(nowMs),
      longestStillMs: this.#longestStillMs,
      lagsMs: this.#lagsMs,
      watchedMs: nowMs - this.#requestedMs,
    };
  }

  /** A player that has run out of media stood still until now; returns for how long. */
  #standUntil(nowMs: number): number {
    const stillMs = Math.max(0, nowMs - this.#emptyMs);
    this.#emptyMs += stillMs;
    this.#longestStillMs = Math.max(this.#longestStillMs, stillMs);
    return stillMs;
  }
}
