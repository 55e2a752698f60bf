/**
 * Sections of a large transport stream with a continuous clock, from times sampled at a few places. If the time between
 * two samples does not fit the bytes between them, the break is searched by halving, each step one bounded read. Breaks
 * that are small compared to the distance of the samples look like a change of the bit rate and go undetected.
 */
import { stepBetween } from "../../bytes/ts/stamps.ts";
import type { ClockBreak, TimedPes, TimeScanner } from "./time-scan.ts";

/** Packets `[start, end)` with one clock. */
export interface Section {
  readonly start: number;
  readonly end: number;
  /** Times known in it, ascending; empty only in a file without times. */
  readonly marks: readonly TimedPes[];
}

/** Packets read for one sample, about 128 KiB. */
export const SAMPLE_PACKETS = 700;
/** Credible bit rates, bytes per tick of 90 kHz: 2 kB/s to 40 MB/s. */
const LEAST_RATE = 2_000 / 90_000;
const GREATEST_RATE = 40_000_000 / 90_000;
/** Assumed if no two times are known: 0.5 MB/s. */
const UNKNOWN_RATE = 500_000 / 90_000;
/** The rate between two samples may differ from the usual one by this factor, up or down, without suspicion. */
const USUAL_FACTOR = 2;
/** Error allowed in the time between two samples, 90 kHz (10 s). */
const USUAL_ERROR_90K = 900_000;
/** In the half without the break the time is wrong by less than this share of the break. */
const QUIET_SHARE = 0.3;
/** Most reads in search of breaks, all together: four breaks in a file of 100 GB. */
const MAX_LOOKS = 80;

/** Median of the credible rates between neighbours, bytes per tick. */
export function usualRate(marks: readonly TimedPes[], strideBytes: number): number {
  const rates = marks.slice(1)
    .map((b, i) => (b.packet - marks[i]!.packet) * strideBytes / stepBetween(marks[i]!.pts90k, b.pts90k))
    .filter((rate) => rate >= LEAST_RATE && rate <= GREATEST_RATE)
    .sort((x, y) => x - y);
  return rates[rates.length >> 1] ?? UNKNOWN_RATE;
}

/** Searches for breaks between samples. */
export class BreakSearch {
  readonly #scanner: TimeScanner;
  readonly #rate: number;
  #looks = MAX_LOOKS;

  /** `rate`: bytes per tick. */
  constructor(scanner: TimeScanner, rate: number) {
    this.#scanner = scanner;
    this.#rate = rate;
  }

  /** The breaks between `a` and `b`, in order. */
  async between(a: TimedPes, b: TimedPes): Promise<ClockBreak[]> {
    if (b.packet <= a.packet || !this.#isOdd(a, b)) return [];
    const found = await this.#halve(a, b);
    if (found === null) return [];
    return [...await this.between(a, found.before), found, ...await this.between(found.after, b)];
  }

  /** Ticks that the clock advanced beyond the time that the bytes take. */
  #error(a: TimedPes, b: TimedPes): number {
    return stepBetween(a.pts90k, b.pts90k) - this.#expected(a, b);
  }

  #expected(a: TimedPes, b: TimedPes): number {
    return (b.packet - a.packet) * this.#scanner.format.strideBytes / this.#rate;
  }

  #isOdd(a: TimedPes, b: TimedPes): boolean {
    const expected = this.#expected(a, b);
    const step = expected + this.#error(a, b);
    if (Math.abs(step - expected) <= USUAL_ERROR_90K) return false;
    return step < expected / USUAL_FACTOR || step > expected * USUAL_FACTOR;
  }

  async #halve(from: TimedPes, to: TimedPes): Promise<ClockBreak | null> {
    let [low, high] = [from, to];
    while (high.packet - low.packet > 2 * SAMPLE_PACKETS) {
      if (this.#looks-- <= 0) return null;
      const middle = Math.floor((low.packet + high.packet) / 2);
      const { first } = await this.#scanner.scan(middle, Math.min(SAMPLE_PACKETS, high.packet - middle), "any");
      if (first === null) return null;
      const [before, after] = [Math.abs(this.#error(low, first)), Math.abs(this.#error(first, high))];
      // An error in both halves means a bit rate that changes, or a break in each; the two cannot be distinguished here.
      if (Math.min(before, after) > QUIET_SHARE * Math.max(before, after)) return null;
      if (before > after) high = first;
      else low = first;
    }
    if (this.#looks-- <= 0) return null;
    const { breaks } = await this.#scanner.scan(low.packet, high.packet - low.packet + SAMPLE_PACKETS, "any");
    return breaks.find(({ after }) => after.packet > from.packet && after.packet <= to.packet) ?? null;
  }
}

/** The sections of a file of `packetCount` packets with these marks (ascending) and breaks (in order). */
export function sectionsOf(packetCount: number, marks: readonly TimedPes[], breaks: readonly ClockBreak[]): Section[] {
  const starts = [0, ...breaks.map(({ after }) => after.packet)];
  return starts.map((start, i) => {
    const end = starts[i + 1] ?? packetCount;
    const inside = marks.filter(({ packet }) => packet >= start && packet < end);
    const head = i === 0 ? [] : [breaks[i - 1]!.after];
    const tail = i === breaks.length ? [] : [breaks[i]!.before];
    const known = [...head, ...inside, ...tail].sort((a, b) => a.packet - b.packet);
    return { start, end, marks: known.filter((mark, n) => n === 0 || mark.packet > known[n - 1]!.packet) };
  });
}
