/**
 * The regular times that a constant frame rate had before Matroska rounded them to milliseconds. Players that assume a
 * constant rate treat pictures a millisecond off it as out of order. The grid is used only where the Cues show that the
 * whole file keeps to it.
 */

/** Times `originNs + n × stepNs`. */
export interface FrameGrid {
  readonly originNs: number;
  readonly stepNs: number;
}

/** Frame rates in use; each also times 1000/1001. */
const RATES = [24, 25, 30, 48, 50, 60, 100, 120];
/** How far a DefaultDuration may be from that of its rate, ns: files round it to micro- or nanoseconds. */
const DURATION_TOLERANCE_NS = 1000;
/** Times rounded to milliseconds lie within this range around the true ones, ns (and a little for floats). */
const ROUNDING_NS = 1e6 + 1000;

/** The grid of a track, from its DefaultDuration and its times in the Cues; null where there is none to rely on. */
export function frameGrid(defaultDurationNs: number | null, cueTimesNs: readonly number[]): FrameGrid | null {
  const first = cueTimesNs[0];
  if (defaultDurationNs === null || first === undefined) return null;
  const stepNs = RATES.flatMap((rate) => [1e9 / rate, 1001e6 / rate])
    .find((step) => Math.abs(step - defaultDurationNs) <= DURATION_TOLERANCE_NS);
  if (stepNs === undefined) return null;
  let least = 0;
  let greatest = 0;
  for (const time of cueTimesNs) {
    const off = time - first - Math.round((time - first) / stepNs) * stepNs;
    least = Math.min(least, off);
    greatest = Math.max(greatest, off);
  }
  return greatest - least <= ROUNDING_NS ? { originNs: first + (least + greatest) / 2, stepNs } : null;
}

/** The point of the grid nearest `ns` if within 1 ms, else `ns`: one picture out of line moves no other. */
export function onGrid({ originNs, stepNs }: FrameGrid, ns: number): number {
  const nearest = originNs + Math.round((ns - originNs) / stepNs) * stepNs;
  return Math.abs(nearest - ns) <= 1e6 ? Math.max(0, nearest) : ns;
}
