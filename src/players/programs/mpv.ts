/** mpv as a player: started idle, then controlled through its IPC socket, which only this user can reach. */
import { sleep, withSignal } from "../../bytes/deadline.ts";
import { abortError, hasCode, MillraceError } from "../../errors.ts";
import type { ByteConnection, ChildProcess, LocalAddress } from "../../ports.ts";
import { LastLines } from "../lines.ts";
import { IDLE, type PlayerStatus, type PlayerStream } from "../player-device.ts";
import { MpvIpc } from "./mpv-ipc.ts";
import type { ProgramKind, ProgramPorts, RunningProgram } from "./program.ts";

/** Time between two tries to connect to mpv, ms: it listens some 50 ms after its start. */
const CONNECT_EVERY_MS = 25;
/** How long mpv may take to end when asked to, ms; then it is killed. */
const END_AFTER_MS = 1500;

/**
 * `--idle=once`: it waits for the first stream and ends after the last. `--ytdl=no`: the address is this engine's own, so no
 * script needs to look it up elsewhere.
 */
const ARGUMENTS = ["--idle=once", "--force-window=yes", "--ytdl=no", "--no-input-terminal", "--msg-level=all=error"];

/** mpv as a kind of program. */
export const MPV: ProgramKind = {
  id: "mpv",
  name: "mpv",
  command: "mpv",
  async start(path, ports, signal) {
    const address = await ports.localSockets.newAddress();
    let child: ChildProcess;
    try {
      child = await ports.processes.spawn(path, [...ARGUMENTS, `--input-ipc-server=${address.path}`]);
    } catch (error) {
      await address.remove();
      throw error;
    }
    child.exited.then(() => address.remove()).catch(ports.failed);
    const output = [new LastLines(child.stdout), new LastLines(child.stderr)];
    const newest = () => output.map((lines) => lines.newest(/\S/)).find((line) => line !== null) ?? "it ended at once";
    try {
      const connection = await connect(ports, address, child, signal, newest);
      return new Mpv(ports, child, new MpvIpc(connection, ports.failed));
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  },
};

/** Connects as soon as mpv listens; gives up when it has ended. */
async function connect(
  { localSockets, clock }: ProgramPorts,
  address: LocalAddress,
  child: ChildProcess,
  signal: AbortSignal,
  newest: () => string,
): Promise<ByteConnection> {
  const ended = new AbortController();
  void child.exited.then(() => ended.abort(new MillraceError("unavailable", `mpv did not start: ${newest()}`)));
  const waiting = AbortSignal.any([signal, ended.signal]);
  for (;;) {
    try {
      return await localSockets.connect(address.path, { signal: waiting });
    } catch (error) {
      if (waiting.aborted || !hasCode(error, "connection_failed")) throw error;
      await sleep(clock, CONNECT_EVERY_MS, waiting);
    }
  }
}

/** A running mpv. */
class Mpv implements RunningProgram {
  readonly ended: Promise<void>;
  readonly #ports: ProgramPorts;
  readonly #child: ChildProcess;
  readonly #ipc: MpvIpc;

  constructor(ports: ProgramPorts, child: ChildProcess, ipc: MpvIpc) {
    this.#ports = ports;
    this.#child = child;
    this.#ipc = ipc;
    this.ended = child.exited.then(() => ipc.close());
  }

  async play(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    const begun = this.#begins(stream);
    try {
      await this.#ipc.command(["set_property", "force-media-title", stream.title], signal);
      await this.#ipc.command(["set_property", "pause", false], signal);
      await this.#ipc.command(["loadfile", stream.url, "replace"], signal);
      await withSignal(begun.promise, signal);
    } finally {
      begun.forget();
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    if (await this.#property("idle-active", signal) === true) return IDLE;
    const [paused, position, duration] = await Promise.all(
      ["pause", "time-pos", "duration"].map((name) => this.#property(name, signal)),
    );
    return {
      state: paused === true ? "paused" : "playing",
      positionSeconds: typeof position === "number" ? position : null,
      durationSeconds: typeof duration === "number" ? duration : null,
    };
  }

  async control(command: Parameters<RunningProgram["control"]>[0], signal: AbortSignal): Promise<void> {
    if (command.kind === "seek") await this.#ipc.command(["seek", command.positionSeconds, "absolute"], signal);
    else await this.#ipc.command(["set_property", "pause", command.kind === "pause"], signal);
  }

  async end(): Promise<void> {
    const late = new AbortController();
    const timer = this.#ports.clock.setTimeout(() => {
      late.abort();
      this.#child.kill("SIGKILL");
    }, END_AFTER_MS);
    await this.#ipc.command(["quit"], late.signal).catch(() => this.#child.kill());
    await this.ended;
    timer.cancel();
  }

  /** Resolves when the stream that is loaded next is shown, or about to be; rejects when it will not be. */
  #begins(stream: PlayerStream): { promise: Promise<void>; forget(): void } {
    let forget = () => {};
    const promise = new Promise<void>((resolve, reject) => {
      const fail = (why: string) =>
        reject(new MillraceError("unavailable", `mpv does not play it: ${stream.trouble() ?? why}`));
      // The end of the previous stream is reported before the start of the next.
      let hasStarted = false;
      forget = this.#ipc.listen(({ event, reason, file_error }) => {
        if (event === "start-file") hasStarted = true;
        else if (hasStarted && event === "playback-restart") resolve();
        else if (hasStarted && event === "end-file" && reason !== "redirect") {
          fail(file_error ?? `it ended (${reason})`);
        }
      });
      this.ended.then(() => fail("it was closed")).catch(this.#ports.failed);
    });
    promise.catch(() => {});
    return { promise, forget };
  }

  /** Reads a property; undefined when mpv has no value for it now. */
  async #property(name: string, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.#ipc.command(["get_property", name], signal);
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      if (hasCode(error, "unavailable")) return undefined;
      throw error;
    }
  }
}
