/**
 * Frames of varying size without an index: the start of a run is learned by walking all frames before it, once.
 * Continuous playback costs nothing extra; a seek forward reads everything in between.
 */
import type { AudioFrameSyntax } from "../../../bytes/audio-frames.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { type CountUnits, FaultLedger } from "../../model/faults.ts";
import type { RunSample, StreamedTimeline } from "../../model/timeline.ts";
import { type WalkedFrame, walkFrames } from "./frame-walk.ts";
import { equalRuns, ticksAt, unitsPerRun } from "./runs.ts";

/** Known facts of the file. */
export interface CountedFacts {
  readonly syntax: AudioFrameSyntax;
  /** The first frame of sound. */
  readonly first: WalkedFrame;
  /** Samples of the whole file, given or estimated: any beyond belong to the last run. */
  readonly totalSamples: number;
  readonly sourceBytes: number;
  readonly segmentTargetMs: number | undefined;
}

/** Where a run begins. */
interface Start {
  readonly position: number;
  /** Samples before it. */
  readonly samples: number;
}

/** The timeline: run `i` has the frames that begin in the `i`-th stretch of `runSamples`. */
export function countedTimeline(facts: CountedFacts): StreamedTimeline {
  const { syntax, first, sourceBytes } = facts;
  const { sampleRate, key } = first.frame;
  const unitSamples = first.frame.samples;
  const runSamples = unitSamples * unitsPerRun(facts.totalSamples, unitSamples, sampleRate, facts.segmentTargetMs);
  const count = Math.max(1, Math.ceil(facts.totalSamples / runSamples));
  const runs = equalRuns({
    runs: count,
    runSamples,
    totalSamples: facts.totalSamples,
    sampleRate,
    sourceBytes,
    maxPayloadBytes: null,
    maxAccessUnits: runSamples / unitSamples,
  });
  const faults = new FaultLedger();
  const onGap = (at: number) => faults.gap(at);
  // At most one entry per run; all readers learn the same.
  const starts: Start[] = [{ position: first.position, samples: 0 }];
  async function* walkRun(
    run: number,
    source: ByteSource,
    signal: AbortSignal,
    held?: CountUnits,
  ): AsyncGenerator<readonly RunSample[], void> {
    const start = starts[run]!;
    let samples = start.samples;
    const end = run === count - 1 ? Infinity : (run + 1) * runSamples;
    const walk = walkFrames({ source, syntax, key, position: start.position, isSynced: true, signal, onGap });
    for await (const batch of walk) {
      const out: RunSample[] = [];
      for (const { position, frame, data } of batch) {
        if (samples >= end) {
          starts[run + 1] ??= { position, samples };
          break;
        }
        const pts90k = ticksAt(samples, sampleRate);
        held?.(0, 1);
        out.push({ track: 0, pts90k, dts90k: pts90k, keyframe: true, data });
        samples += frame.samples;
      }
      if (out.length > 0) yield out;
      if (starts[run + 1] !== undefined && samples >= end) return;
    }
    starts[run + 1] ??= { position: sourceBytes, samples: Math.max(samples, end) };
  }
  return {
    kind: "streamed",
    runs,
    faults,
    async *readRun(run, _wanted, source, signal, _lender, held) {
      for (let known = Math.min(run, starts.length - 1); known < run; known = starts.length - 1) {
        for await (const _ of walkRun(known, source, signal));
      }
      if (starts[run]!.position < source.sizeBytes) yield* walkRun(run, source, signal, held);
    },
  };
}
