/**
 * The timeline of a file that ffmpeg reads. A run begins at the first random access point at or after a time fixed in
 * advance, wherever the program that reads it began. Converted sound needs a separate program for each run, which begins a
 * second earlier, so that its frames are always the same; copies continue with the program of the previous run.
 */
import type { ByteSource } from "../../bytes/source.ts";
import type { RunReading, RunSample, StreamedRun, StreamedTimeline } from "../model/timeline.ts";
import { RunCut } from "./run-cut.ts";
import { TARGETS } from "../model/audio-target.ts";
import { frameTicks } from "../transcode/frame-job.ts";
import { type CopiedStream, copyJob } from "./copy-job.ts";
import type { ForeignReader, ForeignRun } from "../model/foreign-reader.ts";
import { type ForeignUnit, UnitReader } from "./unit-reader.ts";

/** How much before its run a program begins, s: decoders, encoders and parsers need to settle. */
const LEAD_S = 1;
/** Places closer to the beginning than this are reached by reading, s: some demuxers lose the first picture when they seek to it. */
const NEAR_S = 3;

/** What reading runs needs. */
export interface ForeignFacts {
  readonly reader: ForeignReader;
  readonly demuxer: string;
  /** Output streams of the program; `trackOf` has their tracks in the index. */
  readonly streams: readonly CopiedStream[];
  readonly trackOf: readonly number[];
  /** Index into `streams` of the main stream, with which runs begin. */
  readonly main: number;
  /** Time on the file's clock at which its timeline is 0, 90 kHz. */
  readonly origin90k: number;
  /** Beginning of the file on its own clock, s. */
  readonly startS: number;
  readonly limitBytes: number;
}

/** A program, and its output that was not taken yet. */
export class UnitStream {
  readonly #run: ForeignRun;
  readonly #units: UnitReader;
  #pending: ForeignUnit[] = [];
  #atEnd = false;
  #toldSamples = 0;

  private constructor(run: ForeignRun, units: UnitReader) {
    this.#run = run;
    this.#units = units;
  }

  /**
   * Starts a program that reads from `fromS` on the file's clock; null: from its beginning. `isContinued` as in
   * `ForeignJob`.
   */
  static async open(
    facts: Omit<ForeignFacts, "trackOf" | "main" | "origin90k">,
    fromS: number | null,
    source: ByteSource,
    signal: AbortSignal,
    isContinued = false,
  ): Promise<UnitStream> {
    const { reader, demuxer, streams, startS, limitBytes } = facts;
    const job = copyJob({ demuxer, streams, fromS, soundFromS: fromS ?? startS, limitBytes });
    const h264 = new Set(streams.flatMap(({ codecId, made }, i) => codecId === "h264" && made === null ? [i] : []));
    const near90k = Math.round((fromS ?? startS) * 90_000);
    return new UnitStream(
      await reader.open({ ...job, isContinued }, source, signal),
      new UnitReader(streams.length, near90k, h264),
    );
  }

  /** Whether the next units need another program, because this one was set aside. */
  get isSetAside(): boolean {
    return this.#run.isSetAside && this.#pending.length === 0 && !this.#atEnd;
  }

  /** Returns the next units; null at the end. */
  async next(signal: AbortSignal): Promise<ForeignUnit[] | null> {
    if (this.#pending.length > 0) return this.#pending.splice(0);
    if (this.#atEnd) return null;
    const bytes = await this.#run.next(signal);
    if (bytes !== null) return this.#units.push(bytes);
    this.#atEnd = true;
    return this.#units.finish();
  }

  /** As `UnitReader.untimed`. */
  get untimed(): number {
    return this.#units.untimed;
  }

  /** Samples of silence in place of sound since the last call. */
  takeSilence(): number {
    const { silentSamples } = this.#run;
    const samples = silentSamples - this.#toldSamples;
    this.#toldSamples = silentSamples;
    return samples;
  }

  /** Puts back `units`, which `next` returned last. */
  putBack(units: ForeignUnit[]): void {
    this.#pending = units;
  }

  close(): void {
    this.#run.close();
  }
}

/** Makes the timeline of `runs`. */
export function foreignTimeline(facts: ForeignFacts, runs: readonly StreamedRun[]): StreamedTimeline {
  const open = () => new ForeignReading(facts, runs);
  return {
    kind: "streamed",
    runs,
    open,
    async *readRun(run, wanted, source, signal) {
      const reading = open();
      try {
        yield* reading.readRun(run, wanted, source, signal);
      } finally {
        reading.close();
      }
    },
  };
}

/** Reads runs one after the other. */
class ForeignReading implements RunReading {
  readonly #facts: ForeignFacts;
  readonly #runs: readonly StreamedRun[];
  readonly #hasMade: boolean;
  #stream: UnitStream | null = null;
  /** The run that begins with the stream's next unit; -1 in the middle of a run. */
  #next = -1;

  constructor(facts: ForeignFacts, runs: readonly StreamedRun[]) {
    this.#facts = facts;
    this.#runs = runs;
    this.#hasMade = facts.streams.some(({ made }) => made !== null);
  }

  async *readRun(
    run: number,
    wanted: ReadonlySet<number>,
    source: ByteSource,
    signal: AbortSignal,
  ): AsyncGenerator<readonly RunSample[]> {
    if (this.#next !== run) await this.#seek(run, source, signal);
    this.#next = -1;
    const { trackOf, streams } = this.#facts;
    let cut = this.#cutOf(run);
    // By stream: units of the run that were given out, and how many of them come again from a program that was started again.
    const given = new Array<number>(streams.length).fill(0);
    let again = given.slice();
    let silentSamples = 0;
    const sampleOf = (unit: ForeignUnit): RunSample => {
      const sample = this.#sampleOf(unit);
      const { made } = streams[unit.stream]!;
      if (made === null || silentSamples < TARGETS[made.target].frameSamples) return sample;
      silentSamples -= TARGETS[made.target].frameSamples;
      return { ...sample, isSilence: true };
    };
    const take = () =>
      cut.take().filter(({ stream }) => {
        if (!wanted.has(trackOf[stream]!) || again[stream]!-- > 0) return false;
        given[stream]!++;
        return true;
      });
    for (;;) {
      if (this.#stream!.isSetAside) {
        await this.#seek(run, source, signal, true);
        cut = this.#cutOf(run);
        again = given.slice();
      }
      const stream = this.#stream!;
      const units = await stream.next(signal);
      if (units === null) break;
      silentSamples += stream.takeSilence();
      let taken = 0;
      while (taken < units.length && !cut.isDone) {
        const unit = units[taken++]!;
        if (!this.#isPriming(unit)) cut.push(unit);
      }
      const own = take();
      if (own.length > 0) yield own.map(sampleOf);
      if (!cut.isDone) continue;
      if (this.#hasMade) return this.close();
      stream.putBack([...cut.rest(), ...units.slice(taken)]);
      this.#next = run + 1;
      return;
    }
    cut.finish();
    const last = take();
    if (last.length > 0) yield last.map(sampleOf);
  }

  close(): void {
    this.#stream?.close();
    this.#stream = null;
    this.#next = -1;
  }

  #cutOf(run: number): RunCut {
    const { main, streams } = this.#facts;
    return new RunCut({
      streams: streams.length,
      main,
      begins: run === 0 ? null : (unit) => this.#begins(unit, run),
      ends: (unit) => this.#begins(unit, run + 1),
    });
  }

  async #seek(run: number, source: ByteSource, signal: AbortSignal, isContinued = false): Promise<void> {
    this.close();
    const { startS, origin90k } = this.#facts;
    const wantedS = (this.#runs[run]!.startPts90k + origin90k) / 90_000 - LEAD_S;
    const fromS = run === 0 || wantedS < startS + NEAR_S ? null : wantedS;
    this.#stream = await UnitStream.open(this.#facts, fromS, source, signal, isContinued);
  }

  #begins(unit: ForeignUnit, run: number): boolean {
    const { main, streams, origin90k } = this.#facts;
    if (run >= this.#runs.length || !(unit.keyframe || streams[main]!.kind === "audio")) return false;
    return this.#shownAt(unit) - origin90k >= this.#runs[run]!.startPts90k;
  }

  /** Presentation time of a unit. Without one in the file ffmpeg guesses a delay, and another one after a seek. */
  #shownAt({ stream, pts90k, dts90k }: ForeignUnit): number {
    return this.#facts.streams[stream]!.isInOrder ? dts90k : pts90k;
  }

  /** Whether a unit is the first frame of converted sound, which only primes its decoder. */
  #isPriming({ stream, pts90k }: ForeignUnit): boolean {
    const { streams, startS } = this.#facts;
    const { made } = streams[stream]!;
    if (made === null) return false;
    const frame90k = frameTicks(made.target);
    return pts90k < Math.floor(startS * 90_000 / frame90k) * frame90k;
  }

  #sampleOf(unit: ForeignUnit): RunSample {
    const { stream, dts90k, keyframe, data } = unit;
    const { trackOf, streams, origin90k } = this.#facts;
    return {
      track: trackOf[stream]!,
      pts90k: this.#shownAt(unit) - origin90k,
      dts90k: dts90k - origin90k,
      keyframe: keyframe || streams[stream]!.kind === "audio",
      data,
    };
  }
}
