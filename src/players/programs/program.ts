/** A player program on this machine: started when a stream is opened in it, ended with the engine. */
import { withSignal } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import type { Ports } from "../../ports.ts";
import {
  IDLE,
  type Player,
  type PlayerCommand,
  type PlayerDevice,
  type PlayerStatus,
  type PlayerStream,
} from "../types.ts";

/** What programs are started with. */
export type ProgramPorts = Pick<Ports, "processes" | "localSockets" | "clock">;

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
  readonly #ports: ProgramPorts;
  #running: RunningProgram | null = null;
  #closed = false;

  constructor(kind: ProgramKind, path: string, ports: ProgramPorts) {
    this.facts = { id: `program:${kind.id}`, type: "proxy", protocol: null, name: kind.name, icon: null };
    this.#kind = kind;
    this.#path = path;
    this.#ports = ports;
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    const program = this.#running ?? await this.#start(signal);
    try {
      await program.play(stream, signal);
    } catch (error) {
      // A program that shows nothing would only be in the user's way.
      await program.end();
      throw error;
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    return await this.#running?.status(signal) ?? IDLE;
  }

  async control(command: PlayerCommand, signal: AbortSignal): Promise<void> {
    const program = this.#running;
    if (program === null) throw new MillraceError("conflict", `${this.facts.name} plays nothing now`);
    if (command.kind === "stop") await withSignal(program.end(), signal);
    else await program.control(command, signal);
  }

  /** Ends the program for good. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running?.end();
  }

  async #start(signal: AbortSignal): Promise<RunningProgram> {
    const program = await this.#kind.start(this.#path, this.#ports, signal);
    this.#running = program;
    void program.ended.then(() => {
      if (this.#running === program) this.#running = null;
    });
    if (!this.#closed) return program;
    await program.end();
    throw new MillraceError("closed", "the engine is closing");
  }
}
