/**
 * Reads lines of text in an unknown encoding from a stream of bytes, in memory bounded by the longest line, and by what is
 * needed to decide the encoding.
 */
import { isTurnDue, nextTurn } from "../../bytes/turn.ts";
import { abortError } from "../../errors.ts";
import { asUtf8 } from "../../bytes/as-utf8.ts";

const CR = 0x0d;
const LF = 0x0a;
/** Bytes of lines between two checks of the clock: a millisecond or two of reading and processing entries. */
const PACE_BYTES = 8 * 1024;
/** Fixed cost of a line in bytes, added to its length: short lines are not free. */
const LINE_COST_BYTES = 16;

/** A line without its line end; its text is null when it was too long. */
export interface TextLine {
  /** From 1. */
  readonly number: number;
  readonly text: string | null;
}

/** Settings of `textLines`. */
export interface LineOptions {
  /** Default 256 KiB. Longer lines have no text. */
  readonly maxLineBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Yields the lines of `chunks` that are not empty, ended by LF, CRLF or CR, several at a time: one by one would take half as
 * long again. A last line without a line end counts. Yields to the event loop between groups of lines, and so while the
 * caller's loop processes them. Throws `aborted`.
 */
export async function* textLines(
  chunks: AsyncIterable<Uint8Array>,
  { maxLineBytes = 256 * 1024, signal }: LineOptions = {},
): AsyncGenerator<readonly TextLine[]> {
  const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  const decode = (bytes: Uint8Array, isFirst: boolean) =>
    isFirst ? utf8.decode(bytes).replace(/^\uFEFF/, "") : utf8.decode(bytes);
  const begun = new LineStart(maxLineBytes);
  let afterCr = false;
  let number = 0;
  let lines: TextLine[] = [];
  /** Bytes processed since the last check of the clock. */
  let unpacedBytes = 0;
  for await (const chunk of asUtf8(chunks)) {
    let start = 0;
    let lf = indexOr(chunk, LF, 0);
    let cr = indexOr(chunk, CR, 0);
    for (let at = Math.min(cr, lf); at < chunk.length; at = Math.min(cr, lf)) {
      const byte = chunk[at]!;
      if (!(at === 0 && afterCr && byte === LF)) {
        number++;
        const bytes = begun.ended(chunk.subarray(start, at));
        if (bytes === null) lines.push({ number, text: null });
        else if (bytes.length > 0) lines.push({ number, text: decode(bytes, number === 1) });
      }
      unpacedBytes += at - start + LINE_COST_BYTES;
      start = byte === CR && chunk[at + 1] === LF ? at + 2 : at + 1;
      if (lf < start) lf = indexOr(chunk, LF, start);
      if (cr < start) cr = indexOr(chunk, CR, start);
      if (unpacedBytes < PACE_BYTES) continue;
      unpacedBytes = 0;
      yield lines;
      lines = [];
      if (isTurnDue()) await nextTurn();
      if (signal?.aborted) throw abortError(signal);
    }
    if (chunk.length > 0) afterCr = chunk[chunk.length - 1] === CR;
    begun.push(chunk.subarray(start));
    if (lines.length > 0) yield lines;
    lines = [];
    if (isTurnDue()) await nextTurn();
    if (signal?.aborted) throw abortError(signal);
  }
  const bytes = begun.ended(new Uint8Array(0));
  if (bytes === null || bytes.length > 0) {
    number++;
    yield [{ number, text: bytes === null ? null : decode(bytes, number === 1) }];
  }
}

/** Index of the first `byte` at or after `from`, else the length: a native search, ten times as fast as a loop. */
function indexOr(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

/** The beginning of a line whose end has not arrived, in one buffer: a list of one-byte parts would take a hundred times the memory. */
class LineStart {
  readonly #maxBytes: number;
  #buffer = new Uint8Array(1024);
  #length = 0;
  #isTooLong = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds a copy of `part`, since the owner of the chunk may reuse it. */
  push(part: Uint8Array): void {
    this.#isTooLong ||= this.#length + part.length > this.#maxBytes;
    if (this.#isTooLong) return;
    const length = this.#length + part.length;
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#buffer.length));
      larger.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = larger;
    }
    this.#buffer.set(part, this.#length);
    this.#length = length;
  }

  /** Returns the whole line with its `last` part, valid until the next `push`; null when it is too long. Begins the next line. */
  ended(last: Uint8Array): Uint8Array | null {
    let line: Uint8Array | null = last;
    if (this.#length > 0 || this.#isTooLong || last.length > this.#maxBytes) {
      this.push(last);
      line = this.#isTooLong ? null : this.#buffer.subarray(0, this.#length);
    }
    this.#length = 0;
    this.#isTooLong = false;
    return line;
  }
}
