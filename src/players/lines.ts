/** Text lines of a player, from bytes as they come. */

/** Longest line kept, characters: answers to the engine's questions have some hundred. The rest of a longer one is dropped. */
const MAX_LINE_CHARS = 64 * 1024;

/**
 * The lines of `stream` without their ends (LF, or CR LF), the last one even without an end. Reading goes only as fast as
 * lines are taken. Rejects as the stream does.
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
  /** A player's reason is among its last lines; programs warn a lot before. */
  static readonly #KEPT = 20;
  readonly #lines: string[] = [];
  readonly #onLine: ((line: string) => void) | undefined;

  /** `onLine` gets each line as it comes. */
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
