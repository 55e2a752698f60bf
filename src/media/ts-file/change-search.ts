/**
 * Finds where the program of a large transport stream gets other tracks, if it ends with others than it begins with: by halving,
 * each step one bounded read. Tracks that come and go in between are not noticed.
 */
import { hasSameTracks } from "./follow.ts";
import type { ChosenProgram } from "./programs.ts";
import type { ClockBreak, TimeScanner } from "./time-scan.ts";

/** The program at a place. */
export interface ProgramPlace {
  readonly packet: number;
  readonly program: ChosenProgram;
}

/** Most packets read to find a map, about 512 KiB; maps come ten times per second, or each second. */
const MAP_PACKETS = 2800;
/** Most reads of one search: two changes in a file of 100 GB. */
const MAX_LOOKS = 40;

/** Searches for changes of the tracks. */
export class ChangeSearch {
  readonly #scanner: TimeScanner;
  #looks = MAX_LOOKS;

  constructor(scanner: TimeScanner) {
    this.#scanner = scanner;
  }

  /** The changes between `a` and `b`, in order: none if the tracks are the same in both. */
  async between(a: ProgramPlace, b: ProgramPlace): Promise<ClockBreak[]> {
    if (hasSameTracks(a.program, b.program)) return [];
    let [low, high] = [a, b];
    while (high.packet - low.packet > MAP_PACKETS) {
      const packet = Math.floor((low.packet + high.packet) / 2);
      const program = await this.#programAt(packet);
      if (program === null) return [];
      if (hasSameTracks(program, a.program)) low = { packet, program };
      else high = { packet, program };
    }
    if (this.#looks-- <= 0) return [];
    const { breaks } = await this.#scanner.scan(low.packet, high.packet - low.packet + MAP_PACKETS, "any");
    const found = breaks.find(({ isOther }) => isOther);
    if (found === undefined) return [];
    return [found, ...await this.between({ packet: found.after.packet, program: high.program }, b)];
  }

  async #programAt(packet: number): Promise<ChosenProgram | null> {
    if (this.#looks-- <= 0) return null;
    return (await this.#scanner.scan(packet, MAP_PACKETS, "any", ({ program }) => program !== null)).program;
  }
}
