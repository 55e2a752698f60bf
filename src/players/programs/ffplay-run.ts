/** One run of ffplay: it takes no commands, but says on standard error where it is. */
import { MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock } from "../../ports.ts";
import { LastLines, linesOf } from "../lines.ts";

/** ffplay must end within this after it was asked to; then it is ended, ms. */
const END_AFTER_MS = 1500;

/** The status line, some 30 times per second: its clock, in seconds of the file's own time stamps, `nan` before the first frame. */
const STATUS = /^ *(-?\d+\.\d+|nan) (?:A-V|M-V|M-A| {3}):/;
/** What the file says of itself; without a length for broadcasts. */
const LENGTH = /^ *Duration: (?:(\d+):(\d+):(\d+\.\d+)|N\/A)(?:, start: (-?\d+\.\d+))?/;
const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;

/** Where a run of ffplay is. */
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

  /** `address` is left out of its words: it is a secret, and says nothing to people. */
  constructor(child: ChildProcess, clock: Clock, address: string) {
    this.#child = child;
    this.#clock = clock;
    new LastLines(child.stdout);
    let begin!: () => void;
    const reading = this.#read(child.stderr, address, () => begin()).catch(() => {});
    this.ended = Promise.all([child.exited, reading]).then(() => {});
    this.begun = new Promise((resolve, reject) => {
      begin = resolve;
      void this.ended.then(() => reject(new MillraceError("unavailable", this.#lastWords)));
    });
    this.begun.catch(() => {});
  }

  /** From the beginning of the file; null before the first frame. */
  get positionSeconds(): number | null {
    return this.#clockSeconds === null ? null : Math.max(0, this.#clockSeconds - this.#startSeconds);
  }

  /** Null for a broadcast, and before the file was read. */
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

  async #read(stderr: ReadableStream<Uint8Array>, address: string, begin: () => void): Promise<void> {
    for await (const line of linesOf(stderr.pipeThrough(withLineFeeds()))) {
      const status = STATUS.exec(line);
      if (status !== null) {
        if (status[1] === "nan") continue;
        this.#clockSeconds = Number(status[1]);
        begin();
        continue;
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
}

/** The status line ends with a carriage return, to stand in one place of a terminal. */
function withLineFeeds(): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.map((byte) => byte === CARRIAGE_RETURN ? LINE_FEED : byte));
    },
  });
}
