/** A player program on this machine: started when a stream is opened in it, ended with the engine. */
import { withSignal } from "../../bytes/deadline.ts";
import { faultFields, guardedClock } from "../../bytes/guarded-clock.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { Logger, Ports } from "../../ports.ts";
import {
  IDLE,
  type Player,
  type PlayerCommand,
  type PlayerDevice,
  type PlayerStatus,
  type PlayerStream,
} from "../player-device.ts";

/** What a program is started with. */
export interface ProgramPorts extends Pick<Ports, "processes" | "localSockets" | "clock"> {
  /** To be called with exceptions that nobody waits for, as those of the clock's timers are: they end the program. */
  failed(error: unknown): void;
}

/** What a player needs of the machine. */
export type ProgramPlayerPorts = Omit<ProgramPorts, "failed"> & { readonly log: Logger };

/** One run of the program. */
interface Run {
  readonly program: RunningProgram;
  /** Fires when a fault of the engine ended it. */
  readonly broken: AbortSignal;
}

/** A running program. */
export interface RunningProgram {
  /** Resolves when the program has ended, by itself, by its user or by `end`. */
  readonly ended: Promise<void>;
  /** Plays `stream` in place of what plays; resolves when it plays. Rejects with `unavailable` when it does not. */
  play(stream: PlayerStream, signal: AbortSignal): Promise<void>;
  status(signal: AbortSignal): Promise<PlayerStatus>;
  /** Any command but `stop`, which ends the program. */
  control(command: Exclude<PlayerCommand, { kind: "stop" }>, signal: AbortSignal): Promise<void>;
  /** Ends it; resolves when it has. */
  end(): Promise<void>;
}

/** One kind of program. */
export interface ProgramKind {
  /** Last part of the player's id. */
  readonly id: string;
  /** Name for people. */
  readonly name: string;
  /** The command that starts it. */
  readonly command: string;
  /**
   * Starts it idle, or if it cannot run idle prepares to start it. Rejects with `unavailable` and the program's own message
   * when it does not start.
   */
  start(path: string, ports: ProgramPorts, signal: AbortSignal): Promise<RunningProgram>;
}

/** A program as a player. It runs while it has something to play. */
export class ProgramPlayer implements PlayerDevice {
  readonly facts: Player;
  readonly localOnly = true;
  // Programs read every container with its subtitles and chapters; MPEG TS would carry only some of that.
  readonly output = "file";
  readonly host = null;
  readonly #kind: ProgramKind;
  readonly #path: string;
  readonly #ports: ProgramPlayerPorts;
  #running: Run | null = null;
  #closed = false;

  constructor(kind: ProgramKind, path: string, ports: ProgramPlayerPorts) {
    this.facts = { id: `program:${kind.id}`, type: "proxy", protocol: null, name: kind.name, icon: null };
    this.#kind = kind;
    this.#path = path;
    this.#ports = ports;
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    const { program, broken } = this.#running ?? await this.#start(signal);
    try {
      await program.play(stream, AbortSignal.any([signal, broken]));
    } catch (error) {
      // A program that shows nothing would only be in the user's way.
      await program.end();
      throw error;
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    return await this.#running?.program.status(AbortSignal.any([signal, this.#running.broken])) ?? IDLE;
  }

  async control(command: PlayerCommand, signal: AbortSignal): Promise<void> {
    if (this.#running === null) throw new MillraceError("conflict", `${this.facts.name} plays nothing now`);
    const { program, broken } = this.#running;
    if (command.kind === "stop") await withSignal(program.end(), signal);
    else await program.control(command, AbortSignal.any([signal, broken]));
  }

  /** Ends the program for good. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running?.program.end();
  }

  async #start(signal: AbortSignal): Promise<Run> {
    const broken = new AbortController();
    let program: RunningProgram | null = null;
    const failed = (cause: unknown) => {
      this.#ports.log.log("error", "a fault of the engine ended a player", {
        player: this.facts.id,
        ...faultFields(cause),
      });
      // A fault in ending it must not end it again and again.
      if (broken.signal.aborted) return;
      const what = `a fault of the engine ended ${this.facts.name}: open the stream again`;
      broken.abort(new MillraceError("internal", what, { cause }));
      program?.end().catch(failed);
    };
    const ports = { ...this.#ports, failed, clock: guardedClock(this.#ports.clock, failed) };
    program = await this.#kind.start(this.#path, ports, AbortSignal.any([signal, broken.signal]));
    const run = { program, broken: broken.signal };
    this.#running = run;
    program.ended.catch(failed).then(() => {
      if (this.#running === run) this.#running = null;
    });
    if (!this.#closed && !run.broken.aborted) return run;
    await program.end();
    throw run.broken.aborted ? abortError(run.broken) : new MillraceError("closed", "the engine is closing");
  }
}
