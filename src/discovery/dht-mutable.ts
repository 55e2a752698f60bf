/** Mutable items of the DHT (BEP 44): values that the owner of a key replaces, under an address that stays. */
import { concatBytes, equalBytes } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { SignatureVerifier, VerifierOf } from "../ports.ts";

/** The address of a mutable item. */
export interface MutableName {
  /** Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Distinguishes the items of a key, at most 64 bytes; empty for most. */
  readonly salt: Uint8Array;
}

/** Length of a signature (RFC 8032). */
const SIGNATURE_BYTES = 64;

/**
 * The arguments with which the DHT library looks up a mutable item: the item's target, and what passes for it. Rejects with
 * `invalid_argument` when the key is none.
 */
export async function mutableQuery({ publicKey, salt }: MutableName, verifierOf: VerifierOf) {
  const isSigned = verifierFor(publicKey, verifierOf);
  const target = new Uint8Array(await crypto.subtle.digest("SHA-1", concatBytes([publicKey, salt])));
  const verify = (signature: Uint8Array, data: Uint8Array, key: Uint8Array) =>
    equalBytes(key, publicKey) && signature.length === SIGNATURE_BYTES && isSigned(signature, data);
  return { target, options: { verify, cache: false, ...(salt.length === 0 ? {} : { salt }) } };
}

/** Not all 32 bytes are a point of the curve; some runtimes say so at once, others when they verify. */
function verifierFor(publicKey: Uint8Array, verifierOf: VerifierOf): SignatureVerifier {
  try {
    return verifierOf(publicKey);
  } catch (cause) {
    throw new MillraceError("invalid_argument", "the link's urn:btpk: is no Ed25519 key", { cause });
  }
}
