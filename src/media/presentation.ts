/** Turns an index into a `Presentation`: tracks chosen, TS layout and HLS plan over the same slots. */
import { MillraceError } from "../errors.ts";
import { DEFAULT_SEGMENT_TARGET_MS, planCuts, segmentDurations, targetDurationS } from "./hls/plan.ts";
import { PACKET_BYTES } from "../bytes/ts/packet.ts";
import { buildProgram, type Program } from "./mux/ts/program.ts";
import { layOutSlots } from "./mux/ts/slots.ts";
import { StreamedMuxer } from "./mux/ts/streamed.ts";
import { TabledMuxer } from "./mux/ts/tabled.ts";
import { selectTracks } from "./select.ts";
import type { MediaIndex, SampleTable, StreamedTimeline, TabledTimeline } from "./timeline.ts";
import type { HlsPlan, Presentation, PresentationOptions, TsLayout } from "./types.ts";

/** Part of the fingerprint: raise it whenever the bytes of a layout change. */
const MUXER_VERSION = 3;

/** The parts that differ between tabled and streamed timelines. */
interface Layout {
  readonly sizeBytes: number | null;
  readonly starts90k: readonly number[];
  readonly end90k: number;
  /** First byte of each segment and the end; null when unknown. */
  readonly segmentStarts: readonly number[] | null;
  read: TsLayout["read"];
  readSegment: HlsPlan["readSegment"];
}

/** Builds the presentation of `index`. Throws `unsupported_media` or `bad_media`. */
export function presentIndex(index: MediaIndex, options: PresentationOptions): Presentation {
  const { tracks, timeline } = index;
  const usable = (track: number) =>
    timeline.kind === "streamed" ? !timeline.empty?.has(track) : (timeline.tables[track]?.count ?? 0) > 0;
  const advice = options.transcode
    ? index.warnings.map((warning) => `; ${warning}`).join("")
    : ": ask for AAC with transcode_audio=1";
  const selection = selectTracks(tracks, options.preferredAudioLanguage, usable, advice);
  const program = buildProgram(tracks, selection.indexes);
  const target90k = (options.segmentTargetMs ?? DEFAULT_SEGMENT_TARGET_MS) * 90;
  const layout = timeline.kind === "tabled"
    ? tabledLayout(program, timeline, target90k)
    : streamedLayout(program, timeline, target90k);
  const durationMs = index.durationMs ?? (layout.end90k > 0 ? layout.end90k / 90 : null);
  const fingerprint = [
    MUXER_VERSION,
    index.container,
    index.sourceBytes,
    ...selection.indexes,
    ...program.streams.map((stream) => stream.track.codec),
    layout.sizeBytes,
    target90k,
  ]
    .join("-");
  const ts: TsLayout = { sizeBytes: layout.sizeBytes, fingerprint, read: (...range) => layout.read(...range) };
  return {
    container: index.container,
    tracks,
    outputTracks: program.streams.map((stream) => stream.track),
    durationMs,
    bytesPerSecond: durationMs === null || durationMs <= 0 ? null : (index.sourceBytes * 1000) / durationMs,
    warnings: [...index.warnings, ...selection.warnings],
    ts,
    hls: hlsPlan(layout),
  };
}

function hlsPlan(layout: Layout): HlsPlan {
  const { starts90k, segmentStarts } = layout;
  const durationsMs = segmentDurations(starts90k, layout.end90k).map((ticks) => ticks / 90);
  const segments = starts90k.map((start, index) => ({
    index,
    startMs: (start - starts90k[0]!) / 90,
    durationMs: durationsMs[index]!,
  }));
  const check = (n: number) => {
    if (!Number.isInteger(n) || n < 0 || n >= segments.length) throw new MillraceError("not_found", `no segment ${n}`);
  };
  return {
    segments,
    targetDurationS: targetDurationS(durationsMs),
    readSegment(n, ...from) {
      check(n);
      return layout.readSegment(n, ...from);
    },
    segmentBytes(n) {
      check(n);
      return segmentStarts === null ? null : segmentStarts[n + 1]! - segmentStarts[n]!;
    },
  };
}

/** Where a segment may begin: random access points of `table`, by presentation time. */
function cutCandidates(table: SampleTable): { samples: Uint32Array; times: Float64Array } {
  const samples = table.keyframes ?? Uint32Array.from({ length: table.count }, (_, i) => i);
  const times = new Float64Array(samples.length);
  for (const [i, sample] of samples.entries()) {
    times[i] = table.dts90k[sample]! + (table.ptsShift90k === null ? 0 : table.ptsShift90k[sample]!);
  }
  return { samples, times };
}

function tabledLayout(program: Program, timeline: TabledTimeline, target90k: number): Layout {
  const tables = program.streams.map((stream) => timeline.tables[stream.trackIndex]!);
  const main = tables[program.pcrStream]!;
  const { samples, times } = cutCandidates(main);
  const cuts = planCuts(times, target90k, endOf(main));
  // The playlist is as long as the longest track, which need not be the main one.
  const end90k = Math.max(...tables.map(endOf));
  const starts90k = cuts.map((cut) => times[cut]!);
  const cuts90k = cuts.map((cut) => main.dts90k[samples[cut]!]!);
  if (cuts90k.length === 0) {
    cuts90k.push(0);
    starts90k.push(0);
  }
  // What comes before the first random access point, in any track, belongs to the first slot.
  starts90k[0] = tables.reduce((earliest, table) => Math.min(earliest, startOf(table)), starts90k[0]!);
  cuts90k[0] = tables.reduce((earliest, table) => Math.min(earliest, table.dts90k[0]!), cuts90k[0]!);
  const slots = layOutSlots(program, tables, cuts90k);
  const muxer = new TabledMuxer(program, tables, slots);
  const bounds = [...slots.firstPackets].map((packets) => packets * PACKET_BYTES);
  const sizeBytes = bounds[bounds.length - 1]!;
  return {
    sizeBytes,
    starts90k,
    end90k,
    segmentStarts: bounds,
    read: (start, end, ...from) => muxer.read(start, Math.min(end ?? sizeBytes, sizeBytes), ...from),
    readSegment: (n, ...from) => muxer.read(bounds[n]!, bounds[n + 1]!, ...from),
  };
}

/** Reordering spans a few pictures; this is beyond any codec's limit of sixteen. */
const REORDER_SPAN = 64;

/** Earliest presentation time. */
function startOf({ count, dts90k, ptsShift90k }: SampleTable): number {
  let start = Infinity;
  for (let i = 0; i < Math.min(count, REORDER_SPAN); i++) start = Math.min(start, dts90k[i]! + (ptsShift90k?.[i] ?? 0));
  return start;
}

/** End of the last access unit, its duration taken to be that of the one before. */
function endOf(table: SampleTable): number {
  const { count, dts90k, ptsShift90k } = table;
  let end = 0;
  for (let i = Math.max(0, count - REORDER_SPAN); i < count; i++) {
    end = Math.max(end, dts90k[i]! + (ptsShift90k?.[i] ?? 0));
  }
  return end + (count > 1 ? dts90k[count - 1]! - dts90k[count - 2]! : 0);
}

function streamedLayout(program: Program, timeline: StreamedTimeline, target90k: number): Layout {
  const { runs } = timeline;
  const muxer = new StreamedMuxer(program, timeline);
  const last = runs[runs.length - 1];
  const end90k = last === undefined ? 0 : last.startPts90k + last.durationPts90k;
  const cuts = planCuts(runs.map((run) => run.startPts90k), target90k, end90k);
  const { firstPackets } = muxer;
  const segmentStarts = firstPackets === null
    ? null
    : [...cuts, runs.length].map((run) => firstPackets[run]! * PACKET_BYTES);
  return {
    sizeBytes: firstPackets === null ? null : firstPackets[runs.length]! * PACKET_BYTES,
    starts90k: cuts.map((cut) => runs[cut]!.startPts90k),
    end90k,
    segmentStarts,
    read: (...range) => muxer.read(...range),
    readSegment: (n, ...from) => muxer.readRuns(cuts[n]!, cuts[n + 1] ?? runs.length, ...from),
  };
}
