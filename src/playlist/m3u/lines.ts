/**
 * Lines of a text whose encoding nobody tells, out of a stream of bytes and in memory that a line bounds. UTF-16 is told
 * by its byte order mark or its zero bytes. Everything else is split as bytes, then each line read as UTF-8 or, if it
 * is not valid, as Windows-1251 or Windows-1252, whichever the high bytes seen so far speak for.
 */
import { MillraceError } from "../../errors.ts";
import type { M3uLimits } from "./types.ts";

const MIB = 1024 * 1024;
const CR = 0x0d;
const LF = 0x0a;

/** A line, without its end; null text when it was too long. */
export interface TextLine {
  /** From 1. */
  readonly number: number;
  readonly text: string | null;
}

/** Bytes of `stream`, gzip (RFC 1952) undone. Throws `too_large` over a limit, `invalid_argument` for damaged gzip. */
export async function* unpacked(
  stream: ReadableStream<Uint8Array>,
  limits: M3uLimits = {},
): AsyncGenerator<Uint8Array> {
  const { maxBytes = 64 * MIB, maxUnpackedBytes = 256 * MIB } = limits;
  const reader = stream.getReader();
  let received = 0;
  const next = async (): Promise<Uint8Array | null> => {
    const { done, value } = await reader.read();
    if (done) return null;
    received += value.length;
    if (received > maxBytes) throw new MillraceError("too_large", `the playlist is larger than ${maxBytes} bytes`);
    return value;
  };
  try {
    let first = await next();
    while (first !== null && first.length < 2) {
      const more = await next();
      if (more === null) break;
      first = joined(first, more);
    }
    if (first === null) return;
    if (first[0] !== 0x1f || first[1] !== 0x8b) {
      for (let chunk: Uint8Array | null = first; chunk !== null; chunk = await next()) yield chunk;
      return;
    }
    let pending: Uint8Array | null = first;
    let failure: unknown;
    const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        try {
          const chunk: Uint8Array | null = pending ?? await next();
          pending = null;
          if (chunk === null) controller.close();
          else controller.enqueue(chunk as Uint8Array<ArrayBuffer>);
        } catch (error) {
          failure = error;
          controller.error(error);
        }
      },
    });
    const plain = source.pipeThrough(new DecompressionStream("gzip")).getReader();
    let size = 0;
    try {
      while (true) {
        const { done, value } = await plain.read();
        if (done) return;
        size += value.length;
        if (size > maxUnpackedBytes) {
          throw new MillraceError("too_large", `the playlist unpacks to more than ${maxUnpackedBytes} bytes`);
        }
        yield value;
      }
    } catch (cause) {
      if (failure !== undefined) throw failure;
      if (cause instanceof MillraceError) throw cause;
      throw new MillraceError("invalid_argument", "invalid playlist: its gzip data is damaged", { cause });
    } finally {
      await plain.cancel().catch(() => {});
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Lines of `chunks` that are not empty, ended by LF, CRLF or CR. A last line without an end counts. */
export async function* textLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes = 256 * 1024,
): AsyncGenerator<TextLine> {
  const decode = lineDecoder();
  // Parts, joined once: a line that comes byte by byte must not cost its length squared.
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let tooLong = false;
  let afterCr = false;
  let number = 0;
  const line = (bytes: Uint8Array): TextLine => {
    const text = tooLong || bytes.length > maxLineBytes ? null : decode(bytes, number === 0);
    tooLong = false;
    return { number: ++number, text };
  };
  for await (const chunk of asUtf8(chunks)) {
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte !== CR && byte !== LF) continue;
      if (!(at === 0 && afterCr && byte === LF)) {
        if (at > start) held.push(chunk.subarray(start, at));
        if (held.length === 0 && !tooLong) number++;
        else yield line(held.length === 1 ? held[0]! : concatenated(held));
      }
      held = [];
      heldBytes = 0;
      if (byte === CR && chunk[at + 1] === LF) at++;
      start = at + 1;
    }
    if (chunk.length > 0) afterCr = chunk[chunk.length - 1] === CR;
    const left = chunk.subarray(start);
    heldBytes += left.length;
    if (heldBytes > maxLineBytes) {
      tooLong = true;
      held = [];
    } else if (left.length > 0) {
      // A view would keep the whole chunk, and its owner may use the buffer again.
      held.push(left.slice());
    }
  }
  if (heldBytes > 0 || tooLong) yield line(concatenated(held));
}

/** UTF-16 becomes UTF-8; anything else passes. */
async function* asUtf8(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array(0);
  let decoder: TextDecoder | null = null;
  const encoder = new TextEncoder();
  for await (const chunk of chunks) {
    let bytes = chunk;
    if (head !== null) {
      bytes = head.length === 0 ? chunk : joined(head, chunk);
      if (bytes.length < 4) {
        head = bytes;
        continue;
      }
      head = null;
      const name = utf16(bytes);
      if (name !== null) decoder = new TextDecoder(name);
    }
    yield decoder === null ? bytes : encoder.encode(decoder.decode(bytes, { stream: true }));
  }
  if (head !== null) yield head;
  if (decoder !== null) yield encoder.encode(decoder.decode());
}

function utf16([a, b, c, d]: Uint8Array): "utf-16le" | "utf-16be" | null {
  if ((a === 0xff && b === 0xfe) || (a !== 0 && b === 0 && c !== 0 && d === 0)) return "utf-16le";
  if ((a === 0xfe && b === 0xff) || (a === 0 && b !== 0 && c === 0 && d !== 0)) return "utf-16be";
  return null;
}

function lineDecoder(): (bytes: Uint8Array, first: boolean) => string {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const cyrillic = new TextDecoder("windows-1251");
  const latin = new TextDecoder("windows-1252");
  let together = 0;
  let alone = 0;
  return (bytes, first) => {
    let text: string;
    try {
      text = utf8.decode(bytes);
    } catch {
      // Cyrillic words are runs of high bytes; in Latin ones a high byte stands between ASCII letters.
      for (let at = 0; at < bytes.length; at++) {
        if (bytes[at]! < 0xc0) continue;
        if ((bytes[at - 1] ?? 0) >= 0xc0 || (bytes[at + 1] ?? 0) >= 0xc0) together++;
        else alone++;
      }
      text = (together > 2 * alone ? cyrillic : latin).decode(bytes);
    }
    return first ? text.replace(/^\uFEFF/, "") : text;
  };
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  return concatenated([a, b]);
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
