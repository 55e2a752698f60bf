/** Interfaces through which the other parts of the media code use ffmpeg as a reader. */
import type { ByteSource } from "../../bytes/source.ts";

/** A run of a program on a file. */
export interface ForeignJob {
  readonly program: "ffmpeg" | "ffprobe";
  /** Makes the arguments from the address of the file. */
  readonly arguments: (url: string) => readonly string[];
  /** More output than this is an error, bytes. */
  readonly limitBytes: number;
  /** Continues for a reader whose program was set aside, so it waits for a place until its signal fires. Default false. */
  readonly isContinued?: boolean;
}

/** A program that reads a file and writes output. */
export interface ForeignRun {
  /**
   * Whether it was ended because nobody read from it: its place was needed, or its reader paused. `next` rejects with
   * `closed`; who goes on reading starts another.
   */
  readonly isSetAside: boolean;
  /** Samples of silence so far in place of sound that it could not decode. */
  readonly silentSamples: number;
  /**
   * Returns more of its output; null at the end. One call at a time. Rejects with `bad_media`, `timeout` (the program hangs),
   * as the file's source does, or with the signal's reason; after the latter the run continues.
   */
  next(signal: AbortSignal): Promise<Uint8Array | null>;
  /** Ends it. Idempotent. */
  close(): void;
}

/** Runs ffmpeg's programs on files. */
export interface ForeignReader {
  /**
   * Whether it can work at all; it looks again each time until it surely can. Rejects with `too_busy` when the machine
   * has no room to look.
   */
  isAvailable(signal: AbortSignal): Promise<boolean>;
  /**
   * Starts a program, in a place of the share of `source.holder`. Rejects with `too_busy`, `unavailable`, `io`, or the
   * signal's reason. The caller closes the run.
   */
  open(job: ForeignJob, source: ByteSource, signal: AbortSignal): Promise<ForeignRun>;
}
