/** Makes byte ranges of the layout of a streamed timeline, slot by slot. */
import type { ChunkBuffers } from "../../../bytes/chunk-buffers.ts";
import { type ByteSource, lenderFor } from "../../../bytes/source.ts";
import { isTurnDue, turnWhenDue } from "../../../bytes/turn.ts";
import { END_SLACK_90K, FaultLedger, HeldUnits } from "../../model/faults.ts";
import { ReadAhead } from "../../source/read-ahead.ts";
import type { RunBytes, StreamedTimeline } from "../../model/timeline.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import { PacketSink } from "../chunks.ts";
import type { Program } from "./program.ts";
import { foreseenPes, slotPackets, subtitlePackets } from "./slot-bound.ts";
import { StreamedSlot } from "./streamed-slot.ts";
import { slotOfPacket } from "./tabled.ts";

/** If the ends of runs are estimates, presentation may exceed the end by this share of the length. */
const ESTIMATE_SLACK = 0.1;

/** Reader of streamed layouts. Keeps nothing between reads except the faults it met. */
export class StreamedMuxer {
  readonly #program: Program;
  readonly #timeline: StreamedTimeline;
  readonly #wanted: ReadonlySet<number>;
  readonly #bytesOf: RunBytes;
  /** First packet of each run's slot, with the end as the last entry; null when sizes are not known in advance. */
  readonly firstPackets: Float64Array | null;
  /** Faults in the slots read so far, and the number of this output among those that share them. */
  readonly faults: FaultLedger;
  readonly #output: number;

  /** `bytesOf`: the bytes of the program's tracks in a run. */
  constructor(program: Program, timeline: StreamedTimeline, bytesOf: RunBytes = (run) => run.maxPayloadBytes) {
    this.#program = program;
    this.#timeline = timeline;
    this.faults = timeline.faults ?? new FaultLedger();
    this.#output = this.faults.newOutput();
    this.#wanted = new Set(program.streams.map((stream) => stream.trackIndex));
    this.#bytesOf = bytesOf;
    this.firstPackets = this.#layOut();
  }

  #layOut(): Float64Array | null {
    const { runs } = this.#timeline;
    const firstPackets = new Float64Array(runs.length + 1);
    for (const [i, run] of runs.entries()) {
      const bytes = this.#bytesOf(run);
      if (bytes === null) return null;
      const packets = slotPackets(this.#program, this.#duration90k(i), bytes, this.#foreseen(i, bytes));
      firstPackets[i + 1] = firstPackets[i]! + packets + this.#subtitlePackets(i, bytes);
    }
    return firstPackets;
  }

  /** What the slot of a run of known size has room for, by stream. */
  #foreseen(run: number, bytes: number) {
    const { maxAccessUnits } = this.#timeline.runs[run]!;
    const units = this.#program.streams.map((stream) => maxAccessUnits[stream.trackIndex] ?? 0);
    return foreseenPes(this.#program, this.#duration90k(run), bytes, units);
  }

  #subtitlePackets(run: number, bytes: number): number {
    const { maxAccessUnits, unpackedBytes = 0 } = this.#timeline.runs[run]!;
    const streams = this.#program.streams.filter(({ track }) => track.kind === "subtitle");
    if (streams.length === 0) return 0;
    const subtitles = streams.reduce((sum, { trackIndex }) => sum + (maxAccessUnits[trackIndex] ?? 0), 0);
    return subtitlePackets(subtitles, bytes, unpackedBytes);
  }

  #duration90k(run: number): number {
    return Math.max(0, this.#endDts90k(run) - this.#timeline.runs[run]!.startDts90k);
  }

  #endDts90k(run: number): number {
    const { startDts90k, durationPts90k } = this.#timeline.runs[run]!;
    return this.#timeline.runs[run + 1]?.startDts90k ?? startDts90k + durationPts90k;
  }

  /** If the ends of runs are estimates, so are their times. */
  #isEndKnown(run: number): boolean {
    const { runs } = this.#timeline;
    return runs[run]!.maxPayloadBytes !== null || runs[run + 1]?.startsAnew === true;
  }

  #fileEnd90k(): number {
    const last = this.#timeline.runs[this.#timeline.runs.length - 1];
    if (last === undefined) return Infinity;
    const end90k = last.startPts90k + last.durationPts90k;
    return end90k * (this.firstPackets === null ? 1 + ESTIMATE_SLACK : 1) + END_SLACK_90K;
  }

  /**
   * The bytes `[start, end)` of the stream; sizes must be known unless `start` is 0 and `end` null. `buffers` as in
   * `TsLayout.read`.
   */
  async *read(
    start: number,
    end: number | null,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncGenerator<Uint8Array> {
    if (this.firstPackets === null) return yield* this.readRuns(0, this.#timeline.runs.length, source, signal, buffers);
    const stop = end ?? this.firstPackets[this.firstPackets.length - 1]! * PACKET_BYTES;
    if (start >= stop) return;
    const first = slotOfPacket(this.firstPackets, Math.floor(start / PACKET_BYTES));
    let position = this.firstPackets[first]! * PACKET_BYTES;
    for await (const bytes of this.readRuns(first, this.#timeline.runs.length, source, signal, buffers)) {
      const from = Math.max(0, start - position);
      const to = Math.min(bytes.length, stop - position);
      if (from < to) yield bytes.subarray(from, to);
      else buffers?.release(bytes);
      position += bytes.length;
      if (position >= stop) return;
    }
  }

  /** The slots of the runs `[first, end)`, whole. `buffers` as in `TsLayout.read`. */
  async *readRuns(
    first: number,
    end: number,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncGenerator<Uint8Array> {
    const reading = this.#timeline.open?.() ?? null;
    const ahead = ReadAhead.of(source, signal);
    try {
      yield* this.#readBy(reading ?? this.#timeline, first, end, ahead ?? source, signal, buffers);
    } finally {
      ahead?.close();
      reading?.close();
    }
  }

  async *#readBy(
    reading: Pick<StreamedTimeline, "readRun">,
    first: number,
    end: number,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncGenerator<Uint8Array> {
    const sink = new PacketSink(buffers);
    try {
      yield* this.#writeRuns(sink, reading, first, end, source, signal);
    } finally {
      sink.close();
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
    const { runs } = this.#timeline;
    const fileEnd90k = this.#fileEnd90k();
    const lender = lenderFor(source);
    const tracks = this.#program.streams.map(({ trackIndex }) => trackIndex);
    for (let i = first; i < end; i++) {
      const run = runs[i]!;
      const packets = this.firstPackets === null ? null : this.firstPackets[i + 1]! - this.firstPackets[i]!;
      const bytes = packets === null ? null : this.#bytesOf(run)!;
      const slot = new StreamedSlot(
        this.#program,
        {
          startDts90k: run.startDts90k,
          duration90k: this.#duration90k(i),
          endDts90k: this.#isEndKnown(i) ? this.#endDts90k(i) : null,
          fileEnd90k,
          packets,
          clockPes: bytes === null ? null : this.#foreseen(i, bytes)[this.#program.pcrStream]!.pes,
          subtitlePackets: bytes === null ? null : this.#subtitlePackets(i, bytes),
          isFirst: i === 0,
          followsClock: i > 0 && this.#isEndKnown(i - 1),
        },
        sink,
        lender,
      );
      const held = new HeldUnits();
      for await (const batch of reading.readRun(i, this.#wanted, source, signal, lender ?? undefined, held.count)) {
        for (const sample of batch) slot.push(sample);
        slot.keep();
        yield* sink.take();
        if (isTurnDue()) await turnWhenDue(signal);
      }
      slot.finish();
      this.faults.record(i, held.against(slot.tally, tracks), this.#output);
      do {
        yield* sink.take();
        if (isTurnDue()) await turnWhenDue(signal);
      } while (slot.pad());
    }
  }
}
