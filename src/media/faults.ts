/**
 * What went wrong between a file and its output. An index that lies, or a muxer's oddity that we do not know, loses or
 * repeats media without any read failing: so the muxer counts what a sound file never has, and `stat` tells the user
 * beyond a bound.
 */

/** Access units that are not in the output as a sound file's would be. */
export interface FaultCounts {
  /** Left out, as their slot is full. */
  readonly dropped: number;
  /** In the output once more: their times are those of access units before them. */
  readonly repeated: number;
  /** Places where decoding times of a stream do not grow. */
  readonly ranBack: number;
  /** Sent after the time at which they should be decoded. */
  readonly late: number;
  /** Presented after the end of the file. */
  readonly beyondEnd: number;
}

/** What a muxer has seen in one slot. */
export interface SlotTally extends Omit<FaultCounts, "repeated"> {
  /** Access units, those left out as well. */
  readonly units: number;
  /** Of each stream that the slot has: its first and its last decoding time, and how many access units are between. */
  readonly spans: readonly (StreamSpan | null)[];
}

/** Where a stream is in time while it is in a slot. */
export interface StreamSpan {
  readonly first90k: number;
  readonly last90k: number;
  readonly units: number;
}

/** Presentation may go on for so long after the end that the container tells, 90 kHz (2 s): it tells of one track, or rounds. */
export const END_SLACK_90K = 180_000;

/** Slots that are remembered; a layout has about 20,000 at most. What is in others is not counted. */
const MAX_SLOTS = 32_768;
/** Faults that nobody is told of: a cut recording has a few at its seams, and one is 20 to 40 ms of media. */
const FREE_FAULTS = 12;
/** … and so many of a thousand access units. */
const FREE_PER_MILLE = 2;
/** Late ones of a thousand that nobody is told of: a picture every few seconds makes the sound beside it late. */
const FREE_LATE_PER_MILLE = 100;

/** No fault. */
export const NO_FAULTS: FaultCounts = { dropped: 0, repeated: 0, ranBack: 0, late: 0, beyondEnd: 0 };

/**
 * Adds up what all readings of one layout have seen. Slots are read many times and in any order and are the same each time,
 * so each counts once.
 */
export class FaultLedger {
  readonly #slots = new Map<number, SlotTally>();
  readonly #known: FaultCounts;
  readonly #knownUnits: number;
  /** What the user is told of so many slots. */
  #told: { readonly slots: number; readonly warning: string | null } | null = null;

  /** `known`: what was found in `units` access units before any was read. */
  constructor(known: FaultCounts = NO_FAULTS, units = 0) {
    this.#known = known;
    this.#knownUnits = units;
  }

  /** Slot `slot` was muxed to its end. */
  record(slot: number, tally: SlotTally): void {
    if (this.#slots.size < MAX_SLOTS) this.#slots.set(slot, tally);
  }

  /** All faults so far. */
  get counts(): FaultCounts {
    const sum = { ...this.#known };
    for (const [slot, tally] of this.#slots) {
      sum.dropped += tally.dropped;
      sum.ranBack += tally.ranBack;
      sum.late += tally.late;
      sum.beyondEnd += tally.beyondEnd;
      const before = this.#slots.get(slot - 1);
      if (before !== undefined) sum.repeated += repeatedUnits(before, tally);
    }
    return sum;
  }

  /** What the user is told; null while there is nothing worth it. */
  get warning(): string | null {
    if (this.#told?.slots !== this.#slots.size) this.#told = { slots: this.#slots.size, warning: this.#describe() };
    return this.#told.warning;
  }

  #describe(): string | null {
    const { counts } = this;
    const units = [...this.#slots.values()].reduce((sum, tally) => sum + tally.units, this.#knownUnits);
    const texts = Object.entries(TEXTS).flatMap(([kind, text]) => {
      const count = counts[kind as keyof FaultCounts];
      const perMille = kind === "late" ? FREE_LATE_PER_MILLE : FREE_PER_MILLE;
      return count > FREE_FAULTS && count * 1000 > units * perMille ? [`${count} ${text}`] : [];
    });
    return texts.length === 0
      ? null
      : `the file does not play as it should: of ${units} pictures and frames of sound ${texts.join(", ")}`;
  }
}

const TEXTS: Readonly<Record<keyof FaultCounts, string>> = {
  dropped: "were left out",
  repeated: "came twice",
  ranBack: "had times that run back",
  late: "came late",
  beyondEnd: "were after the end",
};

/** How many access units of `tally` are in time where those of the slot before already were, by their even spread. */
function repeatedUnits(before: SlotTally, { spans }: SlotTally): number {
  let repeated = 0;
  for (const [stream, span] of spans.entries()) {
    const last90k = before.spans[stream]?.last90k;
    if (span === null || last90k === undefined || span.first90k > last90k) continue;
    const length90k = span.last90k - span.first90k;
    const share = length90k > 0 ? Math.min(1, (last90k - span.first90k) / length90k) : 1;
    repeated += Math.max(1, Math.round(share * span.units));
  }
  return repeated;
}
