/**
 * A swarm that is slower than its film would stop it again and again. After the second stop the player is held up
 * once, until enough has arrived to play the rest while the rest arrives. Nothing happens before that second stop.
 *
 * A held body gets some packets every few seconds, so that no player takes it for dead.
 */
import type { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import { abortError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import type { Swarm, SwarmReader } from "../swarm/types.ts";
import { PlayClock } from "./play-clock.ts";

/** `auto`: so much that the rest plays without a stop. A number: this many seconds of the film. `off`: never. */
export type CushionChoice = "auto" | "off" | number;

/** The choice for sessions that make none of their own; it may change at any time. */
export interface CushionSetting {
  choice: CushionChoice;
}

/** Stops after which the player is held up. */
const STOPS = 2;
/** The download rate is the mean of so many looks, one per second, or of the newest ones where that is less: it may have dropped. */
const RATE_LOOKS = 30;
const NEWEST_LOOKS = 10;
/** Peers come and go, and the bitrate is that of the beginning for some files: this share of the rate is counted on. */
const SAFE_SHARE = 0.9;
/** A swarm this much faster than the film needs no cushion: its stops have other causes. */
const FAST_RATIO = 1.1;
/** More than is computed, seconds of the film: bitrate and download rate vary. */
const MARGIN_S = 5;
/** Nobody is held up longer than this, ms. hls.js takes a segment for lost after 120 s, and gives up after five of them … */
const LONGEST_MS = 10 * 60_000;
/** … but a viewer who chose a number of seconds knows of the wait. */
const LONGEST_CHOSEN_MS = 60 * 60_000;
/** A read farther than this from the newest one is a seek, seconds of the film. Players of HLS fetch two segments at once. */
const SEEK_S = 30;
/** A held body gets a morsel, seven packets of MPEG TS, at least this often, ms: Kodi gives up after 20 s of silence, mpv after 60. */
const MORSEL_MS = 5000;
const MORSEL_BYTES = 7 * 188;
/** What the player reads itself is due this much sooner than what is fetched ahead of it, ms. */
const YIELD_MS = 1000;

/** What plays. */
export interface CushionedFilm {
  readonly swarm: Swarm;
  readonly file: { readonly index: number; readonly sizeBytes: number };
  readonly clock: Clock;
  /** Mean, bytes per second; null while it is unknown: then there is no cushion. */
  bytesPerSecond(): number | null;
  readonly setting: CushionSetting;
  /** Whether players show nothing of a body before they have all of it, as those of HLS. */
  readonly isInSegments: boolean;
  /** Memory of the chunks that pass. */
  readonly buffers: ChunkBuffers;
}

/** The part of a body that the cushion looks at. */
export interface CushionedBody {
  /** Where it reads, byte of the file; null: unknown. */
  readonly positionBytes: number | null;
}

/** A cushion that is being filled. */
export interface Filling {
  /** 0–100. */
  readonly progress: number;
  /** How long it will take at the present rate, whole seconds; null: nothing arrives. */
  readonly waitS: number | null;
  /** How long the film then plays without a stop, whole seconds; null: to its end. */
  readonly playS: number | null;
}

/** The cushion of one session. */
export class Cushion {
  readonly #film: CushionedFilm;
  readonly #rates: number[] = [];
  readonly #waiting = new Set<() => void>();
  /** null: the setting. */
  choice: CushionChoice | null = null;
  #clock: PlayClock;
  /** The farthest read since the last seek, byte of the file. */
  #at: number | null = null;
  /** How much more of the film the player can show than at the last look, seconds. */
  #deliveredS = 0;
  #filling: Filling | null = null;
  #filledSinceMs = 0;
  /** There was a cushion since the last seek: the next stop makes another one. */
  #hasHeld = false;
  /** Until the next seek the viewer prefers stops. */
  #isSkipped = false;
  /** Keeps the download ahead of the player by the cushion. */
  #reader: SwarmReader | null = null;
  #reading = new AbortController();
  #isClosed = false;
  /** Bodies whose player waits for the next chunk. */
  #pulls = 0;

  constructor(film: CushionedFilm) {
    this.#film = film;
    this.#clock = new PlayClock(film.clock.monotonic());
  }

  /** null: the player is not held up. */
  get filling(): Filling | null {
    return this.#filling;
  }

  /** Lets the player go on with what has arrived, and leaves it alone until it seeks. */
  skip(): void {
    this.#isSkipped = true;
    this.#letGo();
  }

  /** Ends it. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#letGo();
    this.#closeReader();
  }

  /** To be called each second. `body`: the newest one; `isWaiting`: a body waits for the swarm. */
  look(body: CushionedBody | undefined, isWaiting: boolean): void {
    if (body !== undefined) this.#note(body.positionBytes);
    this.#rates.push(this.#film.swarm.status().downloadBytesPerSecond);
    if (this.#rates.length > RATE_LOOKS) this.#rates.shift();
    const bytesPerSecond = this.#film.bytesPerSecond();
    const nowMs = this.#film.clock.monotonic();
    if (bytesPerSecond === null || this.#at === null) return;
    const hasStopped = this.#clock.advance(this.#deliveredS, isWaiting && this.#pulls > 0, nowMs);
    this.#deliveredS = 0;
    if (this.#filling !== null) this.#fill(this.#at, bytesPerSecond, nowMs);
    else if (hasStopped) this.#maybeHold(this.#at, bytesPerSecond, nowMs);
    else if (this.#reader !== null) this.#aim(this.#reader, this.#at);
  }

  /**
   * `chunks`, of which only morsels come while the cushion is filled. They are a segment of `segmentS` seconds, or with
   * null no segment.
   */
  async *pass(
    chunks: AsyncIterable<Uint8Array>,
    body: CushionedBody,
    signal: AbortSignal,
    segmentS: number | null,
  ): AsyncGenerator<Uint8Array> {
    const iterator = chunks[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value } = await this.#pull(iterator);
        if (done === true) {
          this.#deliveredS += segmentS ?? 0;
          return;
        }
        this.#note(body.positionBytes);
        let rest = value;
        while (this.#filling !== null && rest.length > MORSEL_BYTES) {
          this.#film.buffers.hold(value);
          yield rest.subarray(0, MORSEL_BYTES);
          rest = rest.subarray(MORSEL_BYTES);
          await this.#filledOr(MORSEL_MS, signal);
        }
        yield rest;
      }
    } finally {
      await iterator.return?.();
    }
  }

  async #pull(iterator: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
    this.#pulls++;
    try {
      return await iterator.next();
    } finally {
      this.#pulls--;
    }
  }

  /** A body reads at `at` now. */
  #note(at: number | null): void {
    const bytesPerSecond = this.#film.bytesPerSecond();
    if (at === null || bytesPerSecond === null) return;
    if (this.#at === null || Math.abs(at - this.#at) > SEEK_S * bytesPerSecond) return this.#sought(at);
    const further = Math.max(0, at - this.#at);
    this.#at += further;
    if (!this.#film.isInSegments) this.#deliveredS += further / bytesPerSecond;
  }

  #sought(at: number): void {
    this.#at = at;
    this.#deliveredS = 0;
    this.#clock = new PlayClock(this.#film.clock.monotonic());
    this.#hasHeld = this.#isSkipped = false;
    this.#letGo();
    this.#closeReader();
  }

  #maybeHold(at: number, bytesPerSecond: number, nowMs: number): void {
    if (this.#chosen === "off" || this.#isSkipped || this.#isClosed) return;
    if (this.#clock.stops < STOPS && !this.#hasHeld) return;
    if (this.#rate > FAST_RATIO * bytesPerSecond && this.#chosen === "auto") return;
    this.#hasHeld = true;
    this.#filledSinceMs = nowMs;
    this.#reader ??= this.#openReader(bytesPerSecond);
    this.#fill(at, bytesPerSecond, nowMs);
  }

  /** Looks how far it is. */
  #fill(at: number, bytesPerSecond: number, nowMs: number): void {
    this.#clock.hold();
    const rate = this.#rate;
    const restBytes = this.#film.file.sizeBytes - at;
    const share = Math.min(1, SAFE_SHARE * rate / bytesPerSecond);
    const wholeBytes = Math.min(restBytes, restBytes * (1 - share) + MARGIN_S * bytesPerSecond);
    const chosenS = typeof this.#chosen === "number" ? this.#chosen : null;
    const wanted = Math.min(restBytes, chosenS === null ? wholeBytes : chosenS * bytesPerSecond);
    const reachable = this.#reader?.setReadAhead(Math.ceil(wanted)) ?? 0;
    const here = this.#hereBytes(at, Math.min(wanted, reachable));
    const untilMs = this.#filledSinceMs + (chosenS === null ? LONGEST_MS : LONGEST_CHOSEN_MS);
    const inTime = here + rate * Math.max(0, untilMs - nowMs) / 1000;
    const neededBytes = Math.min(wanted, reachable, inTime);
    // A swarm that brings nothing is not waited for: what has arrived plays, and then stops as it always did.
    if (this.#chosen === "off" || here >= neededBytes || this.#isSilent || this.#reader === null) return this.#letGo();
    this.#aim(this.#reader, at);
    this.#filling = {
      progress: Math.floor(100 * here / neededBytes),
      waitS: rate === 0 ? null : Math.ceil((neededBytes - here) / rate),
      playS: neededBytes >= wholeBytes ? null : Math.floor(neededBytes / (bytesPerSecond * (1 - share))),
    };
  }

  /** Of the `length` bytes from `at` on those that have arrived, in whatever order they came. */
  #hereBytes(at: number, length: number): number {
    const reader = this.#reader;
    let bytes = 0;
    for (let place = at, end = at + length; reader !== null && place < end;) {
      const here = reader.availableFrom(place, end - place);
      bytes += here;
      place = here > 0 ? place + here : reader.pieceEnd(place);
    }
    return bytes;
  }

  get #chosen(): CushionChoice {
    return this.choice ?? this.#film.setting.choice;
  }

  get #rate(): number {
    const mean = (rates: readonly number[]) => rates.reduce((sum, rate) => sum + rate, 0) / Math.max(1, rates.length);
    return Math.min(mean(this.#rates), mean(this.#rates.slice(-NEWEST_LOOKS)));
  }

  get #isSilent(): boolean {
    return this.#rates.every((rate) => rate === 0);
  }

  #openReader(bytesPerSecond: number): SwarmReader | null {
    try {
      const reader = this.#film.swarm.openReader(this.#film.file.index, { readAheadBytes: 0, yieldMs: YIELD_MS });
      reader.setBitrate(bytesPerSecond);
      return reader;
    } catch {
      // No reader is free: players have readers of their own and get the error.
      return null;
    }
  }

  /** The download goes ahead of `at` from now on. */
  #aim(reader: SwarmReader, at: number): void {
    this.#reading.abort();
    this.#reading = new AbortController();
    if (at >= this.#film.file.sizeBytes) return;
    reader.read(at, 1, { signal: this.#reading.signal }).catch(() => {});
  }

  #closeReader(): void {
    this.#reading.abort();
    this.#reader?.close();
    this.#reader = null;
  }

  #letGo(): void {
    if (this.#filling === null) return;
    this.#filling = null;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when the cushion is filled, or after `ms`; rejects with the signal's reason. */
  #filledOr(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", abort);
        timer.cancel();
        settle();
      };
      const wake = () => end(resolve);
      const abort = () => end(() => reject(abortError(signal)));
      const timer = this.#film.clock.setTimeout(wake, ms);
      this.#waiting.add(wake);
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }
}
