/**
 * Decoding times for tracks whose container stores only presentation times: in decoding order, the i-th access unit of a
 * run gets the i-th smallest presentation time of the run, minus a lag that is the same for the whole file. A run needs
 * no other: since all pictures of a group are shown before those of the next, the i-th smallest of the run continues the
 * sequence of the run before. Where the frame rate varies by more than the lag allows, the time is lowered to the
 * earliest presentation time still to come.
 */
import type { HeldParts } from "../../source/held-parts.ts";
import type { RunSample } from "../../model/timeline.ts";

type Pending = { -readonly [K in keyof RunSample]: RunSample[K] };

/**
 * Most bytes of access units that wait for their times: two of the largest, or 16 at 100 Mbit/s. Units beyond are settled
 * early, and their time may be a little late.
 */
const MAX_HELD_BYTES = 8 * 1024 * 1024;

/** Gives the access units of one track in one run their decoding times. */
export class DecodeTimes {
  readonly #depth: number;
  readonly #lag90k: number;
  #queue: Pending[] = [];
  /** Presentation times received and not yet assigned, ascending. */
  readonly #sorted: number[] = [];
  #last = -1;
  #heldBytes = 0;
  /** How many of `#queue`, from its start, are kept. */
  #kept = 0;
  /** Kept bytes of units that were settled. */
  #settled: Uint8Array[] = [];

  /** `depth`: reordering depth of the track, 0–16; `lag90k` ≥ 0 is subtracted from the times given to `push`. */
  constructor(depth: number, lag90k: number) {
    this.#depth = depth;
    this.#lag90k = lag90k;
  }

  /** Takes the next access unit in decoding order (its `dts90k` is ignored); adds to `out` those that are settled. */
  push(sample: Pending, out: RunSample[]): void {
    this.#queue.push(sample);
    let at = this.#sorted.length;
    while (at > 0 && this.#sorted[at - 1]! > sample.pts90k) at--;
    this.#sorted.splice(at, 0, sample.pts90k);
    this.#heldBytes += sample.data.length;
    while (this.#queue.length > this.#depth || this.#heldBytes > MAX_HELD_BYTES) out.push(this.#settle());
  }

  /** Drops the bytes kept of settled units: their user holds them, or is done with them. */
  dropSettled(held: HeldParts): void {
    for (const data of this.#settled) held.drop(data);
    this.#settled = [];
  }

  /** Keeps the bytes of waiting units. */
  keep(held: HeldParts): void {
    for (; this.#kept < this.#queue.length; this.#kept++) {
      const sample = this.#queue[this.#kept]!;
      sample.data = held.keep(sample.data);
    }
  }

  /** The run is over: settles the rest. */
  flush(out: RunSample[]): void {
    while (this.#queue.length > 0) out.push(this.#settle());
  }

  #settle(): RunSample {
    let dts = this.#sorted.shift()! - this.#lag90k;
    // No later access unit than those within the reordering depth can be shown earlier.
    for (let k = 0; k < this.#queue.length; k++) dts = Math.min(dts, this.#queue[k]!.pts90k - k);
    const sample = this.#queue.shift()!;
    this.#heldBytes -= sample.data.length;
    if (this.#kept > 0) {
      this.#kept--;
      this.#settled.push(sample.data);
    }
    dts = Math.max(dts, this.#last + 1);
    this.#last = dts;
    sample.dts90k = dts;
    // Only damaged files get here: a picture shown before it is decoded, or two at the same time.
    if (sample.pts90k < dts) sample.pts90k = dts;
    return sample;
  }
}
