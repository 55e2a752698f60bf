/**
 * Cuts one run out of a program's output. A run begins with one unit of the main stream and ends before another; it has the
 * units of other streams that are decoded between those two. Programs that began at another place interleave the streams a
 * little differently, so a unit's position in the output does not decide.
 */
import type { ForeignUnit } from "./unit-reader.ts";

/** Most units of other streams that wait for the main one: seconds of several tracks of sound. */
const MAX_HELD = 1024;
/** How late after the beginning of the next run units of this run may come in the output, 90 kHz. */
const LATE_90K = 90_000;

/** Where the run begins and ends. */
export interface RunBounds {
  /** Number of streams. */
  readonly streams: number;
  readonly main: number;
  /** Whether a unit of the main stream begins the run; null: it begins with the file. */
  readonly begins: ((unit: ForeignUnit) => boolean) | null;
  /** Whether a unit of the main stream begins the next run. */
  readonly ends: (unit: ForeignUnit) => boolean;
}

/** Takes units in the order of the output and returns those of the run. */
export class RunCut {
  readonly #place: RunBounds;
  #from90k: number;
  #to90k = Infinity;
  /** Decoding time of the newest unit of the main stream. */
  #main90k = -Infinity;
  /** Units of other streams that are later than the main stream has come. */
  #held: ForeignUnit[] = [];
  #own: ForeignUnit[] = [];
  readonly #rest: ForeignUnit[] = [];
  /** Streams that have reached the next run. */
  readonly #over = new Set<number>();
  #isDone = false;

  constructor(place: RunBounds) {
    this.#place = place;
    this.#from90k = place.begins === null ? -Infinity : Infinity;
  }

  /** Whether no further unit can belong to the run. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Adds the next unit of the output. */
  push(unit: ForeignUnit): void {
    if (unit.stream === this.#place.main) this.#pushMain(unit);
    else {
      this.#held.push(unit);
      if (unit.dts90k >= this.#to90k) this.#over.add(unit.stream);
      this.#settle();
    }
    if (this.#over.size === this.#place.streams) this.#isDone = true;
  }

  /** To be called at the end of the output. */
  finish(): void {
    this.#main90k = Infinity;
    this.#settle();
    this.#isDone = true;
  }

  /** Returns the units of the run that were not taken yet. */
  take(): ForeignUnit[] {
    return this.#own.splice(0);
  }

  /** Returns the units after the run, once it is done. */
  rest(): ForeignUnit[] {
    return this.#rest;
  }

  #pushMain(unit: ForeignUnit): void {
    const { begins, ends, main } = this.#place;
    if (this.#to90k < Infinity) {
      this.#rest.push(unit);
      if (unit.dts90k >= this.#to90k + LATE_90K) this.#isDone = true;
      return;
    }
    if (this.#from90k === Infinity && begins!(unit)) this.#from90k = unit.dts90k;
    this.#main90k = unit.dts90k;
    if (this.#from90k === Infinity) {
      // The run has not begun yet.
    } else if (ends(unit)) {
      this.#to90k = unit.dts90k;
      this.#rest.push(unit);
      this.#over.add(main);
    } else this.#own.push(unit);
    this.#settle();
  }

  /** Decides which held units belong to the run, as far as that is known. */
  #settle(): void {
    const held = this.#held;
    this.#held = [];
    for (const [i, unit] of held.entries()) {
      const isTooMany = held.length - i > MAX_HELD;
      if (unit.dts90k >= this.#to90k) this.#rest.push(unit);
      else if (this.#to90k === Infinity && unit.dts90k >= this.#main90k && !isTooMany) this.#held.push(unit);
      // Units before the run are dropped, whether or not the run has begun.
      else if (unit.dts90k >= this.#from90k) this.#own.push(unit);
    }
  }
}
