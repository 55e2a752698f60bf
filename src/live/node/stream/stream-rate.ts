/**
 * The rate of the stream as its broadcaster signed it: bytes of the pieces over the time in which they were captured.
 * The bitrate in the transport file was measured or guessed before the first piece. A slate, a variable bitrate or a
 * typing error makes it wrong by any factor. It counts only until half a second of headers is known.
 */
import { FLAG_DISCONTINUITY, type PieceHeader } from "../../header.ts";
import type { PieceWindow } from "./piece-window.ts";

/** Shortest stretch of stream that shows a rate, ms. */
const LEAST_SPAN_MS = 500;
/**
 * A rising rate shows over this much of the stream, ms, and this share of it counts: keyframes make a second much
 * larger than the mean, but the end of a slate makes it larger still. A falling rate shows only over the whole window.
 */
const RISES = [{ spanMs: 750, share: 0.6 }, { spanMs: 2000, share: 0.8 }, { spanMs: 4000, share: 1 }] as const;
/**
 * A stretch with more than this many times the rate of the whole window counts in full. Keyframes seldom make that much, but
 * the end of a slate does. When 0.6 of it counted, a source took three seconds more to see that its line
 * carries a sixth of its children, and blocks waited for five.
 */
const LEAP = 3;
/** A source often begins with a burst of what it had kept: this much of the oldest stream in the window may be one, ms. */
const BURST_MS = 1000;
/** That is left out once this much else is known, ms. */
const BEYOND_BURST_MS = 3000;
/** The rate is computed again once this much more of the stream is known, ms. */
const RENEW_MS = 250;
/** Differences below this share are ignored: places in the trees depend on the rate, and must not swing with it. */
const STEADY_SHARE = 0.05;

/** Headers in a row: the pieces that they span, and what those of known length have. */
interface Span {
  pieces: number;
  ms: number;
  bytes: number;
  known: number;
}

/** What a stretch of the stream shows. */
interface Stretch {
  readonly bytesPerMs: number;
  readonly piecesPerMs: number;
}

/** The rate of the stream in a window. */
export class StreamRate {
  readonly #window: PieceWindow;
  #bytesPerMs: number;
  #piecesPerMs: number;
  #seenEpoch = -1;
  #seenMs = -Infinity;

  /** The rate in `told` is used until the headers in `window` show more. */
  constructor(window: PieceWindow, told: { readonly bytesPerS: number; readonly pieceLengthBytes: number }) {
    this.#window = window;
    this.#bytesPerMs = told.bytesPerS / 1000;
    this.#piecesPerMs = this.#bytesPerMs / told.pieceLengthBytes;
  }

  /** Bytes per second. */
  get bytesPerS(): number {
    this.#renew();
    return 1000 * this.#bytesPerMs;
  }

  /** Pieces that are made in `ms`, at least `least`. */
  pieces(ms: number, least: number): number {
    this.#renew();
    return Math.max(least, Math.round(ms * this.#piecesPerMs));
  }

  #renew(): void {
    const { newest } = this.#window;
    if (newest === null) return;
    if (newest.epoch === this.#seenEpoch && newest.timestampMs - this.#seenMs < RENEW_MS) return;
    this.#seenEpoch = newest.epoch;
    this.#seenMs = newest.timestampMs;
    const shown = this.#measure();
    if (shown === null) return;
    this.#bytesPerMs = steady(this.#bytesPerMs, shown.bytesPerMs);
    this.#piecesPerMs = steady(this.#piecesPerMs, shown.piecesPerMs);
  }

  /**
   * Goes back from the newest header. A piece without a header counts as long as the mean of the others. Time in which
   * the broadcaster or its source was away does not count.
   */
  #measure(): Stretch | null {
    const window = this.#window;
    let next = window.newest!;
    const all: Span = { pieces: 0, ms: 0, bytes: 0, known: 0 };
    const burstUntilMs = this.#oldestMs() + BURST_MS;
    let beyondBurst: Span | null = null;
    const stretches: Stretch[] = [];
    for (let seq = next.seq - 1; seq >= window.base; seq--) {
      const header = window.get(seq)?.header;
      if (header == null) continue;
      if (header.timestampMs < burstUntilMs) beyondBurst ??= { ...all };
      if ((next.flags & FLAG_DISCONTINUITY) === 0) {
        add(all, header, next);
        const rise = RISES[stretches.length];
        if (rise !== undefined && all.ms >= rise.spanMs) stretches.push(stretch(all));
      }
      next = header;
    }
    if (all.ms < LEAST_SPAN_MS || all.bytes === 0) return null;
    let whole = stretch(all);
    if (beyondBurst !== null && beyondBurst.ms >= BEYOND_BURST_MS) {
      const beyond = stretch(beyondBurst);
      if (beyond.bytesPerMs < whole.bytesPerMs) whole = beyond;
    }
    return stretches.map((one, i) => (one.bytesPerMs > LEAP * whole.bytesPerMs ? one : scaled(one, RISES[i]!.share)))
      .reduce((most, one) => (one.bytesPerMs > most.bytesPerMs ? one : most), whole);
  }

  /** Capture time of the oldest header in the window, Unix ms. */
  #oldestMs(): number {
    const window = this.#window;
    for (let seq = window.base; seq < window.newest!.seq; seq++) {
      const header = window.get(seq)?.header;
      if (header != null) return header.timestampMs;
    }
    return window.newest!.timestampMs;
  }
}

function add(span: Span, from: PieceHeader, to: PieceHeader): void {
  span.pieces += to.seq - from.seq;
  span.ms += to.timestampMs - from.timestampMs;
  span.bytes += from.lengthBytes;
  span.known++;
}

function stretch({ pieces, ms, bytes, known }: Span): Stretch {
  return { bytesPerMs: pieces * bytes / known / ms, piecesPerMs: pieces / ms };
}

function scaled({ bytesPerMs, piecesPerMs }: Stretch, share: number): Stretch {
  return { bytesPerMs: share * bytesPerMs, piecesPerMs: share * piecesPerMs };
}

function steady(before: number, now: number): number {
  return Math.abs(now - before) < STEADY_SHARE * before ? before : now;
}
