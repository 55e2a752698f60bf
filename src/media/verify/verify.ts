/**
 * Reads a film whole through its own readers and muxers, and compares what the file holds with what comes out: in MPEG TS
 * and in HLS, access unit by access unit, and the lengths that are promised with those that come.
 */
import type { ByteSource } from "../../bytes/source.ts";
import { stepBetween } from "../../bytes/ts/stamps.ts";
import type { FaultCounts } from "../model/faults.ts";
import type { HlsPlan, Presentation, Track } from "../model/types.ts";
import { FragmentUnits } from "./fragment-units.ts";
import { TsUnits, type UnitCount } from "./ts-units.ts";

/** A film may be shorter than it says by this, ms, and by this share: containers round, or mean one track. */
const SHORT_MS = 2000;
const SHORT_SHARE = 0.02;

/** Access units of one track. */
export interface TrackReport {
  readonly id: number;
  readonly kind: Track["kind"];
  readonly codec: string;
  /** What the reader found in the file; of a transport stream, what the file has. Converted sound: what was made. */
  readonly held: number;
  /** What came out as MPEG TS; null: the film is carried in HLS alone. */
  readonly ts: number | null;
  readonly hls: number;
}

/** How long something is, and how long it was promised to be. */
export interface Promised {
  readonly promised: number;
  readonly given: number;
}

/** What was found in one film. */
export interface VerifyReport {
  readonly container: Presentation["container"];
  readonly tracks: readonly TrackReport[];
  /** Bytes of the MPEG TS; null: no length is promised. */
  readonly tsBytes: Promised | null;
  /** Duration, ms; null: none is promised, or nothing came out. */
  readonly durationMs: Promised | null;
  readonly segments: number;
  /** The segment whose content differs most from its duration in the playlist, and by how much, ms; null: one segment. */
  readonly worstSegment: { readonly index: number; readonly offMs: number } | null;
  /** Faults that the engine counted meanwhile. */
  readonly faults: FaultCounts;
  /** What `stat` reports before anything was read: tracks that are left out, estimates. */
  readonly warnings: readonly string[];
  /** What was lost; empty if the film is whole. */
  readonly problems: readonly string[];
}

/** Counts of one output, by stream. */
interface Output {
  readonly counts: readonly UnitCount[];
  readonly bytes: number;
}

/**
 * Plays `presentation` from `source` twice, as MPEG TS and as HLS. `onTs` hears the bytes of the MPEG TS in order. Rejects
 * as `ByteSource.read` does, or with `bad_media` on damage that cannot be skipped.
 */
export async function verifyMedia(
  presentation: Presentation,
  source: ByteSource,
  signal: AbortSignal,
  onTs: (bytes: Uint8Array) => void = () => {},
): Promise<VerifyReport> {
  const { outputTracks, faults, container } = presentation;
  const isTs = container === "mpegts";
  const ts = presentation.hlsOnly ? null : await playTs(presentation, source, signal, onTs);
  const hls = await presentation.planHls(source, signal);
  const segments: UnitCount[][] = [];
  for (const { index } of hls.segments) segments.push(await countSegment(hls, index, presentation, source, signal));
  const countOf = (counts: readonly UnitCount[], track: number) =>
    isTs ? counts.find(({ id }) => id === outputTracks[track]!.id) : counts[track];
  const held = faults.held;
  const tracks = outputTracks.map(({ id, kind, codec, codecId }, track): TrackReport => {
    const inTs = ts === null ? null : countOf(ts.counts, track)?.units ?? 0;
    return {
      id,
      kind,
      codec: codec === "other" ? codecId : codec,
      held: (isTs ? inTs : held[track]) ?? 0,
      ts: inTs,
      hls: segments.reduce((sum, counts) => sum + (countOf(counts, track)?.units ?? 0), 0),
    };
  });
  const main = Math.max(0, outputTracks.findIndex(({ kind }) => kind === "video"));
  const starts90k = segments.map((counts) => countOf(counts, main)?.first90k ?? null);
  const givenMs = durationOf(ts?.counts ?? joined(segments));
  const { durationMs: promisedMs } = presentation;
  const report = {
    container,
    tracks,
    tsBytes: ts === null || presentation.ts.sizeBytes === null
      ? null
      : { promised: presentation.ts.sizeBytes, given: ts.bytes },
    durationMs: promisedMs === null || givenMs === null ? null : { promised: promisedMs, given: givenMs },
    segments: segments.length,
    worstSegment: worstOf(hls, starts90k),
    faults: faults.counts,
    warnings: presentation.warnings,
  };
  return { ...report, problems: [...problemsOf(report), ...faults.warning === null ? [] : [faults.warning]] };
}

async function playTs(
  { ts, container }: Presentation,
  source: ByteSource,
  signal: AbortSignal,
  onTs: (bytes: Uint8Array) => void,
): Promise<Output> {
  const units = new TsUnits(container !== "mpegts");
  let bytes = 0;
  for await (const chunk of ts.read(0, null, source, signal)) {
    units.push(chunk);
    onTs(chunk);
    bytes += chunk.length;
  }
  return { counts: units.finish(), bytes };
}

async function countSegment(
  hls: HlsPlan,
  n: number,
  { container, outputTracks }: Presentation,
  source: ByteSource,
  signal: AbortSignal,
): Promise<UnitCount[]> {
  const units = hls.fragmented === undefined
    ? new TsUnits(container !== "mpegts")
    : new FragmentUnits(outputTracks.length);
  for await (const chunk of hls.readSegment(n, source, signal)) units.push(chunk);
  return units.finish();
}

/** The spans of each stream over all segments. */
function joined(segments: readonly (readonly UnitCount[])[]): Pick<UnitCount, "first90k" | "last90k">[] {
  return [segments.at(0), segments.at(-1)].flatMap((counts) => counts ?? []);
}

/** From the earliest to the latest time of all streams, ms; null where there are none. */
function durationOf(spans: readonly Pick<UnitCount, "first90k" | "last90k">[]): number | null {
  const times = spans.flatMap(({ first90k, last90k }) =>
    first90k === null || last90k === null ? [] : [first90k, last90k]
  );
  return times.length === 0 ? null : (Math.max(...times) - Math.min(...times)) / 90;
}

/** Compares where segments begin with the playlist. The last one has no end that could be compared. */
function worstOf({ segments }: HlsPlan, starts90k: readonly (number | null)[]): VerifyReport["worstSegment"] {
  let worst: VerifyReport["worstSegment"] = null;
  for (const { index, durationMs } of segments) {
    const [from, to] = [starts90k[index] ?? null, starts90k[index + 1] ?? null];
    // The first one may begin with pictures that only decode after the key frame.
    if (index === 0 || from === null || to === null || segments[index + 1]?.discontinuity === true) continue;
    const offMs = stepBetween(from, to) / 90 - durationMs;
    if (worst === null || Math.abs(offMs) > Math.abs(worst.offMs)) worst = { index, offMs };
  }
  return worst;
}

function problemsOf({ tracks, tsBytes, durationMs }: Omit<VerifyReport, "problems">): string[] {
  const missing = tracks.flatMap(({ id, kind, codec, held, ts, hls }) =>
    [["MPEG TS", ts ?? held], ["HLS", hls]].flatMap(([output, units]) =>
      Number(units) < held
        ? [`${held - Number(units)} of ${held} packets of ${kind} ${id} (${codec}) are not in ${output}`]
        : []
    )
  );
  const isShort = durationMs !== null &&
    durationMs.promised - durationMs.given > Math.max(SHORT_MS, durationMs.promised * SHORT_SHARE);
  return [
    ...missing,
    ...(tracks.some(({ held }) => held > 0) ? [] : ["the file has nothing that plays"]),
    ...(tsBytes !== null && tsBytes.given < tsBytes.promised
      ? [`MPEG TS ends ${tsBytes.promised - tsBytes.given} bytes before its length`]
      : []),
    ...(isShort
      ? [
        `${Math.round(durationMs.given / 1000)} s play where the file promises ${
          Math.round(durationMs.promised / 1000)
        } s`,
      ]
      : []),
  ];
}
