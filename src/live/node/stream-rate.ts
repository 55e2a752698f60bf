/**
 * The rate of the stream as its broadcaster signed it: bytes of the pieces over the time in which they were captured.
 * The bitrate in the transport file was measured or guessed before the first piece. A slate, a variable bitrate or a
 * typing error makes it wrong by any factor. It counts only until half a second of headers is known.
 */
import { FLAG_DISCONTINUITY } from "../header.ts";
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
/** The rate is computed again once this much more of the stream is known, ms. */
const RENEW_MS = 250;
/** Differences below this share are ignored: places in the trees depend on the rate, and must not swing with it. */
const STEADY_SHARE = 0.05;

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
    let [pieces, ms, bytes, known] = [0, 0, 0, 0];
    const stretches: Stretch[] = [];
    for (let seq = next.seq - 1; seq >= window.base; seq--) {
      const header = window.get(seq)?.header;
      if (header == null) continue;
      if ((next.flags & FLAG_DISCONTINUITY) === 0) {
        pieces += next.seq - seq;
        ms += next.timestampMs - header.timestampMs;
        bytes += header.lengthBytes;
        known++;
        const rise = RISES[stretches.length];
        if (rise !== undefined && ms >= rise.spanMs) stretches.push(stretch(pieces, ms, bytes / known));
      }
      next = header;
    }
    if (ms < LEAST_SPAN_MS || bytes === 0) return null;
    const whole = stretch(pieces, ms, bytes / known);
    return stretches.map((one, i) => (one.bytesPerMs > LEAP * whole.bytesPerMs ? one : scaled(one, RISES[i]!.share)))
      .reduce((most, one) => (one.bytesPerMs > most.bytesPerMs ? one : most), whole);
  }
}

function stretch(pieces: number, ms: number, meanBytes: number): Stretch {
  return { bytesPerMs: pieces * meanBytes / ms, piecesPerMs: pieces / ms };
}

function scaled({ bytesPerMs, piecesPerMs }: Stretch, share: number): Stretch {
  return { bytesPerMs: share * bytesPerMs, piecesPerMs: share * piecesPerMs };
}

function steady(before: number, now: number): number {
  return Math.abs(now - before) < STEADY_SHARE * before ? before : now;
}
