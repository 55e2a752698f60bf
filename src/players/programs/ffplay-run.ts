/** One run of ffplay: it takes no commands, but prints its position on standard error. */
import { guarded } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock } from "../../ports.ts";
import { LastLines, linesOf } from "../lines.ts";
import type { ProgramPorts } from "./program.ts";

/** How long ffplay may take to end when asked to, ms; then it is killed. */
const END_AFTER_MS = 1500;

/** The status line, some 30 times per second: its clock, in seconds of the file's own time stamps, `nan` before the first frame. */
const STATUS = /^ *(-?\d+\.\d+|nan) (?:A-V|M-V|M-A| {3}):/;
/** The line with the file's length; broadcasts have none. */
const LENGTH = /^ *Duration: (?:(\d+):(\d+):(\d+\.\d+)|N\/A)(?:, start: (-?\d+\.\d+))?/;
const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;

/** State of one run of ffplay. */
export class FfplayRun {
  /** Resolves when it plays. Rejects with `unavailable` and ffplay's own words when it ends before. */
  readonly begun: Promise<void>;
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  #clockSeconds: number | null = null;
  #startSeconds = 0;
  #durationSeconds: number | null = null;
  #lastWords = "it ended at once";

  /** `address` is removed from error messages: it is a secret, and useless to people. */
  constructor(child: ChildProcess, { clock, failed }: Pick<ProgramPorts, "clock" | "failed">, address: string) {
    this.#child = child;
    this.#clock = clock;
    new LastLines(child.stdout);
    let begin!: () => void;
    const take = guarded((line: string) => this.#take(line, address, () => begin()), failed);
    const reading = this.#read(child.stderr, take).catch(() => {});
    this.ended = Promise.all([child.exited, reading]).then(() => {});
    this.begun = new Promise((resolve, reject) => {
      begin = resolve;
      void this.ended.then(() => reject(new MillraceError("unavailable", this.#lastWords)));
    });
    this.begun.catch(() => {});
  }

  /** Position from the beginning of the file, s; null before the first frame. */
  get positionSeconds(): number | null {
    return this.#clockSeconds === null ? null : Math.max(0, this.#clockSeconds - this.#startSeconds);
  }

  /** Duration, s; null for a broadcast, and before the file was read. */
  get durationSeconds(): number | null {
    return this.#durationSeconds;
  }

  /** Ends it; resolves when it has. */
  async end(): Promise<void> {
    this.#child.kill();
    const timer = this.#clock.setTimeout(() => this.#child.kill("SIGKILL"), END_AFTER_MS);
    await this.ended;
    timer.cancel();
  }

  async #read(stderr: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
    for await (const line of linesOf(stderr.pipeThrough(withLineFeeds()))) take(line);
  }

  #take(line: string, address: string, begin: () => void): void {
    const status = STATUS.exec(line);
    if (status !== null) {
      if (status[1] === "nan") return;
      this.#clockSeconds = Number(status[1]);
      begin();
      return;
    }
    const length = LENGTH.exec(line);
    if (length !== null) {
      const [hours, minutes, seconds, start] = length.slice(1).map((part) => Number(part ?? NaN));
      this.#durationSeconds = Number.isNaN(hours) ? null : hours! * 3600 + minutes! * 60 + seconds!;
      this.#startSeconds = Number.isNaN(start) ? 0 : start!;
    } else if (/\S/.test(line)) {
      this.#lastWords = line.replace(`${address}: `, "").replaceAll(address, "").trim();
    }
  }
}

/** Turns carriage returns into line feeds: the status line ends with one, so that a terminal shows it in place. */
function withLineFeeds(): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.map((byte) => byte === CARRIAGE_RETURN ? LINE_FEED : byte));
    },
  });
}
