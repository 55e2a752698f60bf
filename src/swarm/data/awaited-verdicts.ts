/**
 * Pieces that failed their hash while another one with a common sender is already being fetched again to find the liar.
 * Its verdict most likely explains them too: then only the liar's blocks are needed again, not the whole pieces.
 */
import type { Clock, Timer } from "../../ports.ts";
import type { Assembly } from "./assembly.ts";

/** A verdict takes a round trip and a piece. After this a piece is fetched again by itself, ms: somebody may wait for it. */
const PATIENCE_MS = 1_500;

interface Awaiting {
  readonly assembly: Assembly;
  readonly senders: readonly number[];
  /** The piece whose verdict is awaited. */
  readonly of: number;
  readonly timer: Timer;
}

/** What comes of them. */
export interface VerdictEvents {
  /** The blocks of known `liars` in it are wanted again, the others are kept. */
  explained(assembly: Assembly, liars: readonly number[]): void;
  /** The verdict did not explain it, or did not come in time. */
  unexplained(assembly: Assembly): void;
}

/** Complete pieces with wrong hashes, at most `limitBytes` of them. */
export class AwaitedVerdicts {
  readonly #clock: Clock;
  readonly #limitBytes: number;
  readonly #events: VerdictEvents;
  readonly #pieces = new Map<number, Awaiting>();
  #bytes = 0;

  constructor(clock: Clock, limitBytes: number, events: VerdictEvents) {
    this.#clock = clock;
    this.#limitBytes = limitBytes;
    this.#events = events;
  }

  /** Has the piece wait for the verdict on piece `of`; false when there is no memory for it. */
  add(assembly: Assembly, senders: readonly number[], of: number): boolean {
    if (this.#bytes + assembly.lengthBytes > this.#limitBytes) return false;
    this.#bytes += assembly.lengthBytes;
    const timer = this.#clock.setTimeout(() => this.#giveUp(assembly.piece), PATIENCE_MS);
    this.#pieces.set(assembly.piece, { assembly, senders, of, timer });
    return true;
  }

  /** Somebody was convicted: the pieces with blocks of `liars` are explained. */
  convicted(liars: ReadonlySet<number>): void {
    for (const { assembly, senders } of [...this.#pieces.values()]) {
      const known = senders.filter((sender) => liars.has(sender));
      if (known.length === 0) continue;
      this.#take(assembly.piece);
      // Of a piece that liars alone sent nothing is left.
      if (known.length < senders.length) this.#events.explained(assembly, known);
      else this.#events.unexplained(assembly);
    }
  }

  /** Piece `of` is good, or is judged in another way: what still waits for it is not explained. */
  settled(of: number): void {
    for (const { assembly, of: awaited } of [...this.#pieces.values()]) {
      if (awaited === of) this.#giveUp(assembly.piece);
    }
  }

  /** Ends all waiting without a word. */
  close(): void {
    for (const piece of [...this.#pieces.keys()]) this.#take(piece);
  }

  #giveUp(piece: number): void {
    const awaiting = this.#take(piece);
    if (awaiting !== undefined) this.#events.unexplained(awaiting.assembly);
  }

  #take(piece: number): Awaiting | undefined {
    const awaiting = this.#pieces.get(piece);
    if (awaiting === undefined) return undefined;
    this.#pieces.delete(piece);
    this.#bytes -= awaiting.assembly.lengthBytes;
    awaiting.timer.cancel();
    return awaiting;
  }
}
