/** An uplink on virtual time: connections with something to send take turns, as a kernel and a fair queue have them do. */
import type { EventWheel } from "./event-wheel.ts";

/** What waits on one connection, in order. */
export interface LineQueue {
  /** Bytes of the first item; null when nothing waits. */
  readonly headBytes: number | null;
  /** The first item has left the line. */
  headSent(): void;
}

/** The up-link of one simulated member. */
export class SimLine {
  private readonly queue: EventWheel;
  private readonly bytesPerS: number;
  private readonly turns: LineQueue[] = [];
  private isSending = false;

  /** `bytesPerS` may be `Infinity`. */
  constructor(queue: EventWheel, bytesPerS: number) {
    this.queue = queue;
    this.bytesPerS = bytesPerS;
  }

  /** `from`, which had nothing to send, has. */
  add(from: LineQueue): void {
    this.turns.push(from);
    this.send();
  }

  private send(): void {
    while (!this.isSending) {
      const next = this.turns.shift();
      if (next === undefined) return;
      const bytes = next.headBytes;
      if (bytes === null) continue;
      this.isSending = true;
      this.queue.after(bytes / this.bytesPerS * 1000, () => {
        this.isSending = false;
        next.headSent();
        if (next.headBytes !== null) this.turns.push(next);
        this.send();
      });
    }
  }
}
