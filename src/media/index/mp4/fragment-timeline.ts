/**
 * Fragmented MP4 as a streamed timeline: `sidx` or `mfra` say where runs are; their access units are read from the
 * `moof` boxes on the way. Without an index, runs are guessed by bytes and begin at the next fragment.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import type { MediaIndex, StreamedRun, StreamedTimeline } from "../../timeline.ts";
import { type FragmentPoint, pointsFromMfra, pointsFromSidx } from "./fragment-index.ts";
import { readFragment } from "./fragment.ts";
import { FragmentReader, type FragmentTimes } from "./fragment-reader.ts";
import { lastFragmentEndS } from "./last-fragment.ts";
import type { HeaderReader, TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Index points closer than this are merged: each run costs tables, clock and rounding in its slot, 30 KB or so. */
const MIN_RUN_S = 2;
/** Guessed runs. */
const GUESSED_RUN_S = 5;
/** Bounds what a hostile duration can make of a file without an index. */
const MAX_GUESSED_RUNS = 20_000;
/** The last fragment is looked for within this many times the size of the first. */
const TAIL_FRAGMENTS = 2;
/** Access units may be this much denser in a run than in the first fragment. */
const DENSITY_SLACK = 1.25;
const EXTRA_UNITS = 8;

/** Reads what there is of an index. `moov` is the movie's place. */
export async function openFragments(
  source: ByteSource,
  reader: HeaderReader,
  moov: TopLevelBox,
  movie: Movie,
  signal: AbortSignal,
): Promise<Pick<MediaIndex, "durationMs" | "warnings" | "timeline">> {
  const indexed = await pointsFromSidx(reader, moov.end, movie, source.sizeBytes) ??
    await pointsFromMfra(source, reader, movie, signal);
  const first = await firstFragment(reader, indexed?.[0]?.offset ?? moov.end);
  const samples = readFragment(await reader.load(first), first.offset, movie);
  const times = timesOf(movie, samples);
  const facts = factsOf(movie, samples);
  const endS = indexed !== null || movie.durationMs !== null
    ? null
    : await lastFragmentEndS(source, reader, movie, facts.bytes * TAIL_FRAGMENTS, signal);
  const toldS = movie.durationMs !== null ? movie.durationMs / 1000 : endS === null ? null : endS - times.zeroS;
  const points = indexed ?? guessPoints(toldS, first.offset, source.sizeBytes, facts);
  if (indexed !== null) await closeLast(points, reader, movie, facts);
  const runs = toRuns(
    merge(points, indexed === null ? GUESSED_RUN_S : MIN_RUN_S),
    movie,
    times,
    facts,
    indexed !== null,
  );
  const fragments = new FragmentReader(movie, times, indexed === null);
  const timeline: StreamedTimeline = {
    kind: "streamed",
    runs,
    readRun: (run, wanted, from, runSignal) => fragments.read(runs[run]!, run === 0, wanted, from, runSignal),
  };
  const last = runs[runs.length - 1]!;
  const durationMs = movie.durationMs ?? (indexed === null ? null : (last.startPts90k + last.durationPts90k) / 90);
  const warnings = indexed === null ? ["fragmented MP4 without an index: times are estimates"] : [];
  return { durationMs, warnings, timeline };
}

async function firstFragment(reader: HeaderReader, from: number): Promise<TopLevelBox> {
  for (let offset = from, i = 0; i < 1024; i++) {
    const box = await reader.boxAt(offset);
    if (box === null) break;
    if (box.type === "moof") return box;
    offset = box.end;
  }
  throw new MillraceError("bad_media", "a fragmented movie without a fragment");
}

type Samples = ReturnType<typeof readFragment>;

/** Offsets that bring all tracks onto one clock that starts at 0, taken from the first fragment. */
function timesOf(movie: Movie, samples: Samples): FragmentTimes {
  const lagUnits = movie.tracks.map(() => 0);
  const earliestS = movie.tracks.map(() => Infinity);
  for (const { track, shiftUnits } of samples) lagUnits[track] = Math.min(lagUnits[track]!, shiftUnits);
  for (const { track, dtsUnits } of samples) {
    const { timescale, shiftS } = movie.tracks[track]!;
    const timeS = ((dtsUnits ?? 0) + lagUnits[track]!) / timescale + shiftS;
    earliestS[track] = Math.min(earliestS[track]!, timeS);
  }
  const zeroS = Math.min(...earliestS);
  return { lagUnits, zeroS: Number.isFinite(zeroS) ? zeroS : 0 };
}

/** What the first fragment tells of the others. */
interface FragmentFacts {
  /** Access units per second of each track. */
  readonly unitsPerS: readonly number[];
  /** Presentation minus decoding time of the first access unit of the main track, seconds. */
  readonly firstShiftS: number;
  readonly main: number;
  readonly durationS: number;
  readonly bytes: number;
}

function factsOf(movie: Movie, samples: Samples): FragmentFacts {
  const main = Math.max(0, movie.tracks.findIndex((entry) => entry.track.kind === "video"));
  const unitsPerS = movie.tracks.map((entry, track) => {
    const own = samples.filter((sample) => sample.track === track);
    const durationS = own.reduce((sum, sample) => sum + sample.durationUnits, 0) / entry.timescale;
    if (durationS > 0) return own.length / durationS;
    // Not in the first fragment: bounds for any video, and for AAC at 96 kHz.
    return entry.track.kind === "video" ? 120 : entry.track.kind === "audio" ? 100 : 0;
  });
  const mine = samples.filter((sample) => sample.track === main);
  const timescale = movie.tracks[main]?.timescale ?? 1;
  return {
    unitsPerS,
    main,
    firstShiftS: (mine[0]?.shiftUnits ?? 0) / timescale,
    durationS: mine.reduce((sum, sample) => sum + sample.durationUnits, 0) / timescale,
    bytes: samples.reduce((sum, sample) => sum + sample.sizeBytes, 0),
  };
}

/** Equal stretches of the file, as long as the duration (told, or reckoned from the first fragment) suggests. */
function guessPoints(toldS: number | null, from: number, sourceBytes: number, facts: FragmentFacts): FragmentPoint[] {
  const bytes = sourceBytes - from;
  const reckonedS = facts.bytes > 0 ? (facts.durationS * bytes) / facts.bytes : GUESSED_RUN_S;
  const totalS = toldS !== null && toldS > 0 ? toldS : reckonedS;
  const count = Math.max(1, Math.min(MAX_GUESSED_RUNS, Math.floor(totalS / GUESSED_RUN_S)));
  const each = totalS / count;
  return Array.from({ length: count }, (_, i) => ({
    offset: from + Math.floor((bytes * i) / count),
    end: i + 1 === count ? sourceBytes : from + Math.floor((bytes * (i + 1)) / count),
    timeS: i * each,
    durationS: each,
  }));
}

/** The end of the last point of an `mfra` is told by its fragment alone. */
async function closeLast(
  points: FragmentPoint[],
  reader: HeaderReader,
  movie: Movie,
  facts: FragmentFacts,
): Promise<void> {
  const last = points[points.length - 1];
  if (last === undefined || last.durationS !== null) return;
  const box = await reader.boxAt(last.offset);
  const samples = box?.type === "moof" ? readFragment(await reader.load(box), box.offset, movie) : [];
  const durationS = factsOf(movie, samples).durationS;
  points[points.length - 1] = { ...last, durationS: durationS > 0 ? durationS : facts.durationS };
}

function merge(points: readonly FragmentPoint[], leastS: number): FragmentPoint[] {
  const merged: FragmentPoint[] = [];
  for (const point of points) {
    const last = merged[merged.length - 1];
    if (last !== undefined && point.timeS - last.timeS < leastS * 0.99) {
      const durationS = point.timeS + (point.durationS ?? 0) - last.timeS;
      merged[merged.length - 1] = { ...last, end: point.end, durationS };
    } else {
      merged.push(point);
    }
  }
  return merged;
}

function toRuns(
  points: readonly FragmentPoint[],
  movie: Movie,
  times: FragmentTimes,
  facts: FragmentFacts,
  isIndexed: boolean,
): StreamedRun[] {
  const shiftS = (movie.tracks[facts.main]?.shiftS ?? 0) - times.zeroS;
  return points.map((point, index): StreamedRun => {
    const startPts90k = Math.max(0, Math.round((point.timeS + shiftS) * 90000));
    const durationS = Math.max(0, point.durationS ?? 0);
    const bytes = Math.max(0, point.end - point.offset);
    return {
      index,
      startPts90k,
      startDts90k: Math.max(0, startPts90k - Math.round(Math.max(0, facts.firstShiftS) * 90000)),
      durationPts90k: Math.max(0, Math.round(durationS * 90000)),
      sourceStart: point.offset,
      sourceEnd: point.end,
      maxPayloadBytes: isIndexed ? bytes : null,
      maxAccessUnits: facts.unitsPerS.map((rate) => Math.ceil(rate * durationS * DENSITY_SLACK) + EXTRA_UNITS),
    };
  });
}
