/** Frames of one bit rate: the place of each can be computed, so any run is found at once and has a known size. */
import type { AudioFrameSyntax } from "../../../bytes/audio-frames.ts";
import { FaultLedger } from "../../model/faults.ts";
import type { RunSample, StreamedTimeline } from "../../model/timeline.ts";
import { type WalkedFrame, walkFrames } from "./frame-walk.ts";
import { equalRuns, ticksAt, unitsPerRun } from "./runs.ts";

/** Most distance of a frame from its computed place, bytes: padding comes and goes. */
const PLACE_SLACK_BYTES = 4;
/** A damaged frame may be longer than the others: room for one of the longest of MPEG audio or AC-3, bytes. */
const SPARE_BYTES = 3840;

/** Known facts of the file. */
export interface ConstantFacts {
  readonly syntax: AudioFrameSyntax;
  /** The first frame of sound. */
  readonly first: WalkedFrame;
  readonly frames: number;
  readonly sourceBytes: number;
  readonly segmentTargetMs: number | undefined;
}

/** Mean size of frames like `first`, bytes: padding makes single ones a byte longer. */
export function meanFrameBytes({ frame }: WalkedFrame): number {
  return frame.samples / 8 * (frame.bitRate ?? 0) / frame.sampleRate;
}

/** The timeline: frame `n` is the one that begins nearest to its computed place. */
export function constantTimeline(facts: ConstantFacts): StreamedTimeline {
  const { syntax, first, frames, sourceBytes } = facts;
  const { samples, sampleRate, key } = first.frame;
  const meanBytes = meanFrameBytes(first);
  const perRun = unitsPerRun(frames * samples, samples, sampleRate, facts.segmentTargetMs);
  const runs = equalRuns({
    runs: Math.max(1, Math.ceil(frames / perRun)),
    runSamples: perRun * samples,
    totalSamples: frames * samples,
    sampleRate,
    sourceBytes,
    maxPayloadBytes: Math.ceil(perRun * (meanBytes + 1)) + SPARE_BYTES,
    maxAccessUnits: perRun,
  });
  const { maxPayloadBytes } = runs[0]!;
  const faults = new FaultLedger();
  return {
    kind: "streamed",
    runs,
    faults,
    async *readRun(run, _wanted, source, signal, _lender, held) {
      const end = Math.min(frames, (run + 1) * perRun);
      let last = run * perRun - 1;
      const reckoned = first.position + Math.floor(run * perRun * meanBytes);
      const position = Math.max(first.position, reckoned - PLACE_SLACK_BYTES);
      if (position >= source.sizeBytes) return;
      let bytes = 0;
      const walk = walkFrames({ source, syntax, key, position, isSynced: run === 0, signal });
      for await (const batch of walk) {
        const out: RunSample[] = [];
        for (const { position, frame, data } of batch) {
          const n = Math.round((position - first.position) / meanBytes);
          if (n > last + 1) faults.gap(position);
          if (n >= end) break;
          // Only damage puts two frames in one place, or makes them longer than possible.
          if (n <= last || frame.samples !== samples || bytes + data.length > maxPayloadBytes!) {
            if (n >= run * perRun) faults.unread(position);
            continue;
          }
          held?.(0, 1);
          last = n;
          bytes += data.length;
          const pts90k = ticksAt(n * samples, sampleRate);
          out.push({ track: 0, pts90k, dts90k: pts90k, keyframe: true, data });
        }
        if (out.length > 0) yield out;
        const next = batch.at(-1)!;
        if ((next.position + next.data.length - first.position) / meanBytes + 0.5 >= end) return;
      }
    },
  };
}
