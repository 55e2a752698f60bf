/** Random access points of a stream in one slot where the container flags none. */
import type { RunSample } from "../../model/timeline.ts";
import type { ElementaryFormat } from "./elementary/format.ts";

/** Believes the container's flags; while there are none, the pictures themselves: without parameter sets none would play. */
export class AccessFlags {
  readonly #format: ElementaryFormat;
  #hasFlags = false;

  /** `format`: of the stream. */
  constructor(format: ElementaryFormat) {
    this.#format = format;
  }

  /** The next access unit, flagged if it is a random access point. */
  of(sample: RunSample): RunSample {
    this.#hasFlags ||= sample.keyframe;
    if (this.#hasFlags || !this.#format.isAccessPoint?.(sample.data)) return sample;
    return { ...sample, keyframe: true };
  }
}
