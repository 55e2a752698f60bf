/**
 * Fragmented MP4 as a streamed timeline: `sidx` or `mfra` say where runs are; the access units are read from the `moof`
 * boxes during playback. Without an index, runs are guessed by byte position and begin at the next fragment.
 */
import { FaultLedger } from "../../model/faults.ts";
import type { StreamedRun, StreamedTimeline } from "../../model/timeline.ts";
import { MAX_SEGMENTS } from "../../layout/segment-plan.ts";
import { longestS } from "../../model/plausible.ts";
import type { IndexWork } from "../../source/work.ts";
import { type FragmentPoint, pointsFromMfra, pointsFromSidx } from "./fragment-index.ts";
import { readFragment } from "./fragment.ts";
import { isTrustworthy } from "./fragment-trust.ts";
import { FragmentReader, type FragmentTimes } from "./fragment-reader.ts";
import { lastFragmentEndS } from "./last-fragment.ts";
import type { HeaderReader, TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Index points closer than this are merged: tables, clock and rounding cost each run about 12 KB in its slot. */
const MIN_RUN_S = 2;
/** Runs with fewer bytes than this are longer, up to an HLS segment: those 12 KB would be more than a few hundredths of them. */
const LIGHT_RUN_BYTES = 192 * 1024;
/** Boxes between the movie box and the first fragment. */
const MAX_BOXES = 1024;
/** Boxes and bytes from the first fragment on to search for tracks. */
const OPENING_BOXES = 16;
const OPENING_BYTES = 2 * 1024 * 1024;
/** Length of guessed runs. */
const GUESSED_RUN_S = 5;
/** Most guessed runs, so that a hostile duration cannot make more of a file without an index. */
const MAX_GUESSED_RUNS = 20_000;
/** The last fragment is searched within this many times the size of the first. */
const TAIL_FRAGMENTS = 2;
/**
 * Where tracks alternate, a run may hold one extra fragment's access units, and they may be this much denser than in the
 * first fragment.
 */
const DENSITY_SLACK = 1.1;
const EXTRA_UNITS = 4;
/** A rate is inferred from the last fragment if it has at least so many access units of a track and the rate is at most this per second. */
const LEAST_UNITS = 8;
const MAX_UNITS_PER_S = 300;
/** Least pictures per second for which slots have room, even if both fragments have fewer. */
const LEAST_FRAME_RATE = 25;

/** Where the fragments of a file are. */
export interface FragmentPlaces {
  readonly first: TopLevelBox;
  /** From the file's own index; null if it has none that can be trusted. */
  readonly indexed: FragmentPoint[] | null;
  /** Time of the movie's clock that becomes 0, s; null: that of the first fragment. */
  readonly startS: number | null;
}

/** Reads the index after the movie box, which ends at `from`, or the one at the end. */
export async function readFragmentIndex(
  work: IndexWork,
  reader: HeaderReader,
  from: number,
  first: TopLevelBox,
  movie: Movie,
): Promise<FragmentPoint[] | null> {
  const kinds = [
    () => pointsFromSidx(reader, from, movie, work.sizeBytes),
    () => pointsFromMfra(work, reader, movie),
  ];
  for (const read of kinds) {
    const points = await read();
    if (points === null || !await isTrustworthy(points, work, reader, movie)) continue;
    // It may name the fragments of one track only, while those of another come first.
    points[0] = { ...points[0]!, offset: Math.min(first.offset, points[0]!.offset) };
    return points;
  }
  return null;
}

/** What `openFragments` returns. */
export interface OpenedFragments {
  readonly durationMs: number | null;
  readonly warnings: readonly string[];
  readonly timeline: StreamedTimeline;
  /** Duration of the file if all of it is like the first fragment. */
  readonly likelyMs: number;
}

/**
 * The timeline of fragments. Reads the first one, and where there is no index, the last. `segmentTargetS` is how long an
 * HLS segment should be.
 */
export async function openFragments(
  work: IndexWork,
  reader: HeaderReader,
  { first, indexed, startS }: FragmentPlaces,
  movie: Movie,
  segmentTargetS: number,
): Promise<OpenedFragments> {
  const samples = await readOpening(work, reader, first, movie);
  const times = timesOf(movie, samples, startS);
  let facts = factsOf(movie, samples);
  // If the movie box has access units of its own, its duration is theirs alone.
  const movieMs = startS === null ? movie.durationMs : null;
  const endS = indexed !== null || movieMs !== null
    ? null
    : await lastFragmentEndS(work, reader, movie, facts.bytes * TAIL_FRAGMENTS);
  const toldS = movieMs !== null ? movieMs / 1000 : endS === null ? null : endS - times.zeroS;
  const beginS = startS === null ? 0 : firstTimeS(movie, samples, times);
  const points = indexed ?? guessPoints(toldS, beginS, first.offset, work.sizeBytes, facts);
  if (indexed !== null) {
    await closeLast(points, reader, movie, facts, work.sizeBytes);
    const box = await firstFragment(reader, points[points.length - 1]!.offset);
    if (box !== null) facts = atLeastAsDense(facts, movie, await readOpening(work, reader, box, movie));
  }
  const runs = toRuns(
    merge(points, indexed === null ? GUESSED_RUN_S : leastRunS(points), segmentTargetS),
    movie,
    times,
    facts,
    indexed !== null,
  );
  const faults = new FaultLedger();
  const fragments = new FragmentReader(movie, times, indexed === null, faults);
  const timeline: StreamedTimeline = {
    kind: "streamed",
    runs,
    faults,
    readRun: (run, wanted, from, runSignal, _lender, held) =>
      fragments.read(runs[run]!, run === 0, wanted, from, runSignal, held),
  };
  const last = runs[runs.length - 1]!;
  const durationMs = movieMs ?? (indexed === null ? null : (last.startPts90k + last.durationPts90k) / 90);
  const warnings = indexed === null ? ["fragmented MP4 without an index: times are estimates"] : [];
  return { durationMs, warnings, timeline, likelyMs: likelyS(work.sizeBytes - first.offset, facts) * 1000 };
}

/**
 * The access units of the first fragment, and of later ones while tracks are missing: the earliest time of all becomes 0,
 * and tracks may have fragments of their own.
 */
async function readOpening(work: IndexWork, reader: HeaderReader, first: TopLevelBox, movie: Movie): Promise<Samples> {
  const samples: Samples = [];
  const missing = new Set(movie.tracks.keys());
  let box: TopLevelBox | null = first;
  for (let i = 0; box !== null && i < OPENING_BOXES && missing.size > 0; i++) {
    if (box.offset > first.end + OPENING_BYTES) break;
    if (box.type === "moof") {
      for (const sample of readFragment(await reader.load(box), box.offset, movie, work.sizeBytes)) {
        samples.push(sample);
        missing.delete(sample.track);
      }
      await work.spend(samples.length);
    }
    box = await reader.boxAt(box.end);
  }
  return samples;
}

/** The first fragment at or after `from`; null when none is near. */
export async function firstFragment(reader: HeaderReader, from: number): Promise<TopLevelBox | null> {
  for (let offset = from, i = 0; i < MAX_BOXES; i++) {
    const box = await reader.boxAt(offset);
    if (box === null || box.type === "moof") return box;
    offset = box.end;
  }
  return null;
}

/** Size of the fragment `first` with its data. */
export async function fragmentBytes(reader: HeaderReader, first: TopLevelBox): Promise<number> {
  const data = await reader.boxAt(first.end);
  return (data?.end ?? first.end) - first.offset;
}

/** Earliest presentation time of the fragment, s. */
function firstTimeS(movie: Movie, samples: Samples, { zeroS }: FragmentTimes): number {
  const times = samples.flatMap(({ track, dtsUnits, shiftUnits }) => {
    const { timescale, shiftS } = movie.tracks[track]!;
    return dtsUnits === null ? [] : [(dtsUnits + shiftUnits) / timescale + shiftS];
  });
  return Math.max(0, times.reduce((least, time) => Math.min(least, time), times[0] ?? zeroS) - zeroS);
}

type Samples = ReturnType<typeof readFragment>;

/** Offsets that bring all tracks onto one clock that starts at 0, taken from the first fragment. */
function timesOf(movie: Movie, samples: Samples, startS: number | null): FragmentTimes {
  const lagUnits = movie.tracks.map(() => 0);
  const earliestS = movie.tracks.map(() => Infinity);
  for (const { track, shiftUnits } of samples) lagUnits[track] = Math.min(lagUnits[track]!, shiftUnits);
  for (const { track, dtsUnits } of samples) {
    const { timescale, shiftS } = movie.tracks[track]!;
    const timeS = ((dtsUnits ?? 0) + lagUnits[track]!) / timescale + shiftS;
    earliestS[track] = Math.min(earliestS[track]!, timeS);
  }
  const zeroS = Math.min(...earliestS);
  return { lagUnits, zeroS: startS ?? (Number.isFinite(zeroS) ? zeroS : 0) };
}

/** What the first fragment implies for the others. */
interface FragmentFacts {
  /** The first fragment lacks some tracks. */
  readonly inTurns: boolean;
  /** Access units per second of each track. */
  readonly unitsPerS: readonly number[];
  /** Presentation minus decoding time of the first access unit of the main track, seconds. */
  readonly firstShiftS: number;
  readonly main: number;
  readonly durationS: number;
  readonly bytes: number;
}

function factsOf(movie: Movie, samples: Samples): FragmentFacts {
  const seen = new Set(samples.map(({ track }) => track));
  // A fragment stores its tracks one after another: a track that reappears, or appears late, has fragments of its own.
  const gaps = samples.filter(({ offset, sizeBytes }, i) => {
    const next = samples[i + 1];
    return next !== undefined && next.track !== samples[i]!.track && next.offset !== offset + sizeBytes;
  });
  const main = Math.max(0, movie.tracks.findIndex((entry) => entry.track.kind === "video"));
  const unitsPerS = movie.tracks.map((entry, track) => {
    const rate = densityOf(movie, samples, track);
    if (rate !== null) return rate;
    // For tracks missing from the first fragment: bounds for any video, and for AAC at 96 kHz.
    return entry.track.kind === "video" ? 120 : entry.track.kind === "audio" ? 100 : 0;
  });
  const mine = samples.filter((sample) => sample.track === main);
  const timescale = movie.tracks[main]?.timescale ?? 1;
  return {
    inTurns: gaps.length > 0 || seen.size < movie.tracks.length,
    unitsPerS,
    main,
    firstShiftS: (mine[0]?.shiftUnits ?? 0) / timescale,
    durationS: mine.reduce((sum, sample) => sum + sample.durationUnits, 0) / timescale,
    bytes: samples.reduce((sum, sample) => sum + sample.sizeBytes, 0),
  };
}

/** Access units per second of `track` in `samples`; null when no rate can be inferred. */
function densityOf(movie: Movie, samples: Samples, track: number, least = 1): number | null {
  const own = samples.filter((sample) => sample.track === track);
  const durationS = own.reduce((sum, sample) => sum + sample.durationUnits, 0) / movie.tracks[track]!.timescale;
  return own.length >= least && durationS > 0 ? own.length / durationS : null;
}

/** `facts` of the first fragment, with the rates of the last one where that has more: those of recordings of screens vary. */
function atLeastAsDense(facts: FragmentFacts, movie: Movie, last: Samples): FragmentFacts {
  const unitsPerS = facts.unitsPerS.map((rate, track) => {
    const least = movie.tracks[track]!.track.kind === "video" ? LEAST_FRAME_RATE : 0;
    return Math.max(rate, least, Math.min(MAX_UNITS_PER_S, densityOf(movie, last, track, LEAST_UNITS) ?? 0));
  });
  return { ...facts, unitsPerS };
}

/** Duration of `bytes` of the file if they are like the first fragment, s. */
function likelyS(bytes: number, facts: FragmentFacts): number {
  return facts.bytes > 0 ? (facts.durationS * bytes) / facts.bytes : GUESSED_RUN_S;
}

/** Equal stretches of the file, as long as the duration (declared, or estimated from the first fragment) suggests. */
function guessPoints(
  toldS: number | null,
  beginS: number,
  from: number,
  sourceBytes: number,
  facts: FragmentFacts,
): FragmentPoint[] {
  const bytes = sourceBytes - from;
  const reckonedS = likelyS(bytes, facts);
  const mostS = longestS(sourceBytes);
  const wholeS = toldS !== null && toldS > beginS && toldS <= mostS ? toldS - beginS : reckonedS;
  const totalS = Math.min(wholeS, mostS);
  const count = Math.max(1, Math.min(MAX_GUESSED_RUNS, Math.floor(totalS / GUESSED_RUN_S)));
  const each = totalS / count;
  return Array.from({ length: count }, (_, i) => ({
    offset: from + Math.floor((bytes * i) / count),
    end: i + 1 === count ? sourceBytes : from + Math.floor((bytes * (i + 1)) / count),
    timeS: beginS + i * each,
    durationS: each,
  }));
}

/** Only the last fragment itself says where the last point of an `mfra` ends. */
async function closeLast(
  points: FragmentPoint[],
  reader: HeaderReader,
  movie: Movie,
  facts: FragmentFacts,
  sourceBytes: number,
): Promise<void> {
  const last = points[points.length - 1];
  if (last === undefined || last.durationS !== null) return;
  const box = await reader.boxAt(last.offset);
  const samples = box?.type === "moof" ? readFragment(await reader.load(box), box.offset, movie, sourceBytes) : [];
  const durationS = factsOf(movie, samples).durationS;
  points[points.length - 1] = { ...last, durationS: durationS > 0 ? durationS : facts.durationS };
}

/** Least length of an indexed run: all slots together must not take more than the media of a film that long. */
function leastRunS(points: readonly FragmentPoint[]): number {
  const [first, last] = [points[0], points[points.length - 1]];
  return Math.max(MIN_RUN_S, first === undefined ? 0 : (last!.timeS - first.timeS) / MAX_SEGMENTS);
}

/** Points at least `leastS` apart, and `targetS` where there are few bytes between them. */
function merge(points: readonly FragmentPoint[], leastS: number, targetS: number): FragmentPoint[] {
  const merged: FragmentPoint[] = [];
  for (const point of points) {
    const last = merged[merged.length - 1];
    const isLight = last !== undefined && point.offset - last.offset < LIGHT_RUN_BYTES;
    if (last !== undefined && point.timeS - last.timeS < (isLight ? Math.max(leastS, targetS) : leastS) * 0.99) {
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
  // Guessed times count from the beginning already.
  const shiftS = isIndexed ? (movie.tracks[facts.main]?.shiftS ?? 0) - times.zeroS : 0;
  const spareS = facts.inTurns || !isIndexed ? facts.durationS : 0;
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
      maxAccessUnits: facts.unitsPerS.map((rate) =>
        Math.ceil(rate * (durationS + spareS) * DENSITY_SLACK) + EXTRA_UNITS
      ),
    };
  });
}
