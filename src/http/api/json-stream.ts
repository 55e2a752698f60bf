/** Results that are too large to hold: their JSON text, made as fast as the caller reads. */

/** See the module. */
export class JsonStream {
  private readonly parts: AsyncIterable<string>;

  /** `parts` joined are one JSON value. */
  constructor(parts: AsyncIterable<string>) {
    this.parts = parts;
  }

  /**
   * The value between `before` and `after`, UTF-8. Rejects when not even the first part can be made; a later failure
   * breaks the body off, so that nobody takes half a value for the whole.
   */
  async wrapped(before: string, after: string): Promise<ReadableStream<Uint8Array>> {
    const encoder = new TextEncoder();
    const iterator = this.parts[Symbol.asyncIterator]();
    let next: Promise<IteratorResult<string>> | null = Promise.resolve(await iterator.next());
    return new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encoder.encode(before)),
      async pull(controller) {
        const { done, value } = await (next ?? iterator.next());
        next = null;
        controller.enqueue(encoder.encode(done ? after : value));
        if (done) controller.close();
      },
      async cancel() {
        await iterator.return?.();
      },
    });
  }
}

/** A result made of `items` between two texts. */
export function jsonStream(before: string, items: AsyncIterable<string>, after: string): JsonStream {
  return new JsonStream((async function* () {
    const iterator = items[Symbol.asyncIterator]();
    try {
      // The first page comes with what stands before it: when it fails, nothing has been said yet.
      const first = await iterator.next();
      yield before + (first.done ? "" : first.value);
      if (!first.done) {
        for (let part = await iterator.next(); !part.done; part = await iterator.next()) yield part.value;
      }
      yield after;
    } finally {
      await iterator.return?.();
    }
  })());
}
