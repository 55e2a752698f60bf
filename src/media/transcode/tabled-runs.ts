/** Presents a tabled timeline as runs: the sizes of transcoded AAC are not known in advance, so its layout needs slots. */
import { MAX_SEGMENTS } from "../layout/segment-plan.ts";
import type { IndexWork } from "../source/work.ts";
import { sampleAt, splitCrowded } from "../mux/ts/slots.ts";
import { type Extent, readExtents } from "../source/extents.ts";
import type {
  MediaIndex,
  RunSample,
  SampleTable,
  StreamedRun,
  StreamedTimeline,
  TabledTimeline,
} from "../model/timeline.ts";
import type { Track } from "../model/types.ts";

/** Shortest run, 90 kHz. */
const LEAST_RUN_90K = 180_000;
/** Candidates between two checks of the clock. */
const STRIDE = 4096;

/** Samples `[from, to)` of each track in one run. */
interface Stretch {
  readonly from: Uint32Array;
  readonly to: Uint32Array;
}

/** The runs of `index`, whichever timeline it has. */
export async function runsOfIndex(index: MediaIndex, work: Pick<IndexWork, "spend">): Promise<StreamedTimeline> {
  const { timeline, tracks, sourceBytes } = index;
  return timeline.kind === "streamed" ? timeline : await runsOfTables(tracks, timeline, sourceBytes, work);
}

/** A streamed timeline with the access units of `timeline`. Runs begin at keyframes of the video or, without video, of any track. */
export async function runsOfTables(
  tracks: readonly Track[],
  timeline: TabledTimeline,
  sourceBytes: number,
  work: Pick<IndexWork, "spend">,
): Promise<StreamedTimeline> {
  const { tables } = timeline;
  const cuts = await cutsOf(tables[mainTrack(tracks, tables)] ?? null, tables, work);
  const stretches: Stretch[] = [];
  const runs: StreamedRun[] = [];
  let from = new Uint32Array(tables.length);
  for (const [index, cut] of cuts.entries()) {
    const next = cuts[index + 1];
    const to = Uint32Array.from(
      tables,
      (table, i) => table === null ? 0 : samplesBefore(table, from[i]!, next?.dts90k),
    );
    await work.spend(1 + to.reduce((sum, end, i) => sum + end - from[i]!, 0));
    const { bytes, end90k } = measure(tables, from, to);
    const startPts90k = index === 0 ? Math.min(cut.pts90k, earliest(tables)) : cut.pts90k;
    runs.push({
      index,
      startPts90k,
      startDts90k: index === 0 ? Math.min(cut.dts90k, earliest(tables)) : cut.dts90k,
      durationPts90k: Math.max(0, (next?.pts90k ?? end90k) - startPts90k),
      sourceStart: 0,
      sourceEnd: sourceBytes,
      maxPayloadBytes: bytes.reduce((sum, one) => sum + one, 0),
      trackBytes: bytes,
      maxAccessUnits: Array.from(to, (end, i) => end - from[i]!),
    });
    stretches.push({ from, to });
    from = to;
  }
  return {
    kind: "streamed",
    runs,
    empty: new Set(tables.flatMap((table, i) => table === null || table.count === 0 ? [i] : [])),
    async *readRun(run, wanted, source, signal, _lender, held) {
      for (const track of wanted) held?.(track, unitsIn(tables[track] ?? null, stretches[run]!, track));
      // The order is computed twice rather than kept: a run may have a million access units.
      const order = inOrder(tables, stretches[run]!, wanted);
      for await (const batch of readExtents(source, extentsOf(tables, stretches[run]!, wanted), signal)) {
        const samples: RunSample[] = batch.data.map((data, n) => {
          const [track, i] = order.next().value!;
          const table = tables[track]!;
          const dts90k = table.dts90k.at(i);
          return {
            track,
            dts90k,
            pts90k: dts90k + (table.ptsShift90k?.at(i) ?? 0),
            keyframe: table.keyframes === null || hasSorted(table.keyframes, i),
            data: data.subarray(batch.from[n]!, batch.from[n]! + table.sizes.at(i)),
          };
        });
        yield samples;
      }
    },
  };
}

/** Access units of `table` in a run that are not empty. */
function unitsIn(table: SampleTable | null, { from, to }: Stretch, track: number): number {
  let units = 0;
  for (let i = from[track]!; i < to[track]!; i++) if (table!.sizes.at(i) > 0) units++;
  return units;
}

function* extentsOf(
  tables: readonly (SampleTable | null)[],
  stretch: Stretch,
  wanted: ReadonlySet<number>,
): Generator<Extent> {
  for (const [track, i] of inOrder(tables, stretch, wanted)) {
    yield { offset: tables[track]!.offsets.at(i), sizeBytes: tables[track]!.sizes.at(i) };
  }
}

function mainTrack(tracks: readonly Track[], tables: readonly (SampleTable | null)[]): number {
  const usable = (i: number) => (tables[i]?.count ?? 0) > 0;
  const video = tracks.findIndex((track, i) => track.kind === "video" && track.isDefault && usable(i));
  if (video >= 0) return video;
  const anyVideo = tracks.findIndex((track, i) => track.kind === "video" && usable(i));
  return anyVideo >= 0 ? anyVideo : Math.max(0, tracks.findIndex((_, i) => usable(i)));
}

interface Cut {
  readonly dts90k: number;
  readonly pts90k: number;
}

async function cutsOf(
  table: SampleTable | null,
  tables: readonly (SampleTable | null)[],
  work: Pick<IndexWork, "spend">,
): Promise<Cut[]> {
  if (table === null) return [];
  const { count, dts90k, ptsShift90k, keyframes } = table;
  const leastRun90k = Math.max(LEAST_RUN_90K, (dts90k.at(count - 1) - dts90k.at(0)) / MAX_SEGMENTS);
  const starts90k: number[] = [];
  for (let n = 0; n < (keyframes?.length ?? count); n++) {
    if (n % STRIDE === 0) await work.spend(STRIDE);
    const time = dts90k.at(keyframes?.[n] ?? n);
    const last = starts90k.at(-1);
    if (last === undefined || time - last >= leastRun90k) starts90k.push(time);
  }
  if (starts90k.length === 0) return [{ dts90k: 0, pts90k: 0 }];
  const present = tables.filter((one) => one !== null);
  return (await splitCrowded(present, starts90k, work)).map((start90k): Cut => {
    const sample = Math.min(count - 1, sampleAt(table, start90k));
    return { dts90k: start90k, pts90k: start90k + (ptsShift90k?.at(sample) ?? 0) };
  });
}

function samplesBefore(table: SampleTable, from: number, dts90k: number | undefined): number {
  let to = from;
  while (to < table.count && (dts90k === undefined || table.dts90k.at(to) < dts90k)) to++;
  return to;
}

function measure(tables: readonly (SampleTable | null)[], from: Uint32Array, to: Uint32Array) {
  const bytes: number[] = tables.map(() => 0);
  let end90k = 0;
  for (const [t, table] of tables.entries()) {
    if (table === null) continue;
    for (let i = from[t]!; i < to[t]!; i++) bytes[t]! += table.sizes.at(i);
    const last = to[t]! - 1;
    if (last < from[t]!) continue;
    const lastDuration = last > 0 ? table.dts90k.at(last) - table.dts90k.at(last - 1) : 0;
    end90k = Math.max(end90k, table.dts90k.at(last) + (table.ptsShift90k?.at(last) ?? 0) + lastDuration);
  }
  return { bytes, end90k };
}

function earliest(tables: readonly (SampleTable | null)[]): number {
  return tables.reduce((least, table) => Math.min(least, table === null ? Infinity : table.dts90k.at(0)), Infinity);
}

/** Yields the samples of a run by decoding time; at equal times the lower track comes first. */
function* inOrder(
  tables: readonly (SampleTable | null)[],
  { from, to }: Stretch,
  wanted: ReadonlySet<number>,
): Generator<readonly [track: number, sample: number], undefined> {
  const next = from.slice();
  while (true) {
    let best = -1;
    let bestTime = Infinity;
    for (const track of wanted) {
      const at = next[track]!;
      const time = at < to[track]! ? tables[track]!.dts90k.at(at) : Infinity;
      if (time < bestTime || (time === bestTime && time < Infinity && track < best)) [best, bestTime] = [track, time];
    }
    if (best < 0) return;
    yield [best, next[best]!++];
  }
}

function hasSorted(sorted: Uint32Array, value: number): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === value;
}
