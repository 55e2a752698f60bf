/** What a slot counts while its access units pass, so that losses are found. */
import { MISPLACED_90K, type SlotTally } from "../../model/faults.ts";
import type { RunSample } from "../../model/timeline.ts";
import type { Lane } from "./lane.ts";
import type { StreamedSlotOptions } from "./slot-options.ts";

/** Counts of one slot. */
export class SlotCounts {
  readonly #options: StreamedSlotOptions;
  #units = 0;
  #ranBack = 0;
  #beyondEnd = 0;
  #silenced = 0;
  /** Access units that were left out, that came late, and that were written. */
  dropped = 0;
  late = 0;
  written = 0;

  constructor(options: StreamedSlotOptions) {
    this.#options = options;
  }

  /** Takes note of the next access unit of `lane`. */
  watch(lane: Lane, { dts90k, pts90k, isSilence }: RunSample): void {
    const { span } = lane;
    this.#units++;
    if (isSilence) this.#silenced++;
    if (span !== null && dts90k <= span.last90k) this.#ranBack++;
    if (pts90k > (this.#options.fileEnd90k ?? Infinity)) this.#beyondEnd++;
    lane.span = {
      first90k: Math.min(span?.first90k ?? Infinity, dts90k),
      last90k: Math.max(span?.last90k ?? -Infinity, dts90k),
      units: (span?.units ?? 0) + 1,
    };
  }

  /** The counts of a slot with these `lanes`, of which `main` carries the clock. */
  tally(lanes: readonly Lane[], main: Lane): SlotTally {
    const { packets, duration90k, isFirst, startDts90k } = this.#options;
    // Where runs are planned by estimates, some turn out to have nothing.
    const isPlanned = packets !== null && duration90k > 0;
    const { span } = main;
    const off90k = isPlanned && !isFirst && span !== null ? Math.abs(span.first90k - startDts90k) : 0;
    return {
      units: this.#units,
      dropped: this.dropped,
      late: this.late,
      ranBack: this.#ranBack,
      beyondEnd: this.#beyondEnd,
      silenced: this.#silenced,
      lost: this.#units - this.dropped - this.written,
      empty: isPlanned && span === null ? 1 : 0,
      misplaced: off90k > MISPLACED_90K ? 1 : 0,
      spans: lanes.map((lane) => lane.span),
    };
  }
}
