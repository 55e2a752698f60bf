/** Splits the output of a player into lines. */

/** Longest line kept, characters: answers to the engine's queries have some hundred. The rest of a longer one is dropped. */
const MAX_LINE_CHARS = 64 * 1024;

/**
 * Yields the lines of `stream` without their ends (LF or CR LF), and a last line without an end. It reads no faster than
 * lines are consumed. Rejects as the stream does.
 */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let line = "";
  for await (const chunk of stream) {
    const parts = decoder.decode(chunk, { stream: true }).split("\n");
    for (const [index, part] of parts.entries()) {
      if (index > 0) {
        yield line.replace(/\r$/, "");
        line = "";
      }
      if (line.length < MAX_LINE_CHARS) line += part.slice(0, MAX_LINE_CHARS - line.length);
    }
  }
  if (line !== "") yield line;
}

/** Reads `stream` to its end and keeps the last few lines, for the message of an error. */
export class LastLines {
  /** Lines kept: a player's reason to fail is among its last lines, after many warnings. */
  static readonly #KEPT = 20;
  readonly #lines: string[] = [];
  readonly #onLine: ((line: string) => void) | undefined;

  /** `onLine` is called with each line. */
  constructor(stream: ReadableStream<Uint8Array>, onLine?: (line: string) => void) {
    this.#onLine = onLine;
    this.#read(stream).catch(() => {});
  }

  /** The newest line that `pattern` matches, trimmed; null when there is none. */
  newest(pattern: RegExp): string | null {
    return this.#lines.findLast((line) => pattern.test(line))?.trim() ?? null;
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const line of linesOf(stream)) {
      if (this.#lines.push(line) > LastLines.#KEPT) this.#lines.shift();
      this.#onLine?.(line);
    }
  }
}
