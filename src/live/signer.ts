/** Signing piece headers by ed25519 (RFC 8032) through Web Crypto; checking them and the blocks through ports. */
import { concatBytes, equalBytes } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { Digest, Ports, SignatureVerifier } from "../ports.ts";
import { BLOCK_BYTES } from "../wire/types.ts";
import {
  attachSignature,
  blockCount,
  encodeUnsigned,
  HASH_BYTES,
  type PieceHeader,
  type UnsignedHeader,
  unsignedPart,
} from "./header.ts";

/** Separates these signatures from any other use of the key. */
const CONTEXT = new TextEncoder().encode("live1\0");
const SOURCE_CONTEXT = new TextEncoder().encode("live1 source\0");
const ALGORITHM = "Ed25519";

/** A broadcaster's key pair. */
export interface LiveKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The private key, PKCS #8 (RFC 8410). A secret: only for the state file. */
  readonly privateKey: Uint8Array;
}

/** A new key pair. */
export async function createLiveKey(): Promise<LiveKey> {
  const pair = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as CryptoKeyPair;
  return {
    publicKey: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)),
    privateKey: new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey)),
  };
}

/** First 20 bytes of the SHA-256 of a block. */
export async function hashBlock(block: Uint8Array, sha256: Digest): Promise<Uint8Array> {
  return (await sha256(block)).subarray(0, HASH_BYTES);
}

/** Hashes of all blocks of a piece, 20 bytes each. */
export async function hashBlocks(piece: Uint8Array, sha256: Digest): Promise<Uint8Array> {
  const blocks = Array.from(
    { length: blockCount(piece.length) },
    (_, i) => hashBlock(piece.subarray(i * BLOCK_BYTES, (i + 1) * BLOCK_BYTES), sha256),
  );
  return concatBytes(await Promise.all(blocks));
}

/** Signs for one stream: its headers, and that its broadcaster is who it says. */
export class HeaderSigner {
  readonly #key: CryptoKey;
  readonly #infohash: Uint8Array;
  readonly #prefix: Uint8Array;

  private constructor(key: CryptoKey, infohash: Uint8Array) {
    this.#key = key;
    this.#infohash = infohash;
    this.#prefix = concatBytes([CONTEXT, infohash]);
  }

  /** Takes the PKCS #8 key. Rejects with `corrupt` when it is not one. */
  static async create(privateKey: Uint8Array, infohash: Uint8Array): Promise<HeaderSigner> {
    try {
      const bytes = privateKey as Uint8Array<ArrayBuffer>;
      return new HeaderSigner(await crypto.subtle.importKey("pkcs8", bytes, ALGORITHM, false, ["sign"]), infohash);
    } catch (error) {
      throw new MillraceError("corrupt", "the broadcaster's private key is damaged", { cause: error });
    }
  }

  /** The header with its signature. Rejects with `invalid_argument` when a field is out of range. */
  async sign(header: UnsignedHeader): Promise<PieceHeader> {
    const unsigned = encodeUnsigned(header);
    const signature = await crypto.subtle.sign(ALGORITHM, this.#key, concatBytes([this.#prefix, unsigned]));
    return attachSignature(header, unsigned, new Uint8Array(signature));
  }

  /** Signature that shows the member with the peer id `receiverId` that the one with `senderId` is the broadcaster. */
  async signSource(receiverId: Uint8Array, senderId: Uint8Array): Promise<Uint8Array> {
    const signed = sourceStatement(this.#infohash, receiverId, senderId);
    return new Uint8Array(await crypto.subtle.sign(ALGORITHM, this.#key, signed));
  }
}

/**
 * Decides whether headers and blocks are genuine. Results come by callback so that a simulation can return them at once
 * and run without a turn of the event loop for each of millions of blocks.
 */
export interface LiveVerifier {
  header(header: PieceHeader, done: (genuine: boolean) => void): void;
  block(data: Uint8Array, hash: Uint8Array, done: (genuine: boolean) => void): void;
}

/** What checks signatures and hashes. */
export type CheckPorts = Pick<Ports, "sha256" | "ed25519">;

/** Checks headers and blocks of one stream. */
export class CryptoVerifier implements LiveVerifier {
  readonly #isSigned: SignatureVerifier;
  readonly #infohash: Uint8Array;
  readonly #prefix: Uint8Array;
  readonly #sha256: Digest;

  /** Takes the 32 bytes of the transport file. Throws `bad_transport_file` when they are not a key. */
  constructor(publicKey: Uint8Array, infohash: Uint8Array, { sha256, ed25519 }: CheckPorts) {
    try {
      this.#isSigned = ed25519(publicKey);
    } catch (error) {
      throw new MillraceError("bad_transport_file", "the broadcast's public key is not a key", { cause: error });
    }
    this.#infohash = infohash;
    this.#sha256 = sha256;
    this.#prefix = concatBytes([CONTEXT, infohash]);
  }

  header(header: PieceHeader, done: (genuine: boolean) => void): void {
    done(this.#isSigned(header.signature, concatBytes([this.#prefix, unsignedPart(header)])));
  }

  block(data: Uint8Array, hash: Uint8Array, done: (genuine: boolean) => void): void {
    hashBlock(data, this.#sha256).then((actual) => done(equalBytes(actual, hash)), () => done(false));
  }

  /** Whether `signature` is that of `HeaderSigner.signSource`. */
  source(signature: Uint8Array, receiverId: Uint8Array, senderId: Uint8Array): boolean {
    return this.#isSigned(signature, sourceStatement(this.#infohash, receiverId, senderId));
  }
}

/** What a broadcaster signs for one member. */
function sourceStatement(infohash: Uint8Array, receiverId: Uint8Array, senderId: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes([SOURCE_CONTEXT, infohash, receiverId, senderId]);
}
