/**
 * What went wrong between a file and its output. An index that lies, or an oddity of a muxer that we do not know, loses
 * or repeats media without any read failing. So the muxer counts what a sound file never has, and `stat` reports it to
 * the user beyond a bound.
 */

/** Hears of access units that a file has: of which of `MediaIndex.tracks`, and how many. */
export type CountUnits = (track: number, units: number) => void;

/** Access units whose output differs from that of a sound file. */
export interface FaultCounts {
  /** Left out, because their slot is full. */
  readonly dropped: number;
  /** Sent again: their times are those of access units before them. */
  readonly repeated: number;
  /** Places where decoding times of a stream do not grow. */
  readonly ranBack: number;
  /** Sent after the time at which they should be decoded. */
  readonly late: number;
  /** Presented after the end of the file. */
  readonly beyondEnd: number;
  /** Frames of silence in place of sound that could not be decoded. */
  readonly silenced: number;
  /** Runs without a picture (without sound where there are no pictures), though the index says where they are. */
  readonly empty: number;
  /** Places where bytes are missing, or damaged, or stand between packets. */
  readonly gaps: number;
  /** Access units (blocks, where those cannot be told apart) that the reader could not read. */
  readonly unread: number;
  /** Access units that the reader found in the file, and that were neither written nor left out. */
  readonly lost: number;
  /** Stretches of media and HLS segments that begin elsewhere, or last longer or shorter, than was promised. */
  readonly misplaced: number;
  /** Outputs and HLS segments that ended before the length that was promised. */
  readonly short: number;
}

/** Faults that are found elsewhere than in one slot. */
type Elsewhere = "repeated" | "gaps" | "unread" | "short";

/** What a muxer has seen in one slot. */
export interface SlotTally extends Omit<FaultCounts, Elsewhere> {
  /** Access units, including those left out. */
  readonly units: number;
  /** For each stream of the slot: its first and last decoding time, and the number of access units between them. */
  readonly spans: readonly (StreamSpan | null)[];
  /** For each stream of the slot: access units that the file has. Absent: as many as reached the muxer. */
  readonly held?: readonly number[];
}

/** Compares what a reader finds in the file for one slot with what reaches the muxer. */
export class HeldUnits {
  readonly #units = new Map<number, number>();

  /** For `StreamedTimeline.readRun`. */
  readonly count: CountUnits = (track, units) => {
    this.#units.set(track, (this.#units.get(track) ?? 0) + units);
  };

  /** `tally` with what was lost before the muxer. `tracks`: which track each of its streams carries. */
  against(tally: SlotTally, tracks: readonly number[]): SlotTally {
    const reached = tally.spans.map((span) => span?.units ?? 0);
    const held = tracks.map((track, stream) => Math.max(reached[stream]!, this.#units.get(track) ?? 0));
    const missing = held.reduce((sum, units, stream) => sum + units - reached[stream]!, 0);
    return { ...tally, held, lost: tally.lost + missing };
  }
}

/** Where a stream is in time while it is in a slot. */
export interface StreamSpan {
  readonly first90k: number;
  readonly last90k: number;
  readonly units: number;
}

/**
 * Presentation may continue for this long after the end that the container states, 90 kHz (2 s): the container may mean
 * only one track, or round.
 */
export const END_SLACK_90K = 180_000;

/** Slots that are remembered, of all outputs; a layout has about 20,000 at most. Faults in others are not counted. */
const MAX_SLOTS = 32_768;
/** Faults that are not reported: a cut recording has a few at its seams, and one is 20 to 40 ms of media. */
const FREE_FAULTS = 12;
/** The same for media that is missing, if it is more than `FREE_PER_MILLE`: nobody should lose five pictures of a short clip unknowingly. */
const FREE_MISSING = 2;
/** A run begins at most this far from where the index says, 90 kHz (5 s): pictures are far apart, and decoded early. */
export const MISPLACED_90K = 450_000;
/** Empty runs that are not reported, as each is seconds of media: the last one may be beyond what there is. */
const FREE_EMPTY = 1;
/** Misplaced ones that are not reported: one may be the last, whose length is an estimate. */
const FREE_MISPLACED = 1;
/** … and this many per thousand access units. */
const FREE_PER_MILLE = 2;
/** Late ones per thousand that are not reported: a picture every few seconds makes the sound beside it late. */
const FREE_LATE_PER_MILLE = 100;

/** Distance of the slots of two outputs in one map: more than any layout has. */
const OUTPUT_SLOTS = 2 ** 32;

/** No fault. */
export const NO_FAULTS: FaultCounts = {
  dropped: 0,
  repeated: 0,
  ranBack: 0,
  late: 0,
  beyondEnd: 0,
  silenced: 0,
  empty: 0,
  gaps: 0,
  unread: 0,
  lost: 0,
  misplaced: 0,
  short: 0,
};

/** Gaps within this many bytes of a file count as one: readers of different ranges find the same one at different packets. */
const GAP_BYTES = 64 * 1024;

/**
 * Adds up the faults of all readings of one file. Slots are read many times and in any order, and are the same each
 * time, so each counts once in each output.
 */
export class FaultLedger {
  readonly #slots = new Map<number, SlotTally>();
  readonly #gaps = new Set<number>();
  readonly #unread = new Set<number>();
  readonly #misplaced = new Set<number>();
  readonly #short = new Set<string>();
  readonly #known: FaultCounts;
  readonly #knownHeld: readonly number[];
  readonly #parts: readonly FaultLedger[];
  #outputs: number;
  /** The warning for this many slots and gaps. */
  #told: { readonly size: number; readonly warning: string | null } | null = null;

  /**
   * `known`: faults found before any access unit was read, in so many of each stream. `parts`: where readers of parts of
   * the file count what they cannot read.
   */
  constructor(known: FaultCounts = NO_FAULTS, held: readonly number[] = [], parts: readonly FaultLedger[] = []) {
    this.#known = known;
    this.#knownHeld = held;
    this.#parts = parts;
    // What is known beforehand is its first output's.
    this.#outputs = held.length > 0 ? 1 : 0;
  }

  /** Number of an output that has slots of its own. */
  newOutput(): number {
    return this.#outputs++;
  }

  /** Slot `slot` of `output` was muxed to its end. */
  record(slot: number, tally: SlotTally, output = 0): void {
    if (this.#slots.size < MAX_SLOTS) this.#slots.set(output * OUTPUT_SLOTS + slot, tally);
  }

  /** Access units that the file has, for each stream of its first output, as far as that was read. */
  get held(): readonly number[] {
    const held = [...this.#knownHeld];
    for (const [slot, tally] of this.#slots) {
      if (slot >= OUTPUT_SLOTS) continue;
      tally.held?.forEach((units, stream) => held[stream] = (held[stream] ?? 0) + units);
    }
    return held;
  }

  /** Bytes are missing or damaged before the packet or cluster at `at` of the file, or are between it and the one before it. */
  gap(at: number): void {
    if (this.#gaps.size < MAX_SLOTS) this.#gaps.add(Math.floor(at / GAP_BYTES));
  }

  /** What stands at `at` of the file cannot be read. */
  unread(at: number): void {
    if (this.#unread.size < MAX_SLOTS) this.#unread.add(at);
  }

  /** Segment `n` is not as long as the playlist says. */
  misplaced(n: number): void {
    if (this.#misplaced.size < MAX_SLOTS) this.#misplaced.add(n);
  }

  /** The output `name` was shorter than it was promised. */
  short(name: string): void {
    if (this.#short.size < MAX_SLOTS) this.#short.add(name);
  }

  /** All faults so far. */
  get counts(): FaultCounts {
    const sum = {
      ...this.#known,
      gaps: this.#parts.reduce((total, part) => total + part.#gaps.size, this.#gaps.size),
      unread: this.#parts.reduce((total, part) => total + part.#unread.size, this.#unread.size),
      misplaced: this.#misplaced.size,
      short: this.#short.size,
    };
    for (const [slot, tally] of this.#slots) {
      sum.dropped += tally.dropped;
      sum.ranBack += tally.ranBack;
      sum.late += tally.late;
      sum.beyondEnd += tally.beyondEnd;
      sum.silenced += tally.silenced;
      sum.empty += tally.empty;
      sum.lost += tally.lost;
      sum.misplaced += tally.misplaced;
      const before = this.#slots.get(slot - 1);
      if (before !== undefined) sum.repeated += repeatedUnits(before, tally);
    }
    return sum;
  }

  /** The warning for the user; null while there is nothing worth one. */
  get warning(): string | null {
    const size = this.#size;
    if (this.#told?.size !== size) this.#told = { size, warning: this.#describe() };
    return this.#told.warning;
  }

  /** Grows with everything that is counted. */
  get #size(): number {
    const own = this.#slots.size + this.#gaps.size + this.#unread.size + this.#misplaced.size + this.#short.size;
    return this.#parts.reduce((total, part) => total + part.#size, own);
  }

  #describe(): string | null {
    const { counts } = this;
    const known = this.#knownHeld.reduce((sum, one) => sum + one, 0);
    const units = [...this.#slots.values()].reduce((sum, tally) => sum + tally.units, known);
    // A long film hides the loss of one stretch among its many pictures.
    const worst = Math.max(0, ...[...this.#slots.values()].map(({ dropped }) => dropped));
    const texts = Object.entries(TEXTS).flatMap(([kind, text]) => {
      const count = counts[kind as keyof typeof TEXTS];
      const perMille = kind === "late" ? FREE_LATE_PER_MILLE : FREE_PER_MILLE;
      const isMuch = count * 1000 > units * perMille || (kind === "dropped" && worst > FREE_FAULTS);
      const free = kind === "dropped" || kind === "silenced" ? FREE_MISSING : FREE_FAULTS;
      return count > free && isMuch ? [`${count} ${text}`] : [];
    });
    const all = [
      ...(counts.gaps > 0
        ? [`bytes are missing or damaged, or between its packets, at ${counts.gaps} of its places`]
        : []),
      ...(counts.unread > 0 ? [`${counts.unread} of its pictures and frames of sound cannot be read`] : []),
      ...(counts.lost > 0 ? [`${counts.lost} were lost in the engine`] : []),
      ...(counts.short > 0 ? [`${counts.short} of its outputs were shorter than promised`] : []),
      ...(counts.misplaced > FREE_MISPLACED
        ? [`${counts.misplaced} stretches begin seconds from where the playlist says`]
        : []),
      ...(counts.empty > FREE_EMPTY ? [`${counts.empty} stretches of some seconds are empty`] : []),
      ...(texts.length > 0 ? [`of ${units} pictures and frames of sound ${texts.join(", ")}`] : []),
    ];
    return all.length === 0 ? null : `the file does not play as it should: ${all.join("; ")}`;
  }
}

const TEXTS: Readonly<
  Record<Exclude<keyof FaultCounts, Elsewhere | "empty" | "lost" | "misplaced"> | "repeated", string>
> = {
  dropped: "were left out",
  repeated: "came twice",
  ranBack: "had times that run back",
  late: "came late",
  beyondEnd: "were after the end",
  silenced: "are silence, because ffmpeg could not decode the sound",
};

/** How many access units of `tally` lie in the time of the slot before, assuming that they are evenly spread. */
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
