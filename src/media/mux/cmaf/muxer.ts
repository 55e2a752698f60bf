/** Makes segments of fragmented MP4 from a streamed timeline, run by run. */
import type { ChunkBuffers } from "../../../bytes/chunk-buffers.ts";
import { type ByteSource, lenderFor } from "../../../bytes/source.ts";
import { isTurnDue, turnWhenDue } from "../../../bytes/turn.ts";
import { END_SLACK_90K, FaultLedger, HeldUnits } from "../../model/faults.ts";
import { PacketSink } from "../chunks.ts";
import { ReadAhead } from "../../source/read-ahead.ts";
import type { RunBytes, StreamedTimeline } from "../../model/timeline.ts";
import { fragmentBytes, FREE_BYTES, unitBytes } from "./fragment.ts";
import { FragmentSlot, mostFragments, timedFragments } from "./fragment-slot.ts";
import type { CmafStream } from "./init-segment.ts";

/** If the ends of runs are estimates, presentation may exceed the end by this share of the length. */
const ESTIMATE_SLACK = 0.1;

/** Reader of runs. Keeps nothing between reads except the faults it met. */
export class CmafMuxer {
  readonly #streams: readonly CmafStream[];
  readonly #timeline: StreamedTimeline;
  readonly #wanted: ReadonlySet<number>;
  /** Added to all times, so that none is negative, 90 kHz. */
  readonly #offset90k: number;
  /** First byte of each run's slot, with the end as the last entry; null when sizes are not known in advance. */
  readonly firstBytes: Float64Array | null;
  /** Faults in the runs read so far, and the number of this output among those that share them. */
  readonly faults: FaultLedger;
  readonly #output: number;

  /** `offset90k`: at least what any stream is presented early. `bytesOf`: the bytes of the streams in a run. */
  constructor(streams: readonly CmafStream[], timeline: StreamedTimeline, offset90k: number, bytesOf: RunBytes) {
    this.#streams = streams;
    this.#timeline = timeline;
    this.faults = timeline.faults ?? new FaultLedger();
    this.#output = this.faults.newOutput();
    this.#wanted = new Set(streams.map(({ trackIndex }) => trackIndex));
    this.#offset90k = offset90k;
    this.firstBytes = this.#layOut(bytesOf);
  }

  #layOut(bytesOf: RunBytes): Float64Array | null {
    const { runs } = this.#timeline;
    const firstBytes = new Float64Array(runs.length + 1);
    for (const [i, run] of runs.entries()) {
      const { maxAccessUnits, durationPts90k } = run;
      const payloadBytes = bytesOf(run);
      if (payloadBytes === null) return null;
      // No access unit is empty, whatever the index says of their number.
      let left = payloadBytes;
      let units = 0;
      let described = 0;
      for (const stream of this.#streams) {
        const count = Math.min(left, maxAccessUnits[stream.trackIndex] ?? 0);
        left -= count;
        units += count;
        described += count * unitBytes(stream);
      }
      const fragments = mostFragments(payloadBytes, units, timedFragments(durationPts90k));
      const sizeBytes = payloadBytes + described + fragments * fragmentBytes(this.#streams.length) + FREE_BYTES;
      firstBytes[i + 1] = firstBytes[i]! + sizeBytes;
    }
    return firstBytes;
  }

  #endDts90k(run: number): number | null {
    const { runs } = this.#timeline;
    const { startDts90k, durationPts90k, maxPayloadBytes } = runs[run]!;
    const next = runs[run + 1];
    if (maxPayloadBytes === null && next?.startsAnew !== true) return null;
    return next?.startDts90k ?? startDts90k + durationPts90k;
  }

  #fileEnd90k(): number {
    const last = this.#timeline.runs.at(-1);
    if (last === undefined) return Infinity;
    const end90k = last.startPts90k + last.durationPts90k;
    return end90k * (this.firstBytes === null ? 1 + ESTIMATE_SLACK : 1) + END_SLACK_90K;
  }

  /** The fragments of the runs `[first, end)`, whole. `buffers` as in `TsLayout.read`. */
  async *readRuns(
    first: number,
    end: number,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncGenerator<Uint8Array> {
    const reading = this.#timeline.open?.() ?? null;
    const ahead = ReadAhead.of(source, signal);
    const sink = new PacketSink(buffers);
    try {
      yield* this.#writeRuns(sink, reading ?? this.#timeline, first, end, ahead ?? source, signal);
    } finally {
      sink.close();
      ahead?.close();
      reading?.close();
    }
  }

  async *#writeRuns(
    sink: PacketSink,
    reading: Pick<StreamedTimeline, "readRun">,
    first: number,
    end: number,
    source: ByteSource,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const lender = lenderFor(source);
    const tracks = this.#streams.map(({ trackIndex }) => trackIndex);
    for (let run = first; run < end; run++) {
      const slot = new FragmentSlot(
        this.#streams,
        {
          run,
          sizeBytes: this.firstBytes === null ? null : this.firstBytes[run + 1]! - this.firstBytes[run]!,
          timedFragments: timedFragments(this.#timeline.runs[run]!.durationPts90k),
          endDts90k: this.#endDts90k(run),
          fileEnd90k: this.#fileEnd90k(),
          offset90k: this.#offset90k,
        },
        sink,
        lender,
      );
      const held = new HeldUnits();
      for await (const batch of reading.readRun(run, this.#wanted, source, signal, lender ?? undefined, held.count)) {
        for (const sample of batch) slot.push(sample);
        slot.keep();
        yield* sink.take();
        if (isTurnDue()) await turnWhenDue(signal);
      }
      slot.finish();
      this.faults.record(run, held.against(slot.tally, tracks), this.#output);
      do {
        yield* sink.take();
        if (isTurnDue()) await turnWhenDue(signal);
      } while (slot.pad());
    }
  }
}
