/**
 * Diffie-Hellman of Message Stream Encryption. The library uses it instead of node's, which tests the prime again
 * on each connection (20–40 ms on the main thread) and accepts degenerate keys on some runtimes.
 */
import { Allowance } from "../bytes/allowance.ts";
import { MillraceError } from "../errors.ts";

/** The 768-bit prime of the MSE specification. */
const PRIME = BigInt(
  "0xffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404dd" +
    "ef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a36210000000000090563",
);
/** Bytes of a public key and of the secret, zero-padded. */
const KEY_BYTES = 96;
/** Bytes of a private key: the specification calls 160 bits enough. */
const PRIVATE_KEY_BYTES = 20;

/**
 * Exchanges that strangers may begin, per second and at once: each takes 1 to 2 ms of the single thread. Peers that are
 * turned away retry in plaintext.
 */
const INCOMING_PER_S = 40;
const INCOMING_AT_ONCE = 80;

const incoming = new Allowance(INCOMING_PER_S, INCOMING_AT_ONCE, performance.now());

function toBigInt(bytes: Uint8Array): bigint {
  let hex = "0x0";
  for (const byte of bytes) hex += byte.toString(16).padStart(2, "0");
  return BigInt(hex);
}

function toKey(value: bigint): Uint8Array {
  const hex = value.toString(16).padStart(2 * KEY_BYTES, "0");
  const bytes = new Uint8Array(KEY_BYTES);
  for (let i = 0; i < KEY_BYTES; i++) bytes[i] = parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let b = base, e = exponent; e > 0n; e >>= 1n, b = b * b % PRIME) {
    if ((e & 1n) === 1n) result = result * b % PRIME;
  }
  return result;
}

/** One side of one key exchange; shaped as the part of node's `DiffieHellman` that the library calls. */
export class MseKeyExchange {
  readonly #privateKey: bigint = toBigInt(crypto.getRandomValues(new Uint8Array(PRIVATE_KEY_BYTES)));
  readonly #isIncoming: boolean;

  /** `isIncoming`: the far end began it. */
  constructor(isIncoming = false) {
    this.#isIncoming = isIncoming;
  }

  /** Our public key, 96 bytes. Throws `too_busy` when strangers begin more exchanges than we can serve. */
  generateKeys(): Uint8Array {
    if (this.#isIncoming && !incoming.take(1, () => performance.now())) {
      throw new MillraceError("too_busy", "too many encrypted handshakes at once");
    }
    return toKey(power(2n, this.#privateKey));
  }

  /** The shared secret, 96 bytes. Throws `protocol_violation` for a public key that would let anybody compute it. */
  computeSecret(publicKey: Uint8Array): Uint8Array {
    const theirs = toBigInt(publicKey);
    if (theirs <= 1n || theirs >= PRIME - 1n) {
      throw new MillraceError("protocol_violation", "degenerate key in the encryption handshake");
    }
    return toKey(power(theirs, this.#privateKey));
  }
}
