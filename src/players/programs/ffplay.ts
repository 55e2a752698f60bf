/** ffplay as a player: it takes no commands, so it is restarted to seek and to resume. */
import { withSignal } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import { IDLE, type PlayerStatus, type PlayerStream } from "../player-device.ts";
import { FfplayRun } from "./ffplay-run.ts";
import type { ProgramKind, ProgramPorts, RunningProgram } from "./program.ts";

/** Longest title in the window's frame, characters. */
const MAX_TITLE_CHARS = 200;

/** Makes ffplay report its position and why it ends, and exit at the end of the stream. */
const ARGUMENTS = ["-hide_banner", "-loglevel", "info", "-stats", "-autoexit"];

/** ffplay as a kind of program. */
export const FFPLAY: ProgramKind = {
  id: "ffplay",
  name: "ffplay",
  command: "ffplay",
  start: (path, ports) => Promise.resolve(new Ffplay(path, ports)),
};

/** ffplay with a stream. While paused, the program does not run: its window is closed until it resumes. */
class Ffplay implements RunningProgram {
  readonly ended: Promise<void>;
  readonly #path: string;
  readonly #ports: ProgramPorts;
  #finish!: () => void;
  #stream: PlayerStream | null = null;
  #current: FfplayRun | null = null;
  /** Position at which the next run begins; for the current run, at which it began. */
  #fromSeconds = 0;
  #durationSeconds: number | null = null;
  #isOver = false;
  /** The newest change; the next one waits for it, or two windows would be open. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string, ports: ProgramPorts) {
    this.#path = path;
    this.#ports = ports;
    this.ended = new Promise((resolve) => this.#finish = resolve);
  }

  async play(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    const run = await this.#inTurn(async () => {
      await this.#leave();
      if (this.#isOver) throw new MillraceError("closed", "ffplay was ended");
      this.#stream = stream;
      this.#fromSeconds = 0;
      this.#durationSeconds = null;
      return await this.#run(stream);
    });
    try {
      await withSignal(run.begun, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const why = stream.trouble() ?? (error as Error).message;
      throw new MillraceError("unavailable", `ffplay does not play it: ${why}`, { cause: error });
    }
  }

  status(): Promise<PlayerStatus> {
    const run = this.#current;
    if (this.#stream === null) return Promise.resolve(IDLE);
    return Promise.resolve({
      state: run === null ? "paused" : "playing",
      // Timestamps of a broadcast do not count from when somebody began to watch.
      positionSeconds: this.#stream.isLive ? null : run?.positionSeconds ?? this.#fromSeconds,
      durationSeconds: this.#stream.isLive ? null : run?.durationSeconds ?? this.#durationSeconds,
    });
  }

  async control(command: Parameters<RunningProgram["control"]>[0], signal: AbortSignal): Promise<void> {
    await withSignal(this.#inTurn(() => this.#move(command)), signal);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#inTurn(async () => {
      await this.#leave();
      this.#stream = null;
      this.#finish();
    });
  }

  async #move(command: Parameters<RunningProgram["control"]>[0]): Promise<void> {
    const stream = this.#stream;
    if (stream === null) throw new MillraceError("conflict", "ffplay plays nothing now");
    if (stream.isLive) {
      throw new MillraceError("unavailable", "ffplay takes no commands, and a broadcast can only be stopped in it");
    }
    const wasPaused = this.#current === null;
    if (command.kind === (wasPaused ? "pause" : "resume")) return;
    await this.#leave();
    if (command.kind === "seek") this.#fromSeconds = command.positionSeconds;
    if (command.kind === "resume" || (command.kind === "seek" && !wasPaused)) await this.#run(stream);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #run(stream: PlayerStream): Promise<FfplayRun> {
    // The title is shown in a window frame, and no zero byte can be passed to a program.
    // deno-lint-ignore no-control-regex
    const title = stream.title.replace(/[\x00-\x1f\x7f]/g, " ").slice(0, MAX_TITLE_CHARS);
    const from = this.#fromSeconds > 0 ? ["-ss", String(this.#fromSeconds)] : [];
    const args = [...ARGUMENTS, "-window_title", title, ...from, "-i", stream.url];
    const child = await this.#ports.processes.spawn(this.#path, args);
    const run = new FfplayRun(child, this.#ports, stream.url);
    this.#current = run;
    // The stream ended, or the user closed the window.
    void run.ended.then(() => {
      if (this.#current !== run) return;
      this.#current = null;
      this.#stream = null;
    });
    return run;
  }

  /** Ends the run and remembers its position. */
  async #leave(): Promise<void> {
    const run = this.#current;
    if (run === null) return;
    this.#current = null;
    await run.end();
    this.#fromSeconds = run.positionSeconds ?? this.#fromSeconds;
    this.#durationSeconds = run.durationSeconds ?? this.#durationSeconds;
  }
}
