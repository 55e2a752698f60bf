/** Makes byte ranges of the layout of a streamed timeline, slot by slot. */
import type { ChunkBuffers } from "../../../bytes/chunk-buffers.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { isTurnDue, turnWhenDue } from "../../../bytes/turn.ts";
import { CountedReads } from "../../source/counted-reads.ts";
import type { StreamedTimeline } from "../../timeline.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import { PacketSink } from "./chunks.ts";
import type { Program } from "./program.ts";
import { slotPackets, StreamedSlot } from "./streamed-slot.ts";
import { slotOfPacket } from "./tabled.ts";

/** Reader of streamed layouts. Stateless between reads. */
export class StreamedMuxer {
  private readonly program: Program;
  private readonly timeline: StreamedTimeline;
  private readonly wanted: ReadonlySet<number>;
  /** First packet of each run's slot and, last, of the end; null when sizes are not known in advance. */
  readonly firstPackets: Float64Array | null;

  constructor(program: Program, timeline: StreamedTimeline) {
    this.program = program;
    this.timeline = timeline;
    this.wanted = new Set(program.streams.map((stream) => stream.trackIndex));
    this.firstPackets = this.layOut();
  }

  private layOut(): Float64Array | null {
    const { runs } = this.timeline;
    const firstPackets = new Float64Array(runs.length + 1);
    for (const [i, run] of runs.entries()) {
      if (run.maxPayloadBytes === null) return null;
      const units = this.program.streams.map((stream) => run.maxAccessUnits[stream.trackIndex] ?? 0);
      const packets = slotPackets(
        this.program,
        Math.max(0, this.endDts90k(i) - run.startDts90k),
        run.maxPayloadBytes,
        units,
      );
      firstPackets[i + 1] = firstPackets[i]! + packets;
    }
    return firstPackets;
  }

  private endDts90k(run: number): number {
    const { startDts90k, durationPts90k } = this.timeline.runs[run]!;
    return this.timeline.runs[run + 1]?.startDts90k ?? startDts90k + durationPts90k;
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
    if (this.firstPackets === null) return yield* this.readRuns(0, this.timeline.runs.length, source, signal, buffers);
    const stop = end ?? this.firstPackets[this.firstPackets.length - 1]! * PACKET_BYTES;
    if (start >= stop) return;
    const first = slotOfPacket(this.firstPackets, Math.floor(start / PACKET_BYTES));
    let position = this.firstPackets[first]! * PACKET_BYTES;
    for await (const bytes of this.readRuns(first, this.timeline.runs.length, source, signal, buffers)) {
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
    const { runs } = this.timeline;
    const sink = new PacketSink(buffers);
    const counted = this.timeline.keepsNoBytes && source.release ? new CountedReads(source) : null;
    for (let i = first; i < end; i++) {
      const run = runs[i]!;
      const packets = this.firstPackets === null ? null : this.firstPackets[i + 1]! - this.firstPackets[i]!;
      const slot = new StreamedSlot(
        this.program,
        {
          startDts90k: run.startDts90k,
          duration90k: this.endDts90k(i) - run.startDts90k,
          // Where the ends of runs are estimates, so are their times.
          endDts90k: run.maxPayloadBytes === null ? null : this.endDts90k(i),
          packets,
          isFirst: i === 0,
        },
        sink,
      );
      for await (const batch of this.timeline.readRun(i, this.wanted, counted ?? source, signal)) {
        for (const sample of batch) slot.push(sample);
        slot.detach();
        yield* sink.take();
        if (isTurnDue()) await turnWhenDue(signal);
      }
      slot.finish();
      counted?.releaseAll();
      do {
        yield* sink.take();
        if (isTurnDue()) await turnWhenDue(signal);
      } while (slot.pad());
    }
    sink.close();
  }
}
