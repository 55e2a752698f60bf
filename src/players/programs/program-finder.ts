/** Finds player programs: those that the user named, else those on the PATH. */
import { MillraceError } from "../../errors.ts";
import type { Ports } from "../../ports.ts";
import type { PlayerDevice, PlayerFinder } from "../player-device.ts";
import { FFPLAY } from "./ffplay.ts";
import { MPV } from "./mpv.ts";
import { type ProgramKind, ProgramPlayer, type ProgramPlayerPorts } from "./program.ts";
import { VLC } from "./vlc.ts";

/** All kinds, in the order in which they are listed. */
const KINDS: readonly ProgramKind[] = [MPV, VLC, FFPLAY];

/** The PATH is searched again after this long, ms: somebody may have installed a player. */
const LOOK_AGAIN_MS = 60_000;

/** Where programs come from. */
export interface ProgramFinderOptions {
  /** Commands or paths of programs. If empty: mpv, VLC and ffplay if they are found, on machines with a desktop. */
  readonly programs: readonly string[];
  /** Whether to look for programs that the user did not name. */
  readonly discovery: boolean;
}

/** Player programs of this machine. */
export class ProgramFinder implements PlayerFinder {
  readonly #ports: ProgramPlayerPorts & Pick<Ports, "programs">;
  readonly #wanted: readonly (readonly [kind: ProgramKind, command: string])[];
  readonly #players = new Map<ProgramKind, ProgramPlayer>();
  #looked: { readonly atMs: number; readonly over: Promise<void> } | null = null;

  /** Throws `config` for a program whose name is not that of a known player. */
  constructor(ports: ProgramPlayerPorts & Pick<Ports, "programs">, { programs, discovery }: ProgramFinderOptions) {
    this.#ports = ports;
    this.#wanted = programs.length > 0
      ? programs.map((command) => [kindOf(command), command] as const)
      // Without a desktop they cannot open windows.
      : discovery && ports.programs.hasDesktop()
      ? KINDS.map((kind) => [kind, kind.command] as const)
      : [];
  }

  async list(): Promise<readonly PlayerDevice[]> {
    const nowMs = this.#ports.clock.monotonic();
    if (this.#looked === null || nowMs - this.#looked.atMs >= LOOK_AGAIN_MS) {
      this.#looked = { atMs: nowMs, over: this.#look() };
    }
    await this.#looked.over;
    return KINDS.flatMap((kind) => this.#players.get(kind) ?? []);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#players.values()].map((player) => player.close()));
  }

  async #look(): Promise<void> {
    for (const [kind, command] of this.#wanted) {
      if (this.#players.has(kind)) continue;
      const path = await this.#ports.programs.find(command);
      if (path !== null) this.#players.set(kind, new ProgramPlayer(kind, path, this.#ports));
    }
  }
}

/** Recognises the program by the last part of its path: `/opt/mpv/bin/mpv`, `cvlc`, `vlc.exe`. */
function kindOf(command: string): ProgramKind {
  const name = command.split(/[/\\]/).at(-1)!.toLowerCase();
  const kind = KINDS.find(({ id }) => name.includes(id));
  if (kind === undefined) {
    throw new MillraceError("config", `player: ${command} is neither mpv, VLC nor ffplay by its name`);
  }
  return kind;
}
