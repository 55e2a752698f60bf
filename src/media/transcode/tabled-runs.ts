/** A tabled timeline told as runs: AAC made on the way has no sizes in advance, so its layout needs slots. */
import { readExtents } from "../source/extents.ts";
import type { RunSample, SampleTable, StreamedRun, StreamedTimeline, TabledTimeline } from "../timeline.ts";
import type { Track } from "../types.ts";

/** Runs are no shorter than this, 90 kHz. */
const LEAST_RUN_90K = 180_000;

/** Samples `[from, to)` of each track in one run. */
interface Stretch {
  readonly from: Uint32Array;
  readonly to: Uint32Array;
}

/** The streamed timeline with the access units of `timeline`. Runs begin at keyframes of the video, or of any track. */
export function runsOfTables(
  tracks: readonly Track[],
  timeline: TabledTimeline,
  sourceBytes: number,
): StreamedTimeline {
  const { tables } = timeline;
  const cuts = cutsOf(tables[mainTrack(tracks, tables)] ?? null);
  const stretches: Stretch[] = [];
  const runs: StreamedRun[] = [];
  let from = new Uint32Array(tables.length);
  for (const [index, cut] of cuts.entries()) {
    const next = cuts[index + 1];
    const to = Uint32Array.from(
      tables,
      (table, i) => table === null ? 0 : samplesBefore(table, from[i]!, next?.dts90k),
    );
    const { bytes, end90k } = measure(tables, from, to);
    const startPts90k = index === 0 ? Math.min(cut.pts90k, earliest(tables)) : cut.pts90k;
    runs.push({
      index,
      startPts90k,
      startDts90k: index === 0 ? Math.min(cut.dts90k, earliest(tables)) : cut.dts90k,
      durationPts90k: Math.max(0, (next?.pts90k ?? end90k) - startPts90k),
      sourceStart: 0,
      sourceEnd: sourceBytes,
      maxPayloadBytes: bytes,
      maxAccessUnits: Array.from(to, (end, i) => end - from[i]!),
    });
    stretches.push({ from, to });
    from = to;
  }
  return {
    kind: "streamed",
    runs,
    empty: new Set(tables.flatMap((table, i) => table === null || table.count === 0 ? [i] : [])),
    async *readRun(run, wanted, source, signal) {
      const order = [...inOrder(tables, stretches[run]!, wanted)];
      let at = 0;
      const extents = order.map(([track, i]) => ({
        offset: tables[track]!.offsets[i]!,
        sizeBytes: tables[track]!.sizes[i]!,
      }));
      for await (const batch of readExtents(source, extents, signal)) {
        const samples: RunSample[] = batch.data.map((data, n) => {
          const [track, i] = order[at++]!;
          const table = tables[track]!;
          const dts90k = table.dts90k[i]!;
          return {
            track,
            dts90k,
            pts90k: dts90k + (table.ptsShift90k?.[i] ?? 0),
            keyframe: table.keyframes === null || hasSorted(table.keyframes, i),
            data: data.subarray(batch.from[n]!, batch.from[n]! + table.sizes[i]!),
          };
        });
        yield samples;
      }
    },
  };
}

function mainTrack(tracks: readonly Track[], tables: readonly (SampleTable | null)[]): number {
  const usable = (i: number) => (tables[i]?.count ?? 0) > 0;
  const video = tracks.findIndex((track, i) => track.kind === "video" && track.isDefault && usable(i));
  if (video >= 0) return video;
  const anyVideo = tracks.findIndex((track, i) => track.kind === "video" && usable(i));
  return anyVideo >= 0 ? anyVideo : Math.max(0, tracks.findIndex((_, i) => usable(i)));
}

function cutsOf(table: SampleTable | null): { dts90k: number; pts90k: number }[] {
  if (table === null) return [];
  const cuts: { dts90k: number; pts90k: number }[] = [];
  const candidates = table.keyframes?.length ?? table.count;
  for (let n = 0; n < candidates; n++) {
    const i = table.keyframes?.[n] ?? n;
    const dts90k = table.dts90k[i]!;
    const last = cuts.at(-1);
    if (last !== undefined && dts90k - last.dts90k < LEAST_RUN_90K) continue;
    cuts.push({ dts90k, pts90k: dts90k + (table.ptsShift90k?.[i] ?? 0) });
  }
  return cuts.length > 0 ? cuts : [{ dts90k: 0, pts90k: 0 }];
}

function samplesBefore(table: SampleTable, from: number, dts90k: number | undefined): number {
  let to = from;
  while (to < table.count && (dts90k === undefined || table.dts90k[to]! < dts90k)) to++;
  return to;
}

function measure(tables: readonly (SampleTable | null)[], from: Uint32Array, to: Uint32Array) {
  let bytes = 0;
  let end90k = 0;
  for (const [t, table] of tables.entries()) {
    if (table === null) continue;
    for (let i = from[t]!; i < to[t]!; i++) bytes += table.sizes[i]!;
    const last = to[t]! - 1;
    if (last < from[t]!) continue;
    const lastDuration = last > 0 ? table.dts90k[last]! - table.dts90k[last - 1]! : 0;
    end90k = Math.max(end90k, table.dts90k[last]! + (table.ptsShift90k?.[last] ?? 0) + lastDuration);
  }
  return { bytes, end90k };
}

function earliest(tables: readonly (SampleTable | null)[]): number {
  return tables.reduce((least, table) => Math.min(least, table?.dts90k[0] ?? Infinity), Infinity);
}

/** Samples of a run by decoding time; of equal ones the first track's. */
function* inOrder(
  tables: readonly (SampleTable | null)[],
  { from, to }: Stretch,
  wanted: ReadonlySet<number>,
): Generator<readonly [track: number, sample: number]> {
  const next = from.slice();
  while (true) {
    let best = -1;
    let bestTime = Infinity;
    for (const track of wanted) {
      const at = next[track]!;
      const time = at < to[track]! ? tables[track]!.dts90k[at]! : Infinity;
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
