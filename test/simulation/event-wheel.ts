/**
 * Virtual time for millions of events: a wheel of a quarter millisecond a slot, and a heap for what is further off.
 * Events of one slot run in the order of scheduling, so that a run is the same everywhere.
 */
import { EventQueue } from "./event-queue.ts";

const SLOTS_PER_MS = 4;
/** Slots ahead of now that the wheel holds: 1 s. A power of two. */
const SLOTS = 4096;

export class EventWheel {
  readonly #slots: (() => void)[][] = Array.from({ length: SLOTS }, () => []);
  readonly #far = new EventQueue();
  #slot = 0;

  get nowMs(): number {
    return this.#slot / SLOTS_PER_MS;
  }

  /** Runs `run` in the first slot that begins at `atMs` or later (in this one when that is past). */
  at(atMs: number, run: () => void): void {
    const slot = Math.max(this.#slot, Math.ceil(atMs * SLOTS_PER_MS));
    if (slot - this.#slot < SLOTS) this.#slots[slot & (SLOTS - 1)]!.push(run);
    else this.#far.at(slot, run);
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run);
  }

  /** As `after`, and can be called off. */
  timer(run: () => void, delayMs: number): { cancel(): void } {
    let isOff = false;
    this.after(delayMs, () => isOff || run());
    return { cancel: () => (isOff = true) };
  }

  /** Runs events until `untilMs`. */
  run(untilMs: number): void {
    for (; this.#slot <= untilMs * SLOTS_PER_MS; this.#slot++) {
      this.#far.run(this.#slot);
      const due = this.#slots[this.#slot & (SLOTS - 1)]!;
      // What runs may add to its own slot.
      for (let i = 0; i < due.length; i++) due[i]!();
      due.length = 0;
    }
  }
}
