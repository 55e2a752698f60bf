/** Audio made into AAC for players that cannot decode it, or because MPEG TS cannot carry it. */

/** What `transcode_audio=1` was asked to include besides what MPEG TS cannot carry. */
export interface AudioTranscoding {
  /** MP3 and MP2 too. */
  readonly mp3: boolean;
  /** AC-3 and E-AC-3 too. */
  readonly ac3: boolean;
}

/** Whether both ask for the same. */
export function sameTranscoding(a: AudioTranscoding | null, b: AudioTranscoding | null): boolean {
  return a === b || (a !== null && b !== null && a.mp3 === b.mp3 && a.ac3 === b.ac3);
}

/** A piece of audio to be made into AAC. */
export interface EncodeJob {
  /** A file of `container` with one audio track; its times begin anywhere. */
  readonly input: Uint8Array;
  readonly container: "matroska" | "mpegts";
  /** Time in it at which the AAC begins, samples at 48 kHz. What is missing is silence. */
  readonly firstSample: number;
  readonly channels: 1 | 2;
  /** Bit rate aimed at, bits/s. */
  readonly bitsPerSecond: number;
  /** More output than this is an error, bytes. */
  readonly maxOutputBytes: number;
}

/** Makes AAC. */
export interface AudioEncoder {
  /** Whether it can work at all; asked again as long as it cannot. */
  isAvailable(signal: AbortSignal): Promise<boolean>;
  /**
   * AAC LC frames of 1024 samples at 48 kHz with ADTS headers. The first frame primes the decoder: frame `j` + 1 decodes
   * to the samples from `firstSample` + 1024 `j`. Rejects with `unavailable`, `bad_media`, `timeout`, or the signal's reason.
   */
  encode(job: EncodeJob, signal: AbortSignal): Promise<Uint8Array>;
}

/** Rate of the AAC, Hz: a frame is then exactly 1920 ticks of 90 kHz. */
export const AAC_RATE = 48000;
/** Samples in a frame of AAC LC (ISO/IEC 14496-3). */
export const AAC_FRAME_SAMPLES = 1024;
/** Bit rate by channels, bits/s: transparent for most ears. */
export const AAC_BITS_PER_SECOND: Readonly<Record<1 | 2, number>> = { 1: 96_000, 2: 160_000 };
