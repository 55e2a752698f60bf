/** Closes what was opened, in reverse order. */
import { MillraceError } from "../errors.ts";
import type { Logger } from "../ports.ts";

/** Ends one part of the engine. */
export type Closer = () => Promise<void> | void;

/** The open parts of an engine: each is pushed as soon as it is open. */
export class CloseStack {
  readonly #log: Logger;
  readonly #steps: (readonly Closer[])[] = [];
  readonly #ending = new AbortController();
  #closing: Promise<void> | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Aborts with `closed` when closing begins, before anything is closed. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Has `parts` closed before everything pushed earlier, and at the same time as each other. */
  push(...parts: Closer[]): void {
    this.#steps.push(parts);
  }

  /** Closes everything once. Never rejects: a failure is logged and does not keep another part open. */
  close(): Promise<void> {
    return this.#closing ??= this.#closeAll();
  }

  async #closeAll(): Promise<void> {
    this.#ending.abort(new MillraceError("closed", "the engine is closing"));
    for (const parts of this.#steps.reverse()) {
      await Promise.all(parts.map(async (close) => {
        try {
          await close();
        } catch (error) {
          this.#log.log("warn", "a part of the engine did not close", { error });
        }
      }));
    }
  }
}
