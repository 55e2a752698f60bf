/** A digest of all that simulated members say, to tell whether a change of the code changed what they do. */
import type { EventWheel } from "./event-wheel.ts";

const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

/** Two digests of 32 bits (FNV-1a, and the same backwards through each entry) over everything added, in its order. */
export class MessageLog {
  readonly #number = new Float64Array(1);
  readonly #numberBytes = new Uint8Array(this.#number.buffer);
  #forwards = OFFSET_BASIS;
  #backwards = OFFSET_BASIS;

  /** Notes that a message left at `atMs`: who sent it to whom, and its bytes. */
  add(atMs: number, from: string, to: string, message: Uint8Array): void {
    this.#addNumber(atMs);
    this.#addText(from);
    this.#addText(to);
    this.#addBytes(message);
  }

  /** Notes that at `atMs` a decision was taken: its name and its numbers. */
  note(atMs: number, name: string, ...numbers: readonly number[]): void {
    this.#addNumber(atMs);
    this.#addText(name);
    for (const number of numbers) this.#addNumber(number);
  }

  /** Both digests as 16 hex digits. */
  get hex(): string {
    return [this.#forwards, this.#backwards].map((digest) => (digest >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #addNumber(value: number): void {
    this.#number[0] = value;
    this.#addBytes(this.#numberBytes);
  }

  #addText(text: string): void {
    for (let i = 0; i < text.length; i++) this.#forwards = Math.imul(this.#forwards ^ text.charCodeAt(i), PRIME);
  }

  #addBytes(bytes: Uint8Array): void {
    let [forwards, backwards] = [this.#forwards, this.#backwards];
    for (let i = 0, end = bytes.length - 1; i <= end; i++) {
      forwards = Math.imul(forwards ^ bytes[i]!, PRIME);
      backwards = Math.imul(backwards ^ bytes[end - i]!, PRIME);
    }
    [this.#forwards, this.#backwards] = [forwards, backwards];
  }
}

const LOGS = new WeakMap<EventWheel, MessageLog>();

/** Begins to keep the log of a run. */
export function beginLog(queue: EventWheel): MessageLog {
  const log = new MessageLog();
  LOGS.set(queue, log);
  return log;
}

/** The log of a run; null when none is kept: it costs time. */
export function logOf(queue: EventWheel): MessageLog | null {
  return LOGS.get(queue) ?? null;
}
