/** Reads the access units of a run of fragments, merged by decoding time. */
import type { ByteSource } from "../../../bytes/source.ts";
import { turnWhenDue } from "../../../bytes/turn.ts";
import type { CountUnits, FaultLedger } from "../../model/faults.ts";
import { type ExtentBatch, readExtents } from "../../source/extents.ts";
import type { RunSample, StreamedRun } from "../../model/timeline.ts";
import { scanForFragment } from "./fragment-scan.ts";
import { type FragmentSample, MAX_FRAGMENT_SAMPLES, readFragment } from "./fragment.ts";
import { HeaderReader, type TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";
import { MAX_SAMPLE_BYTES } from "./sample-table.ts";

/** Maps the tracks' own times to the clock of the layout. */
export interface FragmentTimes {
  /** Least shift (≤ 0) of each track: added to decoding times. */
  readonly lagUnits: readonly number[];
  /** Earliest time of the file, seconds: becomes 0. */
  readonly zeroS: number;
}

/** Tracks may have fragments of their own: this many are read together to interleave them. */
const MAX_GROUP = 16;
/** Most access units of fragments read together: each takes some 100 bytes of memory until it is played. */
const MAX_GROUP_SAMPLES = MAX_FRAGMENT_SAMPLES;
/** Most overlap of fragments in time, 90 kHz (0.1 s); anything further back is another clock. */
const MAX_OVERLAP_90K = 9000;

/** Bytes of a box that has nothing in it. */
const LEAST_BOX_BYTES = 8;
/** Damaged places after which a run goes on: each costs a search, and a file may be made of nothing else. */
const MAX_SEARCHES = 64;
/** Boxes that stand between fragments and after them. */
const KNOWN_BOXES: ReadonlySet<string> = new Set(
  "moof mdat sidx ssix styp ftyp moov mfra free skip wide uuid emsg prft meta udta pdin".split(" "),
);

interface PlacedSample {
  readonly sample: FragmentSample;
  readonly pts90k: number;
  readonly dts90k: number;
  /** How long a text is shown; of anything else null. */
  readonly shown90k: number | null;
}

/** Reader of runs. `isGuessed` runs begin at the first fragment with a random access point at or after their start. */
export class FragmentReader {
  readonly #movie: Movie;
  readonly #times: FragmentTimes;
  readonly #isGuessed: boolean;
  readonly #faults: FaultLedger;

  /** `faults`: where it counts what it cannot read. */
  constructor(movie: Movie, times: FragmentTimes, isGuessed: boolean, faults: FaultLedger) {
    this.#movie = movie;
    this.#times = times;
    this.#isGuessed = isGuessed;
    this.#faults = faults;
  }

  /** See `StreamedTimeline.readRun`. */
  async *read(
    run: StreamedRun,
    isFirst: boolean,
    wanted: ReadonlySet<number>,
    source: ByteSource,
    signal: AbortSignal,
    held: CountUnits = () => {},
  ): AsyncGenerator<readonly RunSample[]> {
    const reader = new HeaderReader(source, signal);
    const clocks = new Map<number, number>();
    const latest = new Map<number, number>();
    let offset: number | null = run.sourceStart;
    let started = !this.#isGuessed || isFirst;
    if (!started) offset = await scanForFragment(source, run.sourceStart, signal);
    let group: FragmentSample[] = [];
    let grouped = 0;
    let before: TopLevelBox | null = null;
    let searches = 0;
    while (offset !== null) {
      if (!this.#isGuessed && offset >= run.sourceEnd) break;
      await turnWhenDue(signal);
      const box: TopLevelBox | null = await reader.boxAt(offset);
      if (!await isBoxOfFile(reader, box, offset, source.sizeBytes)) {
        // If bytes were lost in the box before, the next fragment begins inside of it.
        const from: number = before === null ? offset + 1 : before.offset + before.headerBytes;
        const next = ++searches > MAX_SEARCHES
          ? null
          : await scanForFragment(source, from, signal, this.#isGuessed ? Infinity : run.sourceEnd - from);
        if (next !== null || !isPrintable(box)) this.#faults.gap(offset);
        offset = next;
        before = null;
        continue;
      }
      if (box === null) break;
      before = box;
      offset = box.end;
      if (box.type !== "moof") continue;
      const samples = readFragment(await reader.load(box), box.offset, this.#movie, source.sizeBytes);
      if (this.#isGuessed && startsWithKeyframe(samples, this.#movie)) {
        if (started && box.offset >= run.sourceEnd) break;
        started = true;
      }
      if (!started) continue;
      for (const sample of samples) {
        if (!wanted.has(sample.track)) continue;
        group.push(sample);
        if (!isReadable(sample, source.sizeBytes)) this.#faults.unread(sample.offset);
        else if (sample.sizeBytes > 0) held(sample.track, 1);
      }
      grouped++;
      const isIncomplete = [...wanted].some((track) => !group.some((sample) => sample.track === track));
      if (isIncomplete && grouped < MAX_GROUP && group.length < MAX_GROUP_SAMPLES) continue;
      await turnWhenDue(signal);
      yield* this.#load(this.#place(group, run, clocks, latest), source, signal);
      group = [];
      grouped = 0;
    }
    if (group.length > 0) yield* this.#load(this.#place(group, run, clocks, latest), source, signal);
  }

  /** Times and order. Fragments without a time continue where their track was, at first the run's start. */
  #place(
    samples: readonly FragmentSample[],
    run: StreamedRun,
    clocks: Map<number, number>,
    latest: Map<number, number>,
  ): PlacedSample[] {
    const placed = samples.map((sample): PlacedSample => {
      const { timescale, shiftS, track } = this.#movie.tracks[sample.track]!;
      const offsetS = shiftS - this.#times.zeroS;
      const lag = this.#times.lagUnits[sample.track]!;
      const startUnits = (run.startDts90k / 90000 - offsetS) * timescale - lag;
      const units = sample.dtsUnits ?? clocks.get(sample.track) ?? startUnits;
      clocks.set(sample.track, units + sample.durationUnits);
      const told90k = Math.round(((units + lag) / timescale + offsetS) * 90000);
      const last90k = latest.get(sample.track) ?? -Infinity;
      // Muxers round a fragment's start and the durations in it: the next one may begin before the last unit's time.
      const dts90k = told90k <= last90k && told90k > last90k - MAX_OVERLAP_90K ? last90k + 1 : told90k;
      latest.set(sample.track, dts90k);
      const pts90k = Math.round(((units + sample.shiftUnits) / timescale + offsetS) * 90000);
      const shown90k = track.kind === "subtitle" ? Math.round(sample.durationUnits * 90000 / timescale) : null;
      return { sample, dts90k, pts90k: Math.max(pts90k, dts90k), shown90k };
    });
    return placed.sort((a, b) => a.dts90k - b.dts90k || a.sample.track - b.sample.track);
  }

  async *#load(
    placed: readonly PlacedSample[],
    source: ByteSource,
    signal: AbortSignal,
  ): AsyncGenerator<readonly RunSample[]> {
    const whole = placed.filter(({ sample }) => isReadable(sample, source.sizeBytes));
    let next = 0;
    for await (const batch of readExtents(source, whole.map(({ sample }) => sample), signal)) {
      yield batch.data.map((_, i) => toRunSample(whole[next++]!, batch, i));
    }
  }
}

/** Whether the file of `sourceBytes` has the bytes of an access unit, and they are not too many. */
function isReadable({ offset, sizeBytes }: FragmentSample, sourceBytes: number): boolean {
  return sizeBytes <= MAX_SAMPLE_BYTES && offset >= 0 && offset + sizeBytes <= sourceBytes;
}

/**
 * Whether what stands at `offset` is a box, or the end of the file, and not what is left where bytes were lost: its type is
 * known, or a box of known type follows it.
 */
async function isBoxOfFile(
  reader: HeaderReader,
  box: TopLevelBox | null,
  offset: number,
  sourceBytes: number,
): Promise<boolean> {
  if (box === null) return offset + LEAST_BOX_BYTES > sourceBytes;
  if (KNOWN_BOXES.has(box.type)) return true;
  const next = isPrintable(box) ? await reader.boxAt(box.end) : null;
  return next !== null && KNOWN_BOXES.has(next.type);
}

/** Whether the type of a box consists of characters. */
function isPrintable(box: TopLevelBox | null): boolean {
  return box !== null && /^[ -~]{4}$/.test(box.type);
}

function toRunSample({ sample, pts90k, dts90k, shown90k }: PlacedSample, batch: ExtentBatch, i: number): RunSample {
  const from = batch.from[i]!;
  const data = batch.data[i]!.subarray(from, from + sample.sizeBytes);
  const shown = shown90k === null ? {} : { shown90k };
  return { track: sample.track, pts90k, dts90k, keyframe: sample.keyframe, data, ...shown };
}

/** Whether the fragment begins with a random access point of its video (or is audio only). */
function startsWithKeyframe(samples: readonly FragmentSample[], movie: Movie): boolean {
  const hasVideo = movie.tracks.some((entry) => entry.track.kind === "video");
  const first = samples.find((sample) => !hasVideo || movie.tracks[sample.track]!.track.kind === "video");
  return first !== undefined && first.keyframe;
}
