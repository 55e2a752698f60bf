/**
 * Reads what arrives on one link in portions: a chunk of 64 KiB may hold 13,000 messages, and many links may get such
 * chunks at once. A link that has used up its portion stops reading and waits in one queue with all others.
 */
import { socketTurn } from "../bytes/turn.ts";
import type { TcpConnection } from "../ports.ts";
import type { FrameReader } from "./frame-reader.ts";

/** Units of work (see `unitsOf`) that a link may do at once before it has to wait. */
const PORTION_UNITS = 300;

/** Units that all waiting links together may do before other tasks get a turn: some 2 ms. */
const TURN_UNITS = 2_000;

/** Links that wait for their next portion, in order. There is one event loop, so there is one queue. */
const line: Inflow[] = [];
let isServing = false;

async function serve(): Promise<void> {
  if (isServing) return;
  isServing = true;
  while (line.length > 0) {
    await socketTurn();
    for (let units = 0; units < TURN_UNITS && line.length > 0;) units += Math.max(1, line.shift()!.goOn());
  }
  isServing = false;
}

/** The reading side of one link. */
export class Inflow {
  readonly #connection: Pick<TcpConnection, "pause" | "resume">;
  readonly #reader: FrameReader;
  readonly #guard: (step: () => void) => void;
  #waiting: Uint8Array[] = [];
  #units = 0;
  #isHeld = false;
  #isPaused = false;
  #isClosed = false;

  /** `guard` runs code that may throw, and then ends the link. */
  constructor(
    connection: Pick<TcpConnection, "pause" | "resume">,
    reader: FrameReader,
    guard: (step: () => void) => void,
  ) {
    this.#connection = connection;
    this.#reader = reader;
    this.#guard = guard;
  }

  /** Reads a chunk, which may be reused afterwards; whatever exceeds the portion is read in later turns. */
  read(chunk: Uint8Array): void {
    if (this.#isHeld) {
      // Not `slice`: a chunk may be a Node Buffer, whose `slice` shares its memory.
      this.#waiting.push(new Uint8Array(chunk));
      return;
    }
    this.#units = 0;
    const rest = this.#push(chunk);
    if (rest === null) return;
    this.#waiting.push(new Uint8Array(rest));
    this.#isHeld = true;
    if (!this.#isPaused) this.#connection.pause();
    line.push(this);
    void serve();
  }

  /** Counts work done for a message; when the portion is used up, reading stops after it. */
  spend(units: number): void {
    this.#units += units;
    if (this.#units >= PORTION_UNITS) this.#reader.hold();
  }

  /** Pauses or resumes reading from the socket, for the link's owner. */
  setPaused(value: boolean): void {
    if (this.#isPaused === value || this.#isClosed) return;
    this.#isPaused = value;
    if (this.#isHeld) return;
    if (value) this.#connection.pause();
    else this.#connection.resume();
  }

  /** Reads the next portion of the waiting bytes; returns the units that it took. */
  goOn(): number {
    this.#units = 0;
    while (!this.#isClosed && this.#units < PORTION_UNITS && this.#waiting.length > 0) {
      const rest = this.#push(this.#waiting.shift()!);
      if (rest !== null) this.#waiting.unshift(rest);
    }
    if (this.#isClosed) return this.#units;
    if (this.#waiting.length > 0) line.push(this);
    else {
      this.#isHeld = false;
      if (!this.#isPaused) this.#connection.resume();
    }
    return this.#units;
  }

  /** Drops the waiting bytes. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#reader.stop();
  }

  /** The unread part of `chunk`; null when there is none. */
  #push(chunk: Uint8Array): Uint8Array | null {
    let read = chunk.length;
    this.#guard(() => read = this.#reader.push(chunk));
    return this.#isClosed || read >= chunk.length ? null : chunk.subarray(read);
  }
}
