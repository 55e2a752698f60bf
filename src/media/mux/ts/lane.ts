/** One stream of a slot while its access units arrive. */
import type { StreamSpan } from "../../model/faults.ts";
import type { RunSample } from "../../model/timeline.ts";
import type { AccessFlags } from "./access-flags.ts";
import type { AudioPacker, PackedFrames } from "./packed-audio.ts";

/** What waits of a stream, and what was written of it. */
export interface Lane {
  /** Pictures and sound: other streams wait for it. Subtitles stand far apart, and nothing waits for the next one. */
  readonly isAwaited: boolean;
  /** Joins frames before they enter the queue; null if each access unit has its own PES. */
  readonly packer: AudioPacker | null;
  readonly queue: PackedFrames[];
  /** Newest time of all streams when its last access unit came. */
  arrived90k: number;
  /** How many of `queue`, from its start, are kept. */
  kept: number;
  packets: number;
  /** First access unit that did not fit. */
  overflow: RunSample | null;
  readonly flags: AccessFlags;
  /** Times of its access units; null before the first one. */
  span: StreamSpan | null;
}

/** The next access unit of a stream, ready or not. */
export function headOf({ queue, packer }: Lane): Pick<RunSample, "dts90k"> | null {
  return queue[0] ?? packer?.first ?? null;
}
