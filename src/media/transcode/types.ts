/** Audio made into AAC for players that cannot decode it, or because MPEG TS cannot carry it. */

/** What `transcode_audio=1` was asked to include besides what MPEG TS cannot carry. */
export interface AudioTranscoding {
  /** MP3 and MP2 too. */
  readonly mp3: boolean;
  /** AC-3 and E-AC-3 too. */
  readonly ac3: boolean;
  /** Only where the file would be silent otherwise: none of its sound can be carried. Default false. */
  readonly onlyIfSilent?: boolean | undefined;
}

/** When sound is made into AAC that nobody asked about: where a file would be silent, never, or all that cannot be carried. */
export type TranscodeAudio = "auto" | "never" | "always";

/** Whether both ask for the same. */
export function sameTranscoding(a: AudioTranscoding | null, b: AudioTranscoding | null): boolean {
  if (a === null || b === null) return a === b;
  return a.mp3 === b.mp3 && a.ac3 === b.ac3 && (a.onlyIfSilent ?? false) === (b.onlyIfSilent ?? false);
}

/** What sound is made into. */
export type AudioTarget = "aac" | "ac3";

/** Channels of what is made: mono, stereo, 5.1. */
export type MadeChannels = 1 | 2 | 6;

/** A piece of audio to be made into AAC or AC-3. */
export interface EncodeJob {
  /** A file of `container` with one audio track; its times begin anywhere. */
  readonly input: Uint8Array;
  readonly container: "matroska" | "mpegts";
  /** What is made of it. */
  readonly target: AudioTarget;
  /** Time in it at which the output begins, samples at 48 kHz. What is missing is silence. */
  readonly firstSample: number;
  readonly channels: MadeChannels;
  /** Bit rate aimed at, bits/s. */
  readonly bitsPerSecond: number;
  /** More output than this is an error, bytes. */
  readonly maxOutputBytes: number;
}

/** Makes AAC or AC-3. */
export interface AudioEncoder {
  /** Whether it can work at all; asked again as long as it cannot. */
  isAvailable(signal: AbortSignal): Promise<boolean>;
  /**
   * AAC LC frames of 1024 samples at 48 kHz with ADTS headers, or frames of AC-3 of 1536. The first frame primes the decoder:
   * frame `j` + 1 decodes to the samples from `firstSample` + 1024 (1536) `j`. Rejects with `unavailable`, `bad_media`, `timeout`, or the signal's reason.
   */
  encode(job: EncodeJob, signal: AbortSignal): Promise<Uint8Array>;
}

/** Rate of what is made, Hz: a frame of AAC is then exactly 1920 ticks of 90 kHz, one of AC-3 2880. */
export const MADE_RATE = 48000;

/** What is to be known of a target. */
export interface TargetFacts {
  /** Samples in a frame. */
  readonly frameSamples: number;
  /** Bit rate by channels, bits/s: transparent for most ears. */
  readonly bitsPerSecond: Readonly<Record<MadeChannels, number>>;
  /** Largest frame of one channel, bytes, without a header. */
  readonly maxChannelBytes: number;
}

/** Facts by target: AAC LC has 6144 bits a channel at most (ISO/IEC 14496-3, 4.5.3.2), AC-3 frames of one size. */
export const TARGETS: Readonly<Record<AudioTarget, TargetFacts>> = {
  aac: { frameSamples: 1024, bitsPerSecond: { 1: 96_000, 2: 160_000, 6: 384_000 }, maxChannelBytes: 768 },
  ac3: { frameSamples: 1536, bitsPerSecond: { 1: 96_000, 2: 192_000, 6: 448_000 }, maxChannelBytes: 384 },
};
