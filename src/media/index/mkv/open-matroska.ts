/**
 * Matroska and WebM (RFC 9559). The index comes from the head and the Cues alone; runs go from cue to cue. Block times
 * are presentation times; `decode-times.ts` derives decoding times.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { TS } from "../../mux/carrier.ts";
import { FaultLedger } from "../../model/faults.ts";
import type { MediaIndex, MediaOpenOptions, StreamedRun } from "../../model/timeline.ts";
import type { Codec } from "../../model/types.ts";
import { DEFAULT_SEGMENT_TARGET_MS } from "../../layout/segment-plan.ts";
import { fontsAt } from "./attached-fonts.ts";
import { cuedSubtitles } from "./cued-subtitles.ts";
import { hasCluster } from "./cluster-walk.ts";
import { withCodecData } from "./codec-data.ts";
import { withFirstFrames } from "./first-frames.ts";
import { frameGrid } from "./frame-grid.ts";
import { withFrameRates } from "./frame-rate.ts";
import { type MatroskaCue, readHead } from "./head.ts";
import { isPictureSubtitle, maxAccessUnits, unpackedBytes } from "./limits.ts";
import { countedMs, planFromCues, type PlannedRun, zeroOf } from "./plan-cues.ts";
import { planByEstimate } from "./plan-estimate.ts";
import { reorderDepth } from "../../codec/sequence-facts.ts";
import { readRun, type RunFacts } from "./run-reader.ts";
import type { MatroskaTrack } from "./tracks.ts";

/** Frame duration assumed for the lag if DefaultDuration is missing, ns: 24 per second. */
const UNKNOWN_FRAME_NS = 1e9 / 24;
/**
 * Longest frame duration used for the lag, ns: playback waits for the lag. Where pictures are further apart, a run's
 * sound comes up to a picture's duration after its time on the clock.
 */
const MAX_LAG_FRAME_NS = 1e9;

const ticks = (ns: number) => Math.round(ns * 9e-5);

/** Index of the track whose keyframes start runs: the default video, else any video, else audio. */
function mainTrack(tracks: readonly MatroskaTrack[]): number {
  let best = 0;
  let bestRank = -1;
  for (const [index, { track }] of tracks.entries()) {
    const kind = track.kind === "video" ? 4 : track.kind === "audio" ? 1 : 0;
    const rank = kind === 0 ? 0 : kind + (track.codec === "other" ? 0 : 2 * kind) + (track.isDefault ? 0.5 : 0);
    if (rank <= bestRank) continue;
    best = index;
    bestRank = rank;
  }
  return best;
}

/** Codecs whose codec data is needed: MPEG TS carries AC-3 without, and most films need no read for it. */
function neededFrames(tracks: readonly MatroskaTrack[], { fragmented }: MediaOpenOptions): ReadonlySet<Codec> {
  const pictures = tracks.map(({ track }) => track).filter(({ kind }) => kind === "video");
  const isFragmented = fragmented ?? (pictures.length > 0 && !pictures.some(TS.carries));
  return new Set(isFragmented ? ["vp9", "ac3", "eac3"] : ["vp9"]);
}

function streamedRuns(
  plan: readonly PlannedRun[],
  tracks: readonly MatroskaTrack[],
  cues: readonly MatroskaCue[],
  shift90k: number,
): StreamedRun[] {
  const subtitles = cuedSubtitles(plan, tracks, cues);
  const stripped = tracks.map((track) => track.strippedHeader?.length ?? 0);
  return plan.map((run, index): StreamedRun => {
    const lengthMs = countedMs(run, index === plan.length - 1);
    const units = tracks.map((track, i) =>
      isPictureSubtitle(track) ? subtitles[index]![i]! : maxAccessUnits(track, lengthMs)
    );
    const restored = units.reduce((sum, count, i) => sum + count * stripped[i]!, 0);
    const startPts90k = ticks(run.timeNs) + shift90k;
    return {
      index,
      startPts90k,
      durationPts90k: ticks(run.durationNs),
      sourceStart: run.anchor.position,
      sourceEnd: run.sourceEnd,
      // Leading pictures are shown before the random access point: at most the lag earlier.
      startDts90k: Math.max(0, startPts90k - 2 * shift90k),
      maxPayloadBytes: run.maxBytes === null ? null : run.maxBytes + restored,
      maxAccessUnits: units,
      unpackedBytes: unpackedBytes(tracks, units),
    };
  });
}

/**
 * Opens a Matroska or WebM file. Rejects with `bad_media` when it is none or has no tracks or clusters, with
 * `unsupported_media` for another kind of EBML document, or as the source does. Reads the head and the Cues; without a
 * frame rate, 128 KiB of the media's start; without Cues, about 1 MiB of it (and of its end, without a Duration).
 */
export async function openMatroska(source: ByteSource, options: MediaOpenOptions): Promise<MediaIndex> {
  const asTold = await readHead(source, options.signal);
  const decodable = await withCodecData(source, asTold, options.signal);
  const tracks = await withFirstFrames(source, asTold, decodable, neededFrames(decodable, options), options.signal);
  const head = { ...asTold, tracks };
  const main = mainTrack(tracks);
  const mediaBytes = head.endsAt ?? source.sizeBytes;
  const warnings = [...head.warnings];
  let plan = planFromCues(
    head,
    tracks[main]!.track,
    mediaBytes,
    (options.segmentTargetMs ?? DEFAULT_SEGMENT_TARGET_MS) * 1e6,
  );
  // The end of the first run is read first of all in any case. Where it is not where the Cues say, others are not either.
  const second = plan?.[1]?.anchor.position;
  if (second !== undefined && !await hasCluster(source, second, options.signal)) {
    plan = null;
    warnings.push("the index of the file (Cues) does not point to its clusters: it is ignored");
  }
  let durationNs = head.durationNs;
  if (plan === null) {
    const media: ByteSource = { sizeBytes: mediaBytes, read: (...range) => source.read(...range) };
    const estimate = await planByEstimate(media, head, tracks[main]!.track, options.signal);
    plan = estimate.runs;
    durationNs = estimate.durationNs;
    warnings.push("the file has no index (Cues): its length in MPEG TS is unknown and seeking is approximate");
  } else if (durationNs === null || zeroOf(plan[0]!.timeNs) > 0) {
    durationNs = plan.at(-1)!.timeNs + plan.at(-1)!.durationNs - zeroOf(plan[0]!.timeNs);
  }
  // Nothing says how large compressed frames become.
  if (tracks.some(({ track: { kind }, isDeflated }) => isDeflated && (kind === "video" || kind === "audio"))) {
    plan = plan.map((run) => ({ ...run, maxBytes: null }));
  }
  const depths = tracks.map(({ track }) => reorderDepth(track.codec, track.codecPrivate));
  const lagNs = Math.max(
    ...tracks.map((track, i) => depths[i]! * Math.min(track.defaultDurationNs ?? UNKNOWN_FRAME_NS, MAX_LAG_FRAME_NS)),
  );
  const shift90k = ticks(lagNs);
  // Runs of unknown size need no count of their pictures.
  const counted = plan.every(({ maxBytes }) => maxBytes === null)
    ? tracks
    : await withFrameRates(source, head, options.signal);
  const runs = streamedRuns(plan, counted, head.cues, shift90k);
  const anchors = plan.map((run) => run.anchor);
  const { track: mainInfo, defaultDurationNs } = tracks[main]!;
  const cueTimes = head.cues.filter((cue) => cue.trackNumber === mainInfo.id).map((cue) => cue.timeNs);
  const faults = new FaultLedger();
  const facts: RunFacts = {
    tracks,
    faults,
    timestampScaleNs: head.timestampScaleNs,
    mainTrack: main,
    depths,
    shift90k,
    endsAt: head.endsAt,
    grid: mainInfo.kind === "video" ? frameGrid(defaultDurationNs, cueTimes) : null,
  };
  return {
    container: "matroska",
    tracks: tracks.map(({ track }) => track),
    durationMs: durationNs / 1e6,
    sourceBytes: mediaBytes,
    warnings,
    zero90k: shift90k,
    ...(head.attachmentsAt === null ? {} : { findFonts: fontsAt(head.attachmentsAt) }),
    timeline: {
      kind: "streamed",
      runs,
      faults,
      readRun: (run, wanted, ...from) =>
        readRun(facts, { start: anchors[run]!, end: anchors[run + 1] ?? null }, wanted, ...from),
    },
  };
}
