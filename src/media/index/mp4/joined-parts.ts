/** Presents consecutive films in one file, each with a clock of its own, as one. */
import { FaultLedger } from "../../model/faults.ts";
import type { IndexWork } from "../../source/work.ts";
import { runsOfTables } from "../../transcode/tabled-runs.ts";
import { PartSource } from "../../source/part-source.ts";
import type { MediaIndex, StreamedRun, StreamedTimeline } from "../../model/timeline.ts";
import type { Codec, Track } from "../../model/types.ts";

/** One film of the file. */
export interface FilePart {
  /** Where it begins in the file. */
  readonly offset: number;
  /** Its index, as if it were a file of its own. */
  readonly index: MediaIndex;
}

/**
 * Gap between two films if the first one has an index, 90 kHz (0.1 s): the index covers its pictures, and its sound may
 * last a little longer.
 */
const PAUSE_90K = 9000;

/** Codecs whose frames say all that a decoder needs. */
const DESCRIBES_ITSELF: ReadonlySet<Codec> = new Set(["ac3", "eac3"]);

/** Whether the access units of `b` can continue those of `a`: same codecs with the same data, in the same order. */
export function canFollow(a: readonly Track[], b: readonly Track[]): boolean {
  return a.length === b.length && a.every((track, i) => {
    const other = b[i]!;
    return track.kind === other.kind && track.codec === other.codec && track.sampleRate === other.sampleRate &&
      track.channels === other.channels &&
      // That of AC-3 is a copy of what each frame says.
      (DESCRIBES_ITSELF.has(track.codec) || sameBytes(track.codecPrivate, other.codecPrivate));
  });
}

function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return a === b;
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

interface TimedPart {
  readonly offset: number;
  readonly sizeBytes: number;
  readonly timeline: StreamedTimeline;
  /** Added to its times, 90 kHz. */
  readonly shift90k: number;
  /** Number of its first run. */
  readonly firstRun: number;
}

/** The index of `parts`, at least two, in the file of `work`. */
export async function joinParts(parts: readonly FilePart[], work: IndexWork): Promise<MediaIndex> {
  const timed: TimedPart[] = [];
  const runs: StreamedRun[] = [];
  let shift90k = 0;
  let endMs = 0;
  for (const { offset, index } of parts) {
    const { sourceBytes, tracks } = index;
    const timeline = index.timeline.kind === "streamed"
      ? index.timeline
      : await runsOfTables(tracks, index.timeline, sourceBytes, work);
    timed.push({ offset, sizeBytes: sourceBytes, timeline, shift90k, firstRun: runs.length });
    let end90k = (index.durationMs ?? 0) * 90;
    for (const run of timeline.runs) {
      end90k = Math.max(end90k, run.startPts90k + run.durationPts90k);
      runs.push({
        ...run,
        index: runs.length,
        startsAnew: run.index === 0,
        startPts90k: run.startPts90k + shift90k,
        startDts90k: run.startDts90k + shift90k,
        sourceStart: run.sourceStart + offset,
        sourceEnd: run.sourceEnd + offset,
      });
    }
    endMs = (shift90k + end90k) / 90;
    shift90k += Math.ceil(end90k) + (timeline.runs[0]?.maxPayloadBytes === null ? 0 : PAUSE_90K);
  }
  const { tracks, container } = parts[0]!.index;
  const warnings = new Set(parts.flatMap(({ index }) => index.warnings));
  const timeline: StreamedTimeline = {
    kind: "streamed",
    runs: closed(runs),
    faults: new FaultLedger(undefined, [], timed.flatMap(({ timeline: { faults } }) => faults ?? [])),
    async *readRun(run, wanted, source, signal, _lender, held) {
      const part = timed.findLast(({ firstRun }) => firstRun <= run)!;
      const own = new PartSource(source, part.offset, part.offset + part.sizeBytes);
      for await (const batch of part.timeline.readRun(run - part.firstRun, wanted, own, signal, undefined, held)) {
        yield batch.map((sample) => ({
          ...sample,
          pts90k: sample.pts90k + part.shift90k,
          dts90k: sample.dts90k + part.shift90k,
        }));
      }
    },
  };
  return {
    container,
    tracks,
    sourceBytes: work.sizeBytes,
    durationMs: endMs,
    warnings: [`the file is ${parts.length} films one after the other`, ...warnings],
    timeline,
  };
}

/** Each run ends where the next one begins. */
function closed(runs: readonly StreamedRun[]): StreamedRun[] {
  return runs.map((run, i) => {
    const next = runs[i + 1];
    return next === undefined ? run : { ...run, durationPts90k: Math.max(0, next.startPts90k - run.startPts90k) };
  });
}
