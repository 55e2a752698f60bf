/**
 * Signed piece headers of `live1`, big-endian: `epoch u32 | seq u32 | ts u64 | flags u8 | len u32 | n u8 | n × hash20 |
 * sig64`. A block is trusted when its hash is in a header that the broadcaster signed, so it can be passed on before
 * the rest of its piece is there.
 */
import { concatBytes } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { BLOCK_BYTES } from "../wire/types.ts";

/** A random access point is inside: a decoder can start in this piece. */
export const FLAG_RANDOM_ACCESS = 1;
/** Media time or content does not continue from the piece before. */
export const FLAG_DISCONTINUITY = 2;
/** The broadcast ends with this piece. */
export const FLAG_END = 4;

/** Bytes of a block's hash: SHA-256, truncated. */
export const HASH_BYTES = 20;
/** Bytes of an ed25519 signature (RFC 8032). */
/** Length of an ed25519 signature (RFC 8032). */
export const SIGNATURE_BYTES = 64;
/** Largest sequence number: 31 bits, so that no wire library takes it for a negative index. */
export const MAX_SEQUENCE = 0x7fffffff;

const FIXED_BYTES = 22;
const KNOWN_FLAGS = FLAG_RANDOM_ACCESS | FLAG_DISCONTINUITY | FLAG_END;
/** Largest number that `n` can hold. */
const MAX_BLOCKS = 255;

/** A piece header. */
export interface PieceHeader {
  /** Grows when a broadcaster starts over without its state. 32 bits. */
  readonly epoch: number;
  /** Number of the piece, 0 to 2^31 − 1. */
  readonly seq: number;
  /** Capture time, Unix ms. */
  readonly timestampMs: number;
  /** Sum of `FLAG_…`. */
  readonly flags: number;
  /** Bytes of the piece. 0 only at the end of the stream. */
  readonly lengthBytes: number;
  /** Hash of block i at [20·i, 20·i + 20). */
  readonly hashes: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  /** The header as it is sent. */
  readonly bytes: Uint8Array;
}

/** What a broadcaster states about a piece before it signs. */
export type UnsignedHeader = Omit<PieceHeader, "signature" | "bytes">;

/** Blocks of a piece of `lengthBytes`. */
export function blockCount(lengthBytes: number): number {
  return Math.ceil(lengthBytes / BLOCK_BYTES);
}

/** Bytes of block `block` of a piece of `lengthBytes`. */
export function blockLength(lengthBytes: number, block: number): number {
  return Math.min(BLOCK_BYTES, lengthBytes - block * BLOCK_BYTES);
}

/** The header up to its signature. Throws `invalid_argument` when a field is out of range. */
export function encodeUnsigned(header: UnsignedHeader): Uint8Array<ArrayBuffer> {
  const count = blockCount(header.lengthBytes);
  const fits = within(header.epoch, 0xffffffff) && within(header.seq, MAX_SEQUENCE) &&
    within(header.timestampMs, Number.MAX_SAFE_INTEGER) && within(header.flags, KNOWN_FLAGS) &&
    within(header.lengthBytes, MAX_BLOCKS * BLOCK_BYTES) && header.hashes.length === count * HASH_BYTES;
  if (!fits) throw new MillraceError("invalid_argument", "a field of the piece header is out of range");
  const bytes = new Uint8Array(FIXED_BYTES + header.hashes.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, header.epoch);
  view.setUint32(4, header.seq);
  view.setBigUint64(8, BigInt(header.timestampMs));
  view.setUint8(16, header.flags);
  view.setUint32(17, header.lengthBytes);
  view.setUint8(21, count);
  bytes.set(header.hashes, FIXED_BYTES);
  return bytes;
}

/** Appends the signature to what was signed. */
export function attachSignature(header: UnsignedHeader, unsigned: Uint8Array, signature: Uint8Array): PieceHeader {
  return { ...header, signature, bytes: concatBytes([unsigned, signature]) };
}

/**
 * Reads a header that fills `bytes`; it keeps a copy. `pieceLengthBytes` is the transport file's. Throws
 * `protocol_violation` when it is malformed; says nothing about its signature.
 */
export function decodeHeader(bytes: Uint8Array, pieceLengthBytes: number): PieceHeader {
  if (bytes.length < FIXED_BYTES + SIGNATURE_BYTES) throw violation("is too short");
  const own = bytes.slice();
  const view = new DataView(own.buffer);
  const seq = view.getUint32(4);
  const timestamp = view.getBigUint64(8);
  const flags = view.getUint8(16);
  const lengthBytes = view.getUint32(17);
  const count = view.getUint8(21);
  if (own.length !== FIXED_BYTES + count * HASH_BYTES + SIGNATURE_BYTES) throw violation("has a wrong length");
  if (seq > MAX_SEQUENCE) throw violation("has a sequence number out of range");
  if (timestamp > BigInt(Number.MAX_SAFE_INTEGER)) throw violation("has a time out of range");
  if (lengthBytes > pieceLengthBytes) throw violation("describes a piece above the piece length");
  if (blockCount(lengthBytes) !== count) throw violation("has a wrong number of hashes");
  if (lengthBytes === 0 && (flags & FLAG_END) === 0) throw violation("describes an empty piece");
  return {
    epoch: view.getUint32(0),
    seq,
    timestampMs: Number(timestamp),
    flags,
    lengthBytes,
    hashes: own.subarray(FIXED_BYTES, FIXED_BYTES + count * HASH_BYTES),
    signature: own.subarray(own.length - SIGNATURE_BYTES),
    bytes: own,
  };
}

/** Epoch and sequence number of an encoded header; null when it is too short to have them. */
export function headerPlace(bytes: Uint8Array): { epoch: number; seq: number } | null {
  if (bytes.length < FIXED_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, FIXED_BYTES);
  return { epoch: view.getUint32(0), seq: view.getUint32(4) };
}

/** The part of `header` that is signed, after the stream's prefix. */
export function unsignedPart(header: PieceHeader): Uint8Array {
  return header.bytes.subarray(0, header.bytes.length - SIGNATURE_BYTES);
}

/** Hash of one block of the piece. */
export function hashOfBlock(header: PieceHeader, block: number): Uint8Array {
  return header.hashes.subarray(block * HASH_BYTES, (block + 1) * HASH_BYTES);
}

function within(value: number, max: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value <= max;
}

function violation(reason: string): MillraceError {
  return new MillraceError("protocol_violation", `a piece header ${reason}`);
}
