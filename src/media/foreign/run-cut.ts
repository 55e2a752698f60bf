/**
 * Cuts one run out of a program's output. It begins with a unit of the main stream and ends before another; of the other
 * streams it has what is decoded from the one to the other. Programs that began elsewhere mix the streams a little
 * differently, so the place of a unit in the output says nothing.
 */
import type { ForeignUnit } from "./unit-reader.ts";

/** Units of other streams that wait for the main one at most: seconds of several tracks of sound. */
const MAX_HELD = 1024;
/** So long after the next run's beginning units of this run may come, 90 kHz. */
const LATE_90K = 90_000;

/** What the run is. */
export interface RunPlace {
  /** Number of streams. */
  readonly streams: number;
  readonly main: number;
  /** Whether a unit of the main stream begins it; null: it begins with the file. */
  readonly begins: ((unit: ForeignUnit) => boolean) | null;
  /** Whether a unit of the main stream begins the next one. */
  readonly ends: (unit: ForeignUnit) => boolean;
}

/** Takes units in the order of the output, gives those of the run. */
export class RunCut {
  readonly #place: RunPlace;
  #from90k: number;
  #to90k = Infinity;
  /** Decoding time of the newest unit of the main stream. */
  #main90k = -Infinity;
  /** Units of other streams that the main one has not reached. */
  #held: ForeignUnit[] = [];
  #own: ForeignUnit[] = [];
  readonly #rest: ForeignUnit[] = [];
  /** Streams that have come to the next run. */
  readonly #over = new Set<number>();
  #isDone = false;

  constructor(place: RunPlace) {
    this.#place = place;
    this.#from90k = place.begins === null ? -Infinity : Infinity;
  }

  /** Nothing that is pushed from now on belongs to the run. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Takes the next unit of the output. */
  push(unit: ForeignUnit): void {
    if (unit.stream === this.#place.main) this.#pushMain(unit);
    else {
      this.#held.push(unit);
      if (unit.dts90k >= this.#to90k) this.#over.add(unit.stream);
      this.#settle();
    }
    if (this.#over.size === this.#place.streams) this.#isDone = true;
  }

  /** The output has ended. */
  finish(): void {
    this.#main90k = Infinity;
    this.#settle();
    this.#isDone = true;
  }

  /** Units of the run that were not taken yet. */
  take(): ForeignUnit[] {
    return this.#own.splice(0);
  }

  /** Units of what comes after the run, once it is done. */
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
      // The run has not begun.
    } else if (ends(unit)) {
      this.#to90k = unit.dts90k;
      this.#rest.push(unit);
      this.#over.add(main);
    } else this.#own.push(unit);
    this.#settle();
  }

  /** Decides about held units, as far as what is known allows. */
  #settle(): void {
    const held = this.#held;
    this.#held = [];
    for (const [i, unit] of held.entries()) {
      const isTooMany = held.length - i > MAX_HELD;
      if (unit.dts90k >= this.#to90k) this.#rest.push(unit);
      else if (this.#to90k === Infinity && unit.dts90k >= this.#main90k && !isTooMany) this.#held.push(unit);
      // What is earlier than a run that has not begun is dropped with what is earlier than one that has.
      else if (unit.dts90k >= this.#from90k) this.#own.push(unit);
    }
  }
}
