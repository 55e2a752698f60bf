/**
 * Adjacent blocks of a piece as `piece` messages (BEP 3), one after the other in one buffer, so that any row of them
 * leaves in one write. The bytes are the same for every peer.
 */
import { BLOCK_BYTES } from "./types.ts";
import { MessageId } from "./frame-reader.ts";

/** Bytes of a `piece` message besides its block. */
export const PIECE_HEADER_BYTES = 13;

/** Bytes of a message with a block of full size: in a row of messages all but the last are that long. */
export const PIECE_MESSAGE_BYTES = PIECE_HEADER_BYTES + BLOCK_BYTES;

/** Bytes that the messages for `lengthBytes` of a piece take, beginning at a multiple of `BLOCK_BYTES`. */
export function messagesBytes(lengthBytes: number): number {
  return lengthBytes + Math.ceil(lengthBytes / BLOCK_BYTES) * PIECE_HEADER_BYTES;
}

/** The part of `memory` (of `messagesBytes(lengthBytes)`) where `makeMessages` expects the blocks: its end. */
export function blocksOf(memory: Uint8Array, lengthBytes: number): Uint8Array {
  return memory.subarray(memory.length - lengthBytes);
}

/** Moves the blocks at the end of `memory` to their places and writes the headers. `offset` is that of the first block. */
export function makeMessages(memory: Uint8Array, piece: number, offset: number): void {
  const count = Math.ceil(memory.length / PIECE_MESSAGE_BYTES);
  for (let i = 0; i < count; i++) {
    const at = i * PIECE_MESSAGE_BYTES;
    const from = count * PIECE_HEADER_BYTES + i * BLOCK_BYTES;
    const length = Math.min(BLOCK_BYTES, memory.length - at - PIECE_HEADER_BYTES);
    // Blocks move towards the front, the first one first, so that none is overwritten before it has moved.
    memory.copyWithin(at + PIECE_HEADER_BYTES, from, from + length);
    uint32(memory, at, 9 + length);
    memory[at + 4] = MessageId.piece;
    uint32(memory, at + 5, piece);
    uint32(memory, at + 9, offset + i * BLOCK_BYTES);
  }
}

/** Bytes of blocks in a row of messages. */
export function payloadBytes(messages: Uint8Array): number {
  return messages.length - Math.ceil(messages.length / PIECE_MESSAGE_BYTES) * PIECE_HEADER_BYTES;
}

/** The parts of a row of messages whose blocks are all wanted: one, unless a block in between is not. */
export function rowsOf(messages: Uint8Array, offset: number, isWanted: (offset: number) => boolean): Uint8Array[] {
  const rows: Uint8Array[] = [];
  let from = 0;
  for (let at = 0, block = offset; at < messages.length; block += BLOCK_BYTES) {
    const end = Math.min(at + PIECE_MESSAGE_BYTES, messages.length);
    if (!isWanted(block)) {
      if (at > from) rows.push(messages.subarray(from, at));
      from = end;
    }
    at = end;
  }
  if (from < messages.length) rows.push(messages.subarray(from));
  return rows;
}

function uint32(memory: Uint8Array, at: number, value: number): void {
  memory[at] = value >>> 24;
  memory[at + 1] = value >>> 16;
  memory[at + 2] = value >>> 8;
  memory[at + 3] = value;
}
