/** Counters and histograms with a bounded number of series. */
import type { Labels, MetricFamily, MetricSample } from "./exposition.ts";

/**
 * Most series of one family. The code's own label sets are far smaller; should a label ever come from outside, a stranger
 * can fill only this many, and the rest is counted together as `other`.
 */
export const MAX_SERIES = 400;

/** Names an instrument and its labels. */
export interface InstrumentOptions<Name extends string> {
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** Default none. */
  readonly labels?: readonly Name[];
}

/** Series by the values of their labels, bounded by `MAX_SERIES`. */
class SeriesMap<Name extends string, Value> {
  readonly #names: readonly Name[];
  readonly #make: () => Value;
  readonly #series = new Map<string, { readonly labels: Labels; readonly value: Value }>();

  constructor(names: readonly Name[], make: () => Value) {
    this.#names = names;
    this.#make = make;
    // A counter without labels exists from the start, at 0.
    if (names.length === 0) this.at({} as Record<Name, string>);
  }

  at(values: Readonly<Record<Name, string>>): Value {
    const key = this.#names.map((name) => values[name]).join("\n");
    const known = this.#series.get(key);
    if (known !== undefined) return known.value;
    if (this.#names.length > 0 && this.#series.size >= MAX_SERIES) return this.#other();
    return this.#add(key, (name) => values[name]);
  }

  *[Symbol.iterator](): Iterator<{ readonly labels: Labels; readonly value: Value }> {
    yield* this.#series.values();
  }

  #other(): Value {
    const key = this.#names.map(() => "other").join("\n");
    return this.#series.get(key)?.value ?? this.#add(key, () => "other");
  }

  #add(key: string, valueOf: (name: Name) => string): Value {
    const value = this.#make();
    this.#series.set(key, { labels: Object.fromEntries(this.#names.map((name) => [name, valueOf(name)])), value });
    return value;
  }
}

/** Counts events; `name` ends in `_total`. */
export class Counter<Name extends string = never> implements MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type = "counter";
  readonly #series: SeriesMap<Name, { count: number }>;

  constructor({ name, help, labels = [] }: InstrumentOptions<Name>) {
    this.name = name;
    this.help = help;
    this.#series = new SeriesMap(labels, () => ({ count: 0 }));
  }

  /** Adds `amount` (≥ 0, default 1) to the series of these labels. */
  add(labels: Readonly<Record<Name, string>>, amount = 1): void {
    this.#series.at(labels).count += amount;
  }

  *samples(): Iterable<MetricSample> {
    for (const { labels, value } of this.#series) yield { labels, value: value.count };
  }
}

interface Distribution {
  readonly counts: number[];
  sum: number;
  count: number;
}

/** Counts values by bucket. */
export class Histogram<Name extends string = never> implements MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type = "histogram";
  readonly #bounds: readonly number[];
  readonly #series: SeriesMap<Name, Distribution>;

  /** `bounds`: ascending upper ends of the buckets; `+Inf` is added. */
  constructor({ name, help, labels = [], bounds }: InstrumentOptions<Name> & { readonly bounds: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.#series = new SeriesMap(labels, () => ({ counts: bounds.map(() => 0), sum: 0, count: 0 }));
  }

  /** Adds a value, in the unit that the name states. */
  observe(labels: Readonly<Record<Name, string>>, value: number): void {
    const series = this.#series.at(labels);
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    if (bucket >= 0) series.counts[bucket]!++;
    series.sum += value;
    series.count++;
  }

  *samples(): Iterable<MetricSample> {
    for (const { labels, value: { counts, sum, count } } of this.#series) {
      let below = 0;
      for (const [i, bound] of this.#bounds.entries()) {
        below += counts[i]!;
        yield { labels: { ...labels, le: String(bound) }, value: below, suffix: "_bucket" };
      }
      yield { labels: { ...labels, le: "+Inf" }, value: count, suffix: "_bucket" };
      yield { labels, value: sum, suffix: "_sum" };
      yield { labels, value: count, suffix: "_count" };
    }
  }
}
