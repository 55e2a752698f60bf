/**
 * What an index reader (MP4, Matroska) hands to the muxer: tracks, and the file's access units cut into runs that start
 * at random access points.
 *
 * Two kinds of index exist. A *tabled* one knows every access unit before a byte of media is read (MP4's `stbl`): its TS
 * layout is exact to the byte and a range in the middle of a run needs nothing but its own source bytes. A *streamed*
 * one knows where runs start, and learns their access units while reading them (Matroska, fragmented MP4): each run gets
 * a slot of bounded size in the layout, filled up with null packets.
 */
import type { ByteLender, ByteSource } from "../../bytes/source.ts";
import type { Column } from "./column.ts";
import type { CountUnits, FaultLedger } from "./faults.ts";
import type { MemoryAccount } from "../source/work.ts";
import type { AttachedFonts, PresentationOptions, Run, Track } from "./types.ts";

/** Every access unit of one track in decoding order, in columns of equal length. */
export interface SampleTable {
  /** Number of access units. */
  readonly count: number;
  /** Bytes of all of them. */
  readonly payloadBytes: number;
  /** Byte position in the source. */
  readonly offsets: Column;
  readonly sizes: Column;
  /** Decoding time, 90 kHz, strictly increasing where the index reader can help it; the earliest of all tracks is ≥ 0. */
  readonly dts90k: Column;
  /** Presentation time minus decoding time, 90 kHz; null when always 0. */
  readonly ptsShift90k: Column | null;
  /** Ascending indexes of the random access points; null when every access unit is one. */
  readonly keyframes: Uint32Array | null;
  /** Access units that were moved, because the container puts them no later than the one before. Default 0. */
  readonly ranBack?: number;
}

/** One access unit with its bytes, as a streamed run yields it. */
export interface RunSample {
  /** Index into `MediaIndex.tracks` (not the container's track id). */
  readonly track: number;
  /** 90 kHz, same origin for all tracks and runs; the earliest DTS of the file is ≥ 0. */
  readonly pts90k: number;
  /** 90 kHz; per track strictly increasing in the order yielded, also from run to run. */
  readonly dts90k: number;
  readonly keyframe: boolean;
  /** The access unit as the container stores it (length-prefixed NAL units, raw AAC …), compression undone. */
  readonly data: Uint8Array;
  /** How long a text is shown, 90 kHz; absent: the file does not say, or it is no text. */
  readonly shown90k?: number;
  /** What the container keeps beside a text: of WebVTT in Matroska a line of settings. Absent: nothing. */
  readonly beside?: Uint8Array;
  /** Bytes that it takes in the file, where they are packed. Default: those of `data`. */
  readonly packedBytes?: number;
  /** True for silence in place of sound that could not be decoded. Default false. */
  readonly isSilence?: boolean;
}

/** A run whose access units become known while it is read. */
export interface StreamedRun extends Run {
  /**
   * Decoding time of its first random access point, 90 kHz; where exact DTS is not known in advance, the best lower
   * estimate. Non-decreasing over the runs. Drives PCR only within the run: access units may precede it by 600 ms.
   */
  readonly startDts90k: number;
  /**
   * Upper bound of the payload bytes of the output tracks (usually `sourceEnd - sourceStart`); null when the end of the
   * run is an estimate: then the whole TS has no size in advance.
   */
  readonly maxPayloadBytes: number | null;
  /** Bytes that each of `MediaIndex.tracks` has in it, or could have at most; absent: only their sum is known. */
  readonly trackBytes?: readonly number[];
  /** Nothing of the run before is decoded at `startDts90k` or later, though the end of that run may be an estimate. Default false. */
  readonly startsAnew?: boolean;
  /** For each of `MediaIndex.tracks` a generous bound of its access units in the run (0 for tracks never carried). */
  readonly maxAccessUnits: readonly number[];
  /** Bytes that unpacking may add to the subtitles in it, as far as that is foreseen. Default 0. */
  readonly unpackedBytes?: number;
}

/**
 * Most payload bytes that some tracks have in a run; null: not known in advance. Where only the sum over all tracks is
 * known, it bounds a picture well, and a single sound far too loosely.
 */
export type RunBytes = (run: StreamedRun) => number | null;

/** The bytes of the tracks `indexes` in a run. */
export function bytesOfTracks(tracks: readonly Track[], indexes: readonly number[]): RunBytes {
  const hasVideo = indexes.some((i) => tracks[i]!.kind === "video");
  return ({ trackBytes, maxPayloadBytes }) =>
    trackBytes === undefined
      ? hasVideo ? maxPayloadBytes : null
      : indexes.reduce((sum, i) => sum + (trackBytes[i] ?? 0), 0);
}

/** Access units known in advance. */
export interface TabledTimeline {
  readonly kind: "tabled";
  /** One table for each of `MediaIndex.tracks`; null for tracks that cannot be carried. */
  readonly tables: readonly (SampleTable | null)[];
  /** Places of the file, bytes, where its reader found damage. Absent: none. */
  readonly gaps?: readonly number[];
}

/** A reading of consecutive runs. */
export interface RunReading {
  /** As of the timeline. If the run follows the one that was read last, it may continue from there. */
  readonly readRun: StreamedTimeline["readRun"];
  /** Releases what it reads with. Idempotent. */
  close(): void;
}

/** Access units known while reading. */
export interface StreamedTimeline {
  readonly kind: "streamed";
  /**
   * All runs in file order, adjacent in time; each starts with a random access point of the main video track (or of the
   * audio where there is no video). Not shorter than about 2 s each: merge denser index entries.
   */
  readonly runs: readonly StreamedRun[];
  /** Tracks known to have no access unit; absent: none. */
  readonly empty?: ReadonlySet<number>;
  /** Where its reader counts what it cannot read; absent: it counts nothing. */
  readonly faults?: FaultLedger;
  /**
   * The access units of `runs[run]` for the tracks in `wanted` (indexes into `MediaIndex.tracks`), in file order, in
   * batches of any size. Depends on nothing but the file: reading a run alone or after its predecessor, with any
   * batching, must give the same access units and times. Batches should come as soon as their bytes have arrived. At the
   * end of the iteration every access unit of the run was given. Reads coalesced chunks (256 KiB–1 MiB) in order.
   * Rejects as `ByteSource.read` does, or with `bad_media` on damage that cannot be skipped. With a `lender` the bytes
   * of a batch are lent until the next one is requested; a user that needs them for longer holds them. `held` hears of
   * each access unit of `wanted` that the file names in the run, as the reader meets it: not of empty ones, nor of those
   * that cannot be read, which `faults` counts. Readers that cannot tell call it never.
   */
  readRun(
    run: number,
    wanted: ReadonlySet<number>,
    source: ByteSource,
    signal: AbortSignal,
    lender?: ByteLender,
    held?: CountUnits,
  ): AsyncIterable<readonly RunSample[]>;
  /** For runs that are read one after the other, if that saves work; absent: it saves none. */
  readonly open?: () => RunReading;
}

/** The texts of one track, each an access unit that lasts until the next one. */
export interface TextTable {
  /** Index into `MediaIndex.tracks`. */
  readonly track: number;
  /** Times as of the timeline; they may be negative. */
  readonly table: SampleTable;
}

/** What an index reader returns. Immutable; holds no source. */
export interface MediaIndex {
  readonly container: "mp4" | "matroska" | "other";
  /** All tracks, playable or not, in file order. `codecPrivate` is avcC, hvcC or AudioSpecificConfig where needed. */
  readonly tracks: readonly Track[];
  readonly durationMs: number | null;
  /** Size of the source file, bytes. */
  readonly sourceBytes: number;
  /** Oddities that the user should know about. */
  readonly warnings: readonly string[];
  readonly timeline: TabledTimeline | StreamedTimeline;
  /** Texts of a tabled timeline, which has no other place for them. Absent: none that can be read. */
  readonly texts?: readonly TextTable[];
  /** The container's time 0, in the presentation times of the timeline, 90 kHz. Default 0. */
  readonly zero90k?: number;
  /** Looks for the fonts that the container brings along. Absent: it brings none. Rejects as `ByteSource.read`. */
  readonly findFonts?: (source: ByteSource, signal: AbortSignal) => Promise<AttachedFonts>;
  /** Sound that was to be converted is among its tracks. Default false. */
  readonly hasMadeSound?: boolean;
}

/** Options every opener gets. */
export type MediaOpenOptions = PresentationOptions & {
  readonly fileName: string;
  readonly signal: AbortSignal;
  /** Counts the memory that is needed while the index is read; absent: it is not counted. */
  readonly memory?: MemoryAccount;
};

/** Memory of a run of a streamed timeline, bytes: an object of ten numbers or so. */
const RUN_BYTES = 256;

/** Memory that a timeline takes, bytes, roughly. */
export function timelineBytes(timeline: TabledTimeline | StreamedTimeline): number {
  if (timeline.kind === "streamed") return timeline.runs.length * RUN_BYTES;
  let bytes = 0;
  for (const table of timeline.tables) {
    if (table === null) continue;
    const { offsets, sizes, dts90k, ptsShift90k, keyframes } = table;
    for (const column of [offsets, sizes, dts90k, ptsShift90k]) bytes += column?.memoryBytes ?? 0;
    bytes += keyframes?.byteLength ?? 0;
  }
  return bytes;
}
