/**
 * The data plane, receiving: cuts the byte stream into messages (BEP 3, 6, 10). Block payloads are copied once, from
 * the socket's reused buffer to where the owner wants them; fixed-size messages are decoded from a 17-byte scratch
 * buffer; only bitfields and extended messages are gathered, within their bounds.
 */
import { MillraceError } from "../errors.ts";
import { HashMessageId, isHashLength } from "./hash-messages.ts";
import { MAX_BLOCK_BYTES, MAX_EXTENDED_BYTES, MAX_FRAME_BYTES, MAX_PIECES, MAX_UNKNOWN_BYTES } from "./limits.ts";

/** Message ids (BEP 3, 5, 6, 10); those of BEP 52 are in `hash-messages.ts`. */
export const MessageId = {
  choke: 0,
  unchoke: 1,
  interested: 2,
  uninterested: 3,
  have: 4,
  bitfield: 5,
  request: 6,
  piece: 7,
  cancel: 8,
  port: 9,
  suggest: 13,
  haveAll: 14,
  haveNone: 15,
  reject: 16,
  allowedFast: 17,
  extended: 20,
} as const;

/** Exact lengths of fixed-size messages, id byte included. */
const FIXED_LENGTH: Readonly<Record<number, number>> = {
  [MessageId.choke]: 1,
  [MessageId.unchoke]: 1,
  [MessageId.interested]: 1,
  [MessageId.uninterested]: 1,
  [MessageId.have]: 5,
  [MessageId.request]: 13,
  [MessageId.cancel]: 13,
  [MessageId.port]: 3,
  [MessageId.suggest]: 5,
  [MessageId.haveAll]: 1,
  [MessageId.haveNone]: 1,
  [MessageId.reject]: 13,
  [MessageId.allowedFast]: 5,
};

const PREFIX_BYTES = 4;
/** Length prefix, id, piece and offset of a `piece` message. */
const PIECE_HEADER_BYTES = 13;

const FIXED = 0;
const GATHER = 1;
const PIECE = 2;
const SKIP = 3;

/** Receives the messages, in order. A throw ends the reading. */
export interface FrameSink {
  /** have, request, cancel, reject, allowed fast, suggest: up to three numbers (0 where the message has fewer). */
  numbers(id: number, a: number, b: number, c: number): void;
  /** Any other message without its length prefix; `message[0]` is the id. The receiver may keep the bytes. */
  message(id: number, message: Uint8Array): void;
  /** A message of an unknown id, or an empty one (BEP 3: keep-alive). */
  skipped(lengthBytes: number): void;
  /** As `PeerLinkHandlers.blockTarget`. */
  blockTarget(piece: number, offset: number, length: number): Uint8Array | null;
  /** This many bytes of the current block arrived. */
  blockBytes(count: number): void;
  block(piece: number, offset: number, length: number, kept: boolean): void;
}

/** Cuts a byte stream into messages. */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #head = new Uint8Array(17);
  #filled = 0;
  #wanted = PREFIX_BYTES;
  #length = 0;
  #kind = FIXED;
  /** Bytes of a body or payload still to come; 0 while the head is being read. */
  #left = 0;
  #body: Uint8Array | null = null;
  #position = 0;
  #piece = 0;
  #offset = 0;
  #stopped = false;
  #held = false;
  #bitfieldLimit = 1 + Math.ceil(MAX_PIECES / 8);

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Once the piece count is known, bitfields may be as long as it needs. */
  setPieceCount(count: number): void {
    this.#bitfieldLimit = Math.max(this.#bitfieldLimit, 1 + Math.ceil(count / 8));
  }

  /** Drops everything from here on, including the rest of the chunk being read. */
  stop(): void {
    this.#stopped = true;
    this.#body = null;
  }

  /** Called by the sink: `push` returns after the current message. */
  hold(): void {
    this.#held = true;
  }

  /**
   * Reads a chunk, which may be reused afterwards; returns how many of its bytes were read, fewer when the sink held
   * it. Throws `protocol_violation` and what the sink throws.
   */
  push(chunk: Uint8Array): number {
    let at = 0;
    this.#held = false;
    while (at < chunk.length && !this.#stopped && !this.#held) {
      if (this.#left > 0) {
        const count = Math.min(this.#left, chunk.length - at);
        if (this.#body !== null) {
          this.#body.set(at === 0 && count === chunk.length ? chunk : chunk.subarray(at, at + count), this.#position);
          this.#position += count;
        }
        at += count;
        this.#left -= count;
        if (this.#kind === PIECE) this.#sink.blockBytes(count);
        if (this.#left === 0) this.#bodyDone();
        continue;
      }
      const count = Math.min(this.#wanted - this.#filled, chunk.length - at);
      for (let i = 0; i < count; i++) this.#head[this.#filled + i] = chunk[at + i]!;
      at += count;
      this.#filled += count;
      if (this.#filled === this.#wanted) this.#headDone();
    }
    return at;
  }

  #uint32(at: number): number {
    const head = this.#head;
    return ((head[at]! << 24) | (head[at + 1]! << 16) | (head[at + 2]! << 8) | head[at + 3]!) >>> 0;
  }

  #reset(): void {
    this.#filled = 0;
    this.#wanted = PREFIX_BYTES;
  }

  #headDone(): void {
    if (this.#wanted === PREFIX_BYTES) {
      this.#length = this.#uint32(0);
      if (this.#length > MAX_FRAME_BYTES) throw this.#badLength(-1);
      if (this.#length === 0) {
        this.#filled = 0;
        this.#sink.skipped(0);
      } else this.#wanted = PREFIX_BYTES + 1;
    } else if (this.#wanted === PREFIX_BYTES + 1) {
      this.#idKnown(this.#head[4]!);
    } else if (this.#kind === PIECE) {
      this.#pieceStarts();
    } else {
      this.#fixedDone();
    }
  }

  #idKnown(id: number): void {
    const length = this.#length;
    if (id === MessageId.piece) {
      // A block is 1 to 128 KiB: we never request more.
      if (length <= 9 || length > 9 + MAX_BLOCK_BYTES) throw this.#badLength(id);
      this.#kind = PIECE;
      this.#wanted = PIECE_HEADER_BYTES;
      return;
    }
    const fixed = FIXED_LENGTH[id];
    if (fixed !== undefined) {
      if (length !== fixed) throw this.#badLength(id);
      this.#kind = FIXED;
      this.#wanted = PREFIX_BYTES + length;
      if (length === 1) this.#fixedDone();
      return;
    }
    const isHash = id >= HashMessageId.request && id <= HashMessageId.reject;
    if (isHash && !isHashLength(id, length)) throw this.#badLength(id);
    const gathered = isHash || id === MessageId.bitfield || id === MessageId.extended;
    const limit = id === MessageId.bitfield
      ? this.#bitfieldLimit
      : id === MessageId.extended
      ? MAX_EXTENDED_BYTES
      : MAX_UNKNOWN_BYTES;
    if (length > limit || (id === MessageId.extended && length < 2)) throw this.#badLength(id);
    this.#kind = gathered ? GATHER : SKIP;
    this.#body = gathered ? new Uint8Array(length) : null;
    if (this.#body !== null) this.#body[0] = id;
    this.#position = 1;
    this.#left = length - 1;
    if (this.#left === 0) this.#bodyDone();
  }

  #fixedDone(): void {
    const id = this.#head[4]!;
    const length = this.#length;
    const head = this.#head;
    this.#reset();
    if (length === 13) this.#sink.numbers(id, this.#uint32(5), this.#uint32(9), this.#uint32(13));
    else if (length === 5) this.#sink.numbers(id, this.#uint32(5), 0, 0);
    else this.#sink.message(id, head.slice(PREFIX_BYTES, PREFIX_BYTES + length));
  }

  #pieceStarts(): void {
    this.#piece = this.#uint32(5);
    this.#offset = this.#uint32(9);
    this.#left = this.#length - 9;
    this.#position = 0;
    const target = this.#sink.blockTarget(this.#piece, this.#offset, this.#left);
    // A target of another size is the owner's mistake; discarding the block is the safe way out.
    this.#body = target !== null && target.length === this.#left ? target : null;
  }

  #bodyDone(): void {
    const body = this.#body;
    this.#body = null;
    this.#reset();
    if (this.#kind === PIECE) this.#sink.block(this.#piece, this.#offset, this.#length - 9, body !== null);
    else if (body !== null) this.#sink.message(body[0]!, body);
    else this.#sink.skipped(this.#length);
  }

  #badLength(id: number): MillraceError {
    const what = id < 0 ? "a message" : `message ${id}`;
    return new MillraceError("protocol_violation", `${what} of ${this.#length} bytes`, {
      detail: { id, length: this.#length },
    });
  }
}
