/** Peers that left: their data may prove corrupt only later. */
import type { Suspect } from "./evidence.ts";

/** Departed peers remembered; the oldest is forgotten. */
const MAX_DEPARTED = 1024;

/** The departed peers of one swarm, by their number. */
export class Departed {
  readonly #suspects = new Map<number, Suspect>();

  /** Remembers a peer that left. */
  remember(suspect: Suspect): void {
    if (this.#suspects.size >= MAX_DEPARTED) this.#suspects.delete(this.#suspects.keys().next().value!);
    this.#suspects.set(suspect.source, suspect);
  }

  /** The peer `source`, if it is remembered. */
  get(source: number): Suspect | undefined {
    return this.#suspects.get(source);
  }
}
