/**
 * Media as the rest of the engine sees it. `openMedia` reads the index of a file through a `ByteSource` and returns a
 * `Presentation`: the tracks, an MPEG TS layout of exact or slotted size, and the HLS plan cut from the same layout.
 */
import type { ChunkBuffers } from "../../bytes/chunk-buffers.ts";
import type { ByteSource } from "../../bytes/source.ts";
import type { FaultLedger } from "./faults.ts";
import type { ForeignReader } from "./foreign-reader.ts";
import type { AudioEncoder, AudioTarget, AudioTranscoding } from "./audio-target.ts";

/** Codecs by their usual names; `other` carries the container's own id in `codecId`. */
export type Codec =
  | "h264"
  | "hevc"
  | "mpeg2video"
  | "mpeg1video"
  | "mpeg4"
  | "aac"
  | "mp3"
  | "mp2"
  | "ac3"
  | "eac3"
  | "vp8"
  | "vp9"
  | "av1"
  | "opus"
  | "vorbis"
  | "flac"
  | "dts"
  | "truehd"
  | "pcm"
  | "pgs"
  | "dvbsub"
  | "other";

/** DOVIDecoderConfigurationRecord (Dolby Vision streams within the ISO base media file format, 3.2). */
export interface DolbyVision {
  readonly profile: number;
  /** What other decoders show without the enhancement: 0 nothing right, 1 HDR10, 2 SDR, 4 HLG. */
  readonly compatibility: number;
  /** The first five bytes of the record: versions, profile, level, layers, compatibility. */
  readonly config: Uint8Array;
}

/** What the numbers of a picture mean (code points of ISO/IEC 23091-2). */
export interface Colours {
  readonly primaries: number;
  readonly transfer: number;
  readonly matrix: number;
  readonly isFullRange: boolean;
}

/** One elementary stream of the source. */
export interface Track {
  /** The container's track number (MP4 track_ID, Matroska TrackNumber, TS PID). */
  readonly id: number;
  readonly kind: "video" | "audio" | "subtitle" | "other";
  readonly codec: Codec;
  /** The container's own codec id (`avc1`, `V_MPEG4/ISO/AVC`, stream_type as `0x1b`). */
  readonly codecId: string;
  /** BCP 47 or ISO 639-2; null when unknown or `und`. */
  readonly language: string | null;
  readonly isDefault: boolean;
  /** avcC, hvcC, AudioSpecificConfig or the like, as stored; null when the container has none. */
  readonly codecPrivate: Uint8Array | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly sampleRate: number | null;
  readonly channels: number | null;
  /** Degrees by which players should turn the picture clockwise, 0 to 359. Absent: none. */
  readonly rotationDegrees?: number;
  /** As the container says; absent: it does not, though the pictures may. */
  readonly colours?: Colours;
  /** Pictures per second, where the container says so. */
  readonly frameRate?: number;
  /** The facts that a Dolby Vision decoder needs; absent: it is not Dolby Vision. */
  readonly dolbyVision?: DolbyVision;
  /** Name that the file gives it, for people; absent: none. */
  readonly name?: string;
  /** Text that translates only foreign speech and signs. Default false. */
  readonly isForced?: boolean;
  /** For people who hear badly; of sound that describes the pictures `isForVisuallyImpaired`. Default false. */
  readonly isForHearingImpaired?: boolean;
  readonly isForVisuallyImpaired?: boolean;
  /** Somebody comments the film. Default false. */
  readonly isCommentary?: boolean;
  /** Bits in a sample of PCM, if the container states them. */
  readonly bitDepth?: number | null;
  /** Coded sound that the container counts by samples: the samples and bytes of a packet. */
  readonly soundPacket?: { readonly samples: number; readonly bytes: number };
  /**
   * Its access units are already in the form that MPEG TS carries, with their headers (AAC in ADTS, H.264 as in Annex
   * B).
   */
  readonly isFramed?: boolean;
  /** Matroska's codec id for PCM and other sound that goes to ffmpeg, with `codecPrivate`; null without one. */
  readonly matroskaId?: string | null;
}

/** One access unit placed in the source and in time. */
export interface Sample {
  readonly track: number;
  /** Where its bytes are in the source. */
  readonly offset: number;
  readonly sizeBytes: number;
  /** Presentation and decoding time, 90 kHz, offset so that the earliest DTS of the file is ≥ 0. */
  readonly pts90k: number;
  readonly dts90k: number;
  /** A random access point. */
  readonly keyframe: boolean;
}

/**
 * A run of the timeline. It starts at a random access point and can be muxed from its own data alone. Runs are the
 * slots of the TS layout.
 */
export interface Run {
  readonly index: number;
  readonly startPts90k: number;
  readonly durationPts90k: number;
  /** Source bytes needed to mux it. */
  readonly sourceStart: number;
  readonly sourceEnd: number;
}

/** Choices that change the layout. */
export interface PresentationOptions {
  /** Comma-separated languages, best first; picks which audio comes first. */
  readonly preferredAudioLanguage?: string | null;
  /** Target length of an HLS segment, ms. Default 5000. */
  readonly segmentTargetMs?: number;
  /** Which audio is converted to AAC or AC-3; null or absent: none. */
  readonly transcode?: AudioTranscoding | null;
  /** The format that audio is converted to; in MPEG TS files always AAC, because only AAC fits. Default AAC. */
  readonly audioTarget?: AudioTarget;
  /**
   * Whether the output is fragmented MP4, in HLS alone. Absent: it is if MPEG TS cannot carry the pictures or the sound of
   * a film. False: a film whose pictures MPEG TS cannot carry is refused.
   */
  readonly fragmented?: boolean | undefined;
  /** The encoder; null or absent: audio is not converted, which a warning reports. */
  readonly audioEncoder?: AudioEncoder | null;
  /** Reads containers that we have no reader for; null or absent: they are refused. */
  readonly foreignReader?: ForeignReader | null;
}

/** The virtual MPEG TS file. */
export interface TsLayout {
  /** Exact size, bytes, a multiple of 188; null while unknown (no index that can be read separately). */
  readonly sizeBytes: number | null;
  /**
   * Where the layout begins in the source, if it consists of the source's own bytes from there on: then it can be
   * served like the file. Absent: it is made.
   */
  readonly copiedFrom?: number;
  /**
   * Makes a function that is to be called with the bytes of one reading that are served from the source, in order, and
   * their place there: it counts faults in them. Absent: there is nothing to look for.
   */
  watch?(): (bytes: Uint8Array, at: number) => void;
  /** Changes whenever the bytes would (muxer version, options, tracks): feeds the ETag. */
  readonly fingerprint: string;
  /**
   * The bytes `[start, end)` in chunks of at most 128 KiB, reading from `source` only what they need. `end` null = to
   * the end. Rejects as `ByteSource.read` does, or with `bad_media` on damage that cannot be skipped. With `buffers`
   * the consumer releases each chunk when it is written, and the muxer may put others into its memory (default: memory
   * of their own).
   */
  read(
    start: number,
    end: number | null,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncIterable<Uint8Array>;
}

/** One media segment. */
export interface HlsSegment {
  readonly index: number;
  readonly startMs: number;
  readonly durationMs: number;
  /** Its clock does not continue that of the segment before. Absent: it does. */
  readonly discontinuity?: boolean;
}

/** Formats of the segments that a start may ask for; `auto`: MPEG TS, or fragmented MP4 where that cannot carry a film. */
export type HlsFormat = "auto" | "ts" | "fmp4";

/** What players of fragmented MP4 need besides the segments. */
export interface FragmentedForm {
  /** The init segment, which every segment needs. */
  readonly init: Uint8Array;
  /** For `CODECS`: those of each track. */
  readonly codecs: readonly string[];
}

/** One text on the screen. */
export interface Cue {
  /** From the beginning of the film. */
  readonly startMs: number;
  readonly endMs: number;
  /** WebVTT settings (W3C WebVTT, 3.5), such as `line:0`; empty for none. */
  readonly settings: string;
  /** WebVTT text: `&`, `<` and `>` are escaped except in its own tags. Lines are separated by `\n`; none is empty. */
  readonly text: string;
}

/** Text tracks of a film, segment by segment. */
export interface SegmentTexts {
  readonly tracks: readonly Track[];
  /**
   * The texts of track `track` (index into `tracks`) that are shown in segment `n`, on the clock of the segments. It reads the
   * bytes of that segment, and those of the one before if they have arrived. Rejects as `ByteSource.read`.
   */
  read(track: number, n: number, source: ByteSource, signal: AbortSignal): Promise<readonly Cue[]>;
}

/** How subtitles are drawn: presentation graphics of discs, or scripts of Advanced SubStation Alpha. */
export type DrawnForm = "pgs" | "ass";

/** A block of drawn subtitles. */
export interface DrawnUnit {
  /** On the clock of the segments, 90 kHz. */
  readonly at90k: number;
  /** How long it is shown, 90 kHz; null: the file does not say. */
  readonly shown90k: number | null;
  /** As the container has it. */
  readonly data: Uint8Array;
}

/** A font that a film brings along for its scripts. */
export interface AttachedFont {
  /** Name of its file. */
  readonly name: string;
  /** Where its bytes are in the source. */
  readonly offset: number;
  readonly sizeBytes: number;
}

/** Fonts that a film brings along. */
export interface AttachedFonts {
  readonly fonts: readonly AttachedFont[];
  /** How many more there are: too many, or too large. */
  readonly leftOut: number;
}

/** Drawn subtitles of a film, segment by segment. */
export interface SegmentDrawings {
  readonly tracks: readonly { readonly track: Track; readonly form: DrawnForm }[];
  /** Where each segment begins, on the clock of the segments. */
  readonly startsMs: readonly number[];
  /** Whether the bytes of segment `n` have arrived. Throws `not_found`. */
  isHere(n: number, source: ByteSource): boolean;
  /** The fonts of its scripts. Absent: the film brings none. Rejects as `ByteSource.read`. */
  findFonts?(source: ByteSource, signal: AbortSignal): Promise<AttachedFonts>;
  /** What begins in segment `n` of track `track` (index into `tracks`). Rejects as `ByteSource.read`, or with `not_found`. */
  read(track: number, n: number, source: ByteSource, signal: AbortSignal): Promise<readonly DrawnUnit[]>;
}

/** The whole VOD plan. */
export interface HlsPlan {
  /** Its segments are fragmented MP4. Absent: MPEG TS. */
  readonly fragmented?: FragmentedForm;
  /** The texts inside the film; absent: it has none that can be read. */
  readonly texts?: SegmentTexts;
  /** The subtitles inside the film that are drawn; absent: it has none. */
  readonly drawings?: SegmentDrawings;
  readonly segments: readonly HlsSegment[];
  /** ⌈longest segment⌉, seconds, for EXT-X-TARGETDURATION. */
  readonly targetDurationS: number;
  /** Presentation time stamp of the film's beginning in the segments, 90 kHz, may exceed 33 bits; null: unknown. */
  readonly zeroPts90k: number | null;
  /**
   * The bytes of segment `n`. MPEG TS starts with PAT and PMT; any order of fetching joins without a continuity error.
   * `buffers` as in `TsLayout.read`.
   */
  readSegment(
    n: number,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncIterable<Uint8Array>;
  /** Exact length of a segment when known without making it, else null. */
  segmentBytes(n: number): number | null;
}

/** One track of a film in segments of its own. */
export interface Rendition {
  /** Its place in `Presentation.tracks`. */
  readonly trackIndex: number;
  readonly track: Track;
  /** Its name in `CODECS`; null: it has none. */
  readonly codecs: string | null;
  readonly plan: HlsPlan;
}

/** A film with a choice of sounds: its pictures and each sound in segments of the same numbers and times, on one clock. */
export interface Renditions {
  readonly video: Rendition;
  /** At least two, the preferred one first. */
  readonly sounds: readonly Rendition[];
}

/** A file that can be played. Immutable: shared by all sessions on it. */
export interface Presentation {
  readonly container: "mp4" | "matroska" | "mpegts" | "other";
  readonly tracks: readonly Track[];
  /** Tracks that the output carries, in PMT order. */
  readonly outputTracks: readonly Track[];
  readonly durationMs: number | null;
  /** The output is fragmented MP4: there is no MPEG TS. Absent: false. */
  readonly hlsOnly?: boolean;
  /** Mean bitrate of the source, bytes/s, maybe of its beginning alone; null when unknown. */
  readonly bytesPerSecond: number | null;
  /** What was left out and why, for stat. */
  readonly warnings: readonly string[];
  /** Memory that its index takes, bytes, roughly. */
  readonly indexBytes: number;
  /** Faults in everything muxed or read so far, by any session. */
  readonly faults: FaultLedger;
  /** Reading it throws `unsupported_media` if the HLS plan is of fragmented MP4. */
  readonly ts: TsLayout;
  /**
   * The HLS plan. It is the same for the same file and options, for every caller at any time. If the index does not
   * give it, the first call makes it from a few places of `source`, and the others get that one. Rejects as
   * `ByteSource.read` does.
   */
  planHls(source: ByteSource, signal: AbortSignal): Promise<HlsPlan>;
  /**
   * The film with its sounds apart from its pictures; it costs a pass over the index, once. Absent: there is no choice, or
   * its container gives none. Rejects with `bad_media` if that is too much work.
   */
  planRenditions?(source: ByteSource, signal: AbortSignal): Promise<Renditions>;
  /**
   * The captions in the pictures, as `INSTREAM-ID` of HLS names them: `CC1`, `SERVICE1`; it reads the beginning of the film.
   * Absent: nobody looked for them.
   */
  findCaptions?(source: ByteSource, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * The MPEG TS from the HLS segment on that contains `ms`, or from the last segment for later times. It begins with
   * tables and a random access point, and keeps the clock of the whole. Rejects as `planHls`.
   */
  tsFrom(ms: number, source: ByteSource, signal: AbortSignal): Promise<TsLayout>;
}

/** A file whose index gives the HLS plan. */
export interface IndexedPresentation extends Presentation {
  readonly hls: HlsPlan;
}
