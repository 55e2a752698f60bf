/** Peers that left: their data may prove corrupt only later. */
import { hostKey } from "./address.ts";
import type { Suspect } from "./evidence.ts";

/** Departed peers whose address is remembered; the oldest is forgotten. */
const MAX_DEPARTED = 1024;

/** The departed peers of one swarm, by their number. */
export class Departed {
  readonly #suspects = new Map<number, Suspect>();

  /** Remembers the host of the peer `source`. */
  remember(source: number, host: string): void {
    if (this.#suspects.size >= MAX_DEPARTED) this.#suspects.delete(this.#suspects.keys().next().value!);
    this.#suspects.set(source, { source, host: hostKey(host) });
  }

  /** The peer `source`, if it is remembered. */
  get(source: number): Suspect | undefined {
    return this.#suspects.get(source);
  }
}
