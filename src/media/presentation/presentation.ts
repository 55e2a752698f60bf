/** Turns an index into a `Presentation`: tracks chosen, TS layout and HLS plan over the same slots. */
import { DEFAULT_SEGMENT_TARGET_MS } from "../layout/segment-plan.ts";
import { buildProgram, type Program } from "../mux/ts/program.ts";
import { START_OFFSET_90K } from "../mux/ts/timing.ts";
import { captionsOf } from "./captions.ts";
import { pictureNotes } from "./picture-notes.ts";
import { carrierOf, FMP4, hasData, requirePictures } from "../mux/carrier.ts";
import { fragmentOffset90k, layOutFragments } from "../layout/fragment-layout.ts";
import { planOfLayout } from "../layout/layout-plan.ts";
import { renditionsOf } from "./renditions.ts";
import { layOutRuns } from "../layout/streamed-layout.ts";
import { runsOfIndex } from "../transcode/tabled-runs.ts";
import { segmentDrawings } from "../subtitles/segment-drawings.ts";
import { segmentTexts } from "../subtitles/segment-texts.ts";
import { selectTracks } from "./select.ts";
import type { IndexWork } from "../source/work.ts";
import { type Layout, layOutTables } from "../layout/tabled-layout.ts";
import { layoutFrom, layoutOfSegments, segmentAt } from "../layout/late-start.ts";
import { longestS, requirePlausible } from "../model/plausible.ts";
import { type MediaIndex, timelineBytes } from "../model/timeline.ts";
import type { HlsPlan, IndexedPresentation, PresentationOptions, TsLayout } from "../model/types.ts";

/** Part of the fingerprint: raise it whenever the bytes of a layout change. */
const MUXER_VERSION = 12;
/** The same for fragmented MP4. */
const FRAGMENT_VERSION = 4;

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
  // The same for all choices of sound, so that texts and other sounds are on the clock of the segments.
  const offset90k = carrier === FMP4 ? fragmentOffset90k(tracks, selection.sounds) : START_OFFSET_90K;
  const isVideo = outputTracks.some(({ kind }) => kind === "video");
  const fragments = carrier === FMP4
    ? layOutFragments(tracks, await runsOfIndex(index, work), selection.indexes, { target90k, offset90k, isVideo })
    : null;
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
  const zero90k = offset90k + (index.zero90k ?? 0);
  const hls: HlsPlan = {
    ...planOfLayout(layout, zero90k, fragments?.form),
    ...segmentTexts(index, layout, offset90k),
    ...segmentDrawings(index, layout, offset90k),
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
    ...captionsOf(index, selection.indexes.find((track) => tracks[track]!.kind === "video")),
    ...renditionsOf(index, selection, carrier, { target90k, offset90k, isVideo }, layout.faults),
    tsFrom(ms) {
      const first = segmentAt(hls, ms);
      const from = layout.segmentStarts?.[first];
      return Promise.resolve(from === undefined ? layoutOfSegments(ts, hls, first) : layoutFrom(ts, from));
    },
  };
}

async function layOutTs(
  { timeline, durationMs }: MediaIndex,
  program: Program,
  target90k: number,
  work: Pick<IndexWork, "spend">,
): Promise<Layout> {
  return timeline.kind === "tabled" ? await layOutTables(program, timeline, target90k, durationMs, work) : layOutRuns(
    program,
    timeline,
    target90k,
    program.streams[program.pcrStream]!.track.kind === "video",
  );
}
