/** Audio that is converted to AAC or AC-3 because players cannot decode it or MPEG TS cannot carry it. */

/** Which sound to convert besides that which MPEG TS cannot carry. */
export interface AudioTranscoding {
  /** MP3 and MP2 too. */
  readonly mp3: boolean;
  /** AC-3 and E-AC-3 too. */
  readonly ac3: boolean;
  /** Convert only if the file would be silent otherwise, as none of its sound can be carried. Default false. */
  readonly onlyIfSilent?: boolean | undefined;
}

/** What to convert when the request does not say: sound of files that would be silent (`auto`), nothing, or all that cannot be carried. */
export type TranscodeAudio = "auto" | "never" | "always";

/** Whether both ask for the same. */
export function sameTranscoding(a: AudioTranscoding | null, b: AudioTranscoding | null): boolean {
  if (a === null || b === null) return a === b;
  return a.mp3 === b.mp3 && a.ac3 === b.ac3 && (a.onlyIfSilent ?? false) === (b.onlyIfSilent ?? false);
}

/** Format that sound is converted to. */
export type AudioTarget = "aac" | "ac3";

/** Channels of converted sound: mono, stereo, 5.1. */
export type MadeChannels = 1 | 2 | 6;

/** A piece of audio to convert. */
export interface EncodeJob {
  /** A file of `container` with one audio track, whose times may begin anywhere. */
  readonly input: Uint8Array;
  readonly container: "matroska" | "mpegts";
  /** Format to convert it to. */
  readonly target: AudioTarget;
  /** Time in the input at which the output begins, samples at 48 kHz. Missing sound becomes silence. */
  readonly firstSample: number;
  readonly channels: MadeChannels;
  /** Target bit rate, bits/s. */
  readonly bitsPerSecond: number;
  /** Most output, bytes; more is an error. */
  readonly maxOutputBytes: number;
  /** Called with the number of samples that are silence in place of sound that could not be decoded. */
  readonly onSilence?: (samples: number) => void;
}

/** Converts audio to AAC or AC-3. */
export interface AudioEncoder {
  /**
   * Whether it can work at all; it looks again each time until it surely can. Rejects with `too_busy` when the machine
   * has no room to look.
   */
  isAvailable(signal: AbortSignal): Promise<boolean>;
  /**
   * Returns AAC LC frames of 1024 samples at 48 kHz with ADTS headers, or AC-3 frames of 1536 samples. The first frame only
   * primes the decoder: frame `j` + 1 decodes to the samples from `firstSample` + 1024 `j` (1536 `j`). Rejects with
   * `unavailable`, `bad_media`, `timeout`, or the signal's reason.
   */
  encode(job: EncodeJob, signal: AbortSignal): Promise<Uint8Array>;
}

/** Sample rate of converted sound, Hz: an AAC frame is then exactly 1920 ticks of 90 kHz, an AC-3 frame 2880. */
export const MADE_RATE = 48000;

/** Properties of a target format. */
export interface TargetFacts {
  /** Samples per frame. */
  readonly frameSamples: number;
  /** Bit rate by number of channels, bits/s: transparent to most ears. */
  readonly bitsPerSecond: Readonly<Record<MadeChannels, number>>;
  /** Largest frame of one channel, bytes, without a header. */
  readonly maxChannelBytes: number;
}

/** Properties by target: an AAC LC frame has at most 6144 bits per channel (ISO/IEC 14496-3, 4.5.3.2); AC-3 frames have one size. */
export const TARGETS: Readonly<Record<AudioTarget, TargetFacts>> = {
  aac: { frameSamples: 1024, bitsPerSecond: { 1: 96_000, 2: 160_000, 6: 384_000 }, maxChannelBytes: 768 },
  ac3: { frameSamples: 1536, bitsPerSecond: { 1: 96_000, 2: 192_000, 6: 448_000 }, maxChannelBytes: 384 },
};
