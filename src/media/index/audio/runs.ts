/** Runs of sound that has no index: stretches of equal time, about as long as HLS segments. */
import { DEFAULT_SEGMENT_TARGET_MS } from "../../layout/segment-plan.ts";
import type { StreamedRun } from "../../model/timeline.ts";

/** Most runs of a file: a week of 5 s. Longer files get longer ones. */
const MAX_RUNS = 120_000;

/** Length of a run in units of `unitSamples`. */
export function unitsPerRun(
  totalSamples: number,
  unitSamples: number,
  sampleRate: number,
  targetMs: number | undefined,
): number {
  const wanted = (targetMs ?? DEFAULT_SEGMENT_TARGET_MS) / 1000 * sampleRate / unitSamples;
  return Math.max(1, Math.round(wanted), Math.ceil(totalSamples / unitSamples / MAX_RUNS));
}

/** Least bytes/s that sound takes: silence takes 150 in FLAC, 50 in Opus. */
const LEAST_BYTES_PER_SECOND = 50;
/** Files may be short and silent, s. */
const SPARE_SECONDS = 60;

/** Most samples that `bytes` bytes can hold: a file that claims more is damaged. */
export function mostSamples(bytes: number, sampleRate: number): number {
  return Math.ceil((SPARE_SECONDS + bytes / LEAST_BYTES_PER_SECOND) * sampleRate);
}

/** Facts shared by all runs of a file. */
export interface RunShape {
  readonly runs: number;
  /** Samples of a run, and of the whole file. */
  readonly runSamples: number;
  readonly totalSamples: number;
  readonly sampleRate: number;
  readonly sourceBytes: number;
  /** Bounds of a run; bytes null: unknown in advance. */
  readonly maxPayloadBytes: number | null;
  readonly maxAccessUnits: number;
}

/** Ticks of 90 kHz at `samples`. */
export function ticksAt(samples: number, sampleRate: number): number {
  return Math.round(samples * 90_000 / sampleRate);
}

/** The runs, one after another in time. */
export function equalRuns(shape: RunShape): StreamedRun[] {
  const { runSamples, totalSamples, sampleRate, sourceBytes, maxPayloadBytes, maxAccessUnits } = shape;
  return Array.from({ length: shape.runs }, (_, index): StreamedRun => {
    const start90k = ticksAt(index * runSamples, sampleRate);
    const end90k = ticksAt(Math.min(totalSamples, (index + 1) * runSamples), sampleRate);
    return {
      index,
      startPts90k: start90k,
      startDts90k: start90k,
      durationPts90k: Math.max(0, end90k - start90k),
      sourceStart: 0,
      sourceEnd: sourceBytes,
      maxPayloadBytes,
      maxAccessUnits: [maxAccessUnits],
    };
  });
}

/**
 * Runs of sound that MPEG TS does not carry: the transcoded sound has sizes of its own. `targetMs`: the wanted length of
 * a run, as `unitsPerRun` takes it.
 */
export function foreignRuns(totalSamples: number, sampleRate: number, sourceBytes: number, targetMs?: number) {
  const runSamples = unitsPerRun(totalSamples, 1, sampleRate, targetMs);
  const count = Math.ceil(totalSamples / runSamples);
  const bounds = { maxPayloadBytes: 0, maxAccessUnits: 0 };
  return {
    runSamples,
    count,
    runs: equalRuns({ runs: count, runSamples, totalSamples, sampleRate, sourceBytes, ...bounds }),
  };
}
