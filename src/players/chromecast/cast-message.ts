/** Messages of CASTV2: a length of four bytes, then a Protocol Buffers message `CastMessage` of six fields. */
import { MillraceError } from "../../errors.ts";

/** Longest message, bytes: the protocol's own limit. */
export const MAX_CAST_MESSAGE_BYTES = 64 * 1024;

/** A text message; the text is JSON in all namespaces used here. */
export interface CastMessage {
  readonly source: string;
  readonly destination: string;
  readonly namespace: string;
  readonly text: string;
}

/** Numbers of the fields of `CastMessage`. */
const FIELDS = { version: 1, source: 2, destination: 3, namespace: 4, payloadType: 5, text: 6 } as const;

/** Encodes a message with its length in front. Throws `too_large`. */
export function encodeCastMessage({ source, destination, namespace, text }: CastMessage): Uint8Array {
  const body: number[] = [];
  const pushText = (field: number, value: string) => {
    const bytes = new TextEncoder().encode(value);
    pushVarint(body, field << 3 | 2);
    pushVarint(body, bytes.length);
    for (const byte of bytes) body.push(byte);
  };
  body.push(FIELDS.version << 3, 0);
  pushText(FIELDS.source, source);
  pushText(FIELDS.destination, destination);
  pushText(FIELDS.namespace, namespace);
  body.push(FIELDS.payloadType << 3, 0);
  pushText(FIELDS.text, text);
  if (body.length > MAX_CAST_MESSAGE_BYTES) throw new MillraceError("too_large", "a message to the device is too long");
  const framed = new Uint8Array(4 + body.length);
  new DataView(framed.buffer).setUint32(0, body.length);
  framed.set(body, 4);
  return framed;
}

function pushVarint(bytes: number[], value: number): void {
  for (; value > 0x7f; value >>>= 7) bytes.push(value & 0x7f | 0x80);
  bytes.push(value);
}

/** Decodes a message without its length; null for one without text. Throws `protocol_violation`. */
export function decodeCastMessage(data: Uint8Array): CastMessage | null {
  const texts = new Map<number, string>();
  const reader = new FieldReader(data);
  while (!reader.isAtEnd) {
    const tag = reader.varint();
    const value = reader.value(tag & 7);
    if (value !== null) texts.set(tag >>> 3, new TextDecoder().decode(value));
  }
  const [source, destination, namespace] = [FIELDS.source, FIELDS.destination, FIELDS.namespace].map((n) =>
    texts.get(n)
  );
  const text = texts.get(FIELDS.text);
  if (source === undefined || destination === undefined || namespace === undefined) throw violation();
  return text === undefined ? null : { source, destination, namespace, text };
}

function violation(): MillraceError {
  return new MillraceError("protocol_violation", "the device sent something other than a CASTV2 message");
}

class FieldReader {
  readonly #data: Uint8Array;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#data.length;
  }

  /** Reads a whole number below 2^32; higher bits are dropped. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#data[this.#at++];
      if (byte === undefined) throw violation();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw violation();
  }

  /** Reads a field of this wire type: returns its bytes, or null for a number. */
  value(wireType: number): Uint8Array | null {
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.#take(8);
    else if (wireType === 2) return this.#take(this.varint());
    else if (wireType === 5) this.#take(4);
    else throw violation();
    return null;
  }

  #take(count: number): Uint8Array {
    if (count > this.#data.length - this.#at) throw violation();
    return this.#data.subarray(this.#at, this.#at += count);
  }
}

/** Yields the messages in `stream` without their lengths. Rejects as it does, and with `protocol_violation` for one that is too long. */
export async function* castFrames(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held = new Uint8Array(0);
  for await (const chunk of stream) {
    const joined = new Uint8Array(held.length + chunk.length);
    joined.set(held);
    joined.set(chunk, held.length);
    held = joined;
    while (held.length >= 4) {
      const length = new DataView(held.buffer, held.byteOffset).getUint32(0);
      if (length > MAX_CAST_MESSAGE_BYTES) throw violation();
      if (held.length < 4 + length) break;
      yield held.subarray(4, 4 + length);
      held = held.subarray(4 + length);
    }
  }
}
