/** Turns an index into a `Presentation`: tracks chosen, TS layout and HLS plan over the same slots. */
import { MillraceError } from "../errors.ts";
import { DEFAULT_SEGMENT_TARGET_MS, firstTarget90k, planCuts, segmentDurations, targetDurationS } from "./hls/plan.ts";
import { PACKET_BYTES } from "../bytes/ts/packet.ts";
import { buildProgram, type Program } from "./mux/ts/program.ts";
import { START_OFFSET_90K } from "./mux/ts/timing.ts";
import { StreamedMuxer } from "./mux/ts/streamed.ts";
import { pictureNotes } from "./picture-notes.ts";
import { carrierOf, FMP4, hasData, requirePictures } from "./carrier.ts";
import { layOutFragments } from "./cmaf/layout.ts";
import { segmentTexts } from "./subtitles/segment-texts.ts";
import { selectTracks } from "./select.ts";
import type { IndexWork } from "./index/work.ts";
import { type Layout, layOutTables } from "./tabled-layout.ts";
import { layoutFrom, layoutOfSegments, segmentAt } from "./late-start.ts";
import { longestS, requirePlausible } from "./plausible.ts";
import { type MediaIndex, type StreamedTimeline, timelineBytes } from "./timeline.ts";
import type { FragmentedForm, HlsPlan, IndexedPresentation, PresentationOptions, TsLayout } from "./types.ts";

/** Part of the fingerprint: raise it whenever the bytes of a layout change. */
const MUXER_VERSION = 10;
/** The same for fragmented MP4. */
const FRAGMENT_VERSION = 1;

/**
 * Builds the presentation of `index`, as part of the `work` of reading it. Rejects with `unsupported_media` or
 * `bad_media`.
 */
export async function presentIndex(
  index: MediaIndex,
  options: PresentationOptions,
  work: Pick<IndexWork, "spend">,
): Promise<IndexedPresentation> {
  const { tracks, timeline } = index;
  if (options.fragmented === false) requirePictures(index);
  const carrier = carrierOf(index, options);
  const advice = options.transcode
    ? index.warnings.map((warning) => `; ${warning}`).join("")
    : ": ask for AAC with transcode_audio=1";
  const selection = selectTracks(
    tracks,
    options.preferredAudioLanguage,
    (track) => hasData(index, track),
    advice,
    carrier,
  );
  const outputTracks = selection.indexes.map((track) => tracks[track]!);
  const target90k = (options.segmentTargetMs ?? DEFAULT_SEGMENT_TARGET_MS) * 90;
  const fragments = carrier === FMP4 ? await layOutFragments(index, selection.indexes, target90k, work) : null;
  const layout = fragments ?? await layOutTs(index, buildProgram(tracks, selection.indexes), target90k, work);
  requirePlausible((layout.end90k - (layout.starts90k[0] ?? 0)) / 90_000, index.sourceBytes);
  const told = index.durationMs;
  // The length that the file states is not believed if its bytes cannot last that long.
  const durationMs = told !== null && told <= longestS(index.sourceBytes) * 1000
    ? told
    : layout.end90k > 0
    ? layout.end90k / 90
    : null;
  const fingerprint = [
    MUXER_VERSION,
    index.container,
    index.sourceBytes,
    ...selection.indexes,
    ...outputTracks.map(({ codec }) => codec),
    fragments === null ? layout.sizeBytes : `f${FRAGMENT_VERSION}-${layout.segmentStarts?.at(-1) ?? null}`,
    target90k,
  ]
    .join("-");
  const offset90k = fragments?.offset90k ?? START_OFFSET_90K;
  const hls: HlsPlan = {
    ...hlsPlan(layout, offset90k + (index.zero90k ?? 0), fragments?.form),
    ...segmentTexts(index, layout, offset90k),
  };
  const ts: TsLayout = { sizeBytes: layout.sizeBytes, fingerprint, read: (...range) => layout.read(...range) };
  return {
    container: index.container,
    tracks,
    outputTracks,
    durationMs,
    ...(fragments === null ? {} : { hlsOnly: true }),
    bytesPerSecond: durationMs === null || durationMs <= 0 ? null : (index.sourceBytes * 1000) / durationMs,
    warnings: [
      ...index.warnings,
      ...selection.warnings,
      ...outputTracks.flatMap(pictureNotes),
    ],
    faults: layout.faults,
    indexBytes: timelineBytes(timeline),
    ts,
    hls,
    planHls: () => Promise.resolve(hls),
    tsFrom(ms) {
      const first = segmentAt(hls, ms);
      const from = layout.segmentStarts?.[first];
      return Promise.resolve(from === undefined ? layoutOfSegments(ts, hls, first) : layoutFrom(ts, from));
    },
  };
}

function hlsPlan(layout: Layout, zeroPts90k: number, fragmented?: FragmentedForm): HlsPlan {
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
    zeroPts90k,
    ...(fragmented === undefined ? {} : { fragmented }),
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

async function layOutTs(
  { timeline, durationMs }: MediaIndex,
  program: Program,
  target90k: number,
  work: Pick<IndexWork, "spend">,
): Promise<Layout> {
  return timeline.kind === "tabled"
    ? await layOutTables(program, timeline, target90k, durationMs, work)
    : streamedLayout(program, timeline, target90k);
}

function streamedLayout(program: Program, timeline: StreamedTimeline, target90k: number): Layout {
  const { runs } = timeline;
  const muxer = new StreamedMuxer(program, timeline);
  const last = runs[runs.length - 1];
  const end90k = last === undefined ? 0 : last.startPts90k + last.durationPts90k;
  const isVideo = program.streams[program.pcrStream]!.track.kind === "video";
  const starts90k = runs.map((run) => run.startPts90k);
  const cuts = planCuts(starts90k, target90k, end90k, firstTarget90k(target90k, isVideo));
  const runsOf = (n: number): readonly [number, number] => [cuts[n]!, cuts[n + 1] ?? runs.length];
  const { firstPackets } = muxer;
  const segmentStarts = firstPackets === null
    ? null
    : [...cuts, runs.length].map((run) => firstPackets[run]! * PACKET_BYTES);
  return {
    sizeBytes: firstPackets === null ? null : firstPackets[runs.length]! * PACKET_BYTES,
    starts90k: cuts.map((cut) => starts90k[cut]!),
    end90k,
    segmentStarts,
    runsOf,
    faults: muxer.faults,
    read: (...range) => muxer.read(...range),
    readSegment: (n, ...from) => muxer.readRuns(...runsOf(n), ...from),
  };
}
