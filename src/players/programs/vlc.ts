/** VLC 3 as a player: controlled through its command line interface on standard input, which only the engine can reach. */
import { sleep } from "../../bytes/deadline.ts";
import { guarded } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock } from "../../ports.ts";
import { LastLines } from "../lines.ts";
import { IDLE, type PlayerStatus, type PlayerStream } from "../player-device.ts";
import type { ProgramKind, RunningProgram } from "./program.ts";
import { VlcCli } from "./vlc-cli.ts";

/** Time between two checks whether it plays, ms: VLC reports nothing by itself. */
const LOOK_EVERY_MS = 100;
/** If VLC still reports "stopped" this long after a play command, it has given up, ms; for a moment it always does. */
const REFUSED_AFTER_MS = 2000;
/** How long VLC may take to end when asked to, ms; then it is killed. */
const END_AFTER_MS = 1500;

/** VLC's messages on standard error that a stream can't be played. */
const FAILURE = /unable to open the MRL|input can't be opened|could not decode|no suitable decoder/i;
/** Printed when the command line interface is ready. */
const GREETING = /Command Line Interface initialized/;
/** Characters of an address in a command: everything else might be read as another command, an option or a quote. */
const PLAIN_ADDRESS = /^https?:\/\/[\w\-.~:/?#@&+=%[\]]+$/;

/**
 * `cli` runs beside the visible interface, on a standard input that is not a terminal. Only options that every VLC 3 has:
 * VLC exits when it does not know an option.
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
    const count = (line: string) => {
      if (FAILURE.test(line)) failures++;
    };
    const errors = new LastLines(child.stderr, guarded(count, ports.failed));
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

/** Errors that VLC printed. */
interface Failures {
  count(): number;
  newest(): string | null;
}

/** A running VLC. */
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
    // Wait for the previous stream to end, or it would be taken for the new one.
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
      // It also reports "playing" while it opens a stream, but then has neither length nor time.
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
      // VLC's "pause" command toggles.
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
