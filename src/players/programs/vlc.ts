/** VLC 3: told what to play through its command line interface on standard input, which nobody but the engine can reach. */
import { sleep } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock } from "../../ports.ts";
import { LastLines } from "../lines.ts";
import { IDLE, type PlayerStatus, type PlayerStream } from "../types.ts";
import type { ProgramKind, RunningProgram } from "./program.ts";
import { VlcCli } from "./vlc-cli.ts";

/** Time between two checks whether it plays: VLC reports nothing by itself. */
const LOOK_EVERY_MS = 100;
/** A VLC that still says "stopped" this long after it was told to play has given up, ms: it says so for a moment at first. */
const REFUSED_AFTER_MS = 2000;
/** VLC must end within this after it was asked to; then it is ended, ms. */
const END_AFTER_MS = 1500;

/** How VLC says on standard error that a stream can't be played. */
const FAILURE = /unable to open the MRL|input can't be opened|could not decode|no suitable decoder/i;
/** The sign that its command line interface listens. */
const GREETING = /Command Line Interface initialized/;
/** Characters of an address in a command: everything else might be read as another command, an option or a quote. */
const PLAIN_ADDRESS = /^https?:\/\/[\w\-.~:/?#@&+=%[\]]+$/;

/**
 * `cli` beside the interface that the user sees, on a standard input that is no terminal. Nothing else that not every VLC has:
 * an option that it does not know ends it.
 */
const ARGUMENTS = ["--extraintf=cli", "--rc-fake-tty", "--no-metadata-network-access", "--no-video-title-show"];

/** VLC as a kind of program. */
export const VLC: ProgramKind = {
  id: "vlc",
  name: "VLC",
  command: "vlc",
  async start(path, ports, signal) {
    const child = await ports.processes.spawn(path, ARGUMENTS);
    const cli = new VlcCli(child.stdin, child.stdout);
    let failures = 0;
    const errors = new LastLines(child.stderr, (line) => {
      if (FAILURE.test(line)) failures++;
    });
    void child.exited.then(() => cli.close());
    try {
      await cli.line(GREETING, signal);
    } catch (error) {
      child.kill("SIGKILL");
      if (signal.aborted) throw error;
      const why = errors.newest(/\S/) ?? "it ended at once";
      throw new MillraceError("unavailable", `VLC did not start: ${why}`, { cause: error });
    }
    return new Vlc(ports.clock, child, cli, { count: () => failures, newest: () => errors.newest(/error:/) });
  },
};

/** What VLC complained of. */
interface Failures {
  count(): number;
  newest(): string | null;
}

/** A VLC that runs. */
class Vlc implements RunningProgram {
  readonly ended: Promise<void>;
  readonly #clock: Clock;
  readonly #child: ChildProcess;
  readonly #cli: VlcCli;
  readonly #failures: Failures;

  constructor(clock: Clock, child: ChildProcess, cli: VlcCli, failures: Failures) {
    this.#clock = clock;
    this.#child = child;
    this.#cli = cli;
    this.#failures = failures;
    this.ended = child.exited.then(() => {});
  }

  async play(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    if (!PLAIN_ADDRESS.test(stream.url)) throw new MillraceError("internal", "an address that VLC might misread");
    await this.#cli.send("stop\nclear", signal);
    // What played before would be taken for the stream.
    while ((await this.status(signal)).state !== "idle") await sleep(this.#clock, LOOK_EVERY_MS, signal);
    const failuresBefore = this.#failures.count();
    await this.#cli.send(`add ${stream.url}`, signal);
    for (let stoppedMs = 0;;) {
      const { state, positionSeconds, durationSeconds } = await this.status(signal);
      if (state === "idle") stoppedMs += LOOK_EVERY_MS;
      if (this.#failures.count() > failuresBefore || stoppedMs >= REFUSED_AFTER_MS) {
        const why = stream.trouble() ?? this.#failures.newest()?.replace(/^\[[0-9a-f]+\] /, "") ?? "it stops";
        throw new MillraceError("unavailable", `VLC does not play it: ${why}`);
      }
      // It says "playing" while it opens a stream, too; then it knows neither length nor time.
      if (state !== "idle" && ((positionSeconds ?? 0) > 0 || (durationSeconds ?? 0) > 0)) return;
      await sleep(this.#clock, LOOK_EVERY_MS, signal);
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    const { state, timeSeconds, lengthSeconds } = await this.#cli.status(signal);
    if (state === "stopped") return IDLE;
    return {
      state: state === "paused" ? "paused" : "playing",
      positionSeconds: timeSeconds,
      durationSeconds: lengthSeconds === 0 ? null : lengthSeconds,
    };
  }

  async control(command: Parameters<RunningProgram["control"]>[0], signal: AbortSignal): Promise<void> {
    const { state } = await this.status(signal);
    if (state === "idle") throw new MillraceError("conflict", "VLC plays nothing now");
    if (command.kind === "seek") {
      await this.#cli.send(`seek ${Math.floor(command.positionSeconds)}`, signal);
    } else if ((command.kind === "pause") !== (state === "paused")) {
      // Its command turns one into the other.
      await this.#cli.send("pause", signal);
    }
  }

  async end(): Promise<void> {
    const late = new AbortController();
    const timer = this.#clock.setTimeout(() => {
      late.abort();
      this.#child.kill("SIGKILL");
    }, END_AFTER_MS);
    await this.#cli.send("shutdown", late.signal).catch(() => this.#child.kill());
    await this.ended;
    timer.cancel();
  }
}
