/** Results that are too large to hold: their JSON text, made as fast as the caller reads. */
import { FREED, lendChunks } from "../../bytes/lent-chunks.ts";

/** A piece of JSON text, as a string or as its UTF-8. */
type Part = string | Uint8Array<ArrayBuffer>;

/** A result as chunks of JSON text. Made by `jsonStream`. */
export class JsonStream {
  readonly #parts: AsyncIterable<Part>;

  /** The joined `parts` are one JSON value; no other code may keep their memory. */
  constructor(parts: AsyncIterable<Part>) {
    this.#parts = parts;
  }

  /**
   * The value between `before` and `after`, UTF-8. Rejects when not even the first part can be made. A later failure
   * cuts the body off, so that nobody takes half a value for the whole.
   */
  async wrapped(before: string, after: string): Promise<ReadableStream<Uint8Array>> {
    const encoder = new TextEncoder();
    const iterator = this.#parts[Symbol.asyncIterator]();
    let next: Promise<IteratorResult<Part>> | null = Promise.resolve(await iterator.next());
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encoder.encode(before)),
      async pull(controller) {
        const { done, value } = await (next ?? iterator.next());
        next = null;
        const part = done ? after : value;
        controller.enqueue(typeof part === "string" ? encoder.encode(part) : part);
        if (done) controller.close();
      },
      async cancel() {
        await iterator.return?.();
      },
    });
    lendChunks(body, FREED);
    return body;
  }
}

/** A result made of `items` between two texts. */
export function jsonStream(before: string, items: AsyncIterable<Part>, after: string): JsonStream {
  return new JsonStream((async function* () {
    const iterator = items[Symbol.asyncIterator]();
    try {
      // The first page is made before anything is sent: if it fails, the call fails.
      let part = await iterator.next();
      yield before;
      for (; !part.done; part = await iterator.next()) yield part.value;
      yield after;
    } finally {
      await iterator.return?.();
    }
  })());
}
