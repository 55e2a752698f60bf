/** The beginning of a body that may have no end, and its rest for a reader that wants more. */
import { concatBytes } from "../../bytes/hex.ts";

/** Bytes of a body from its start on, as many as were asked for. */
export class BodyHead {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #buffered: Uint8Array = new Uint8Array();
  #over = false;
  #whole = false;
  #failure: unknown = null;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The body ended, and all of it is downloaded. */
  get isWhole(): boolean {
    return this.#whole;
  }

  /**
   * At least the first `sizeBytes` bytes, or all of a shorter body. If the body breaks off or falls silent, the bytes
   * before that are returned; rejects only when nothing came.
   */
  async read(sizeBytes: number): Promise<Uint8Array> {
    const parts = [this.#buffered];
    let length = this.#buffered.length;
    while (length < sizeBytes && !this.#over) {
      try {
        const { done, value } = await this.#reader.read();
        if (done) this.#over = this.#whole = true;
        else {
          parts.push(value);
          length += value.length;
        }
      } catch (error) {
        if (length === 0) throw error;
        this.#over = true;
        this.#failure = error;
      }
    }
    return this.#buffered = concatBytes(parts);
  }

  /** The whole body from its start on, failure included; `read` is over then. */
  stream(): ReadableStream<Uint8Array> {
    let first: Uint8Array | null = this.#buffered;
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        if (first !== null && first.length > 0) {
          controller.enqueue(first);
          first = null;
          return;
        }
        first = null;
        if (this.#failure !== null) throw this.#failure;
        const { done, value } = this.#over ? { done: true } : await this.#reader.read();
        if (done || value === undefined) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => this.#reader.cancel(reason),
    }, { highWaterMark: 0 });
  }

  /** Cancels the body. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }
}
