/** Signatures of broadcasts, verified at the least cost. */
import { Buffer } from "node:buffer";
import { createPublicKey, verify } from "node:crypto";
import type { VerifierOf } from "../../src/ports.ts";

/** What stands before the 32 bytes of an ed25519 key in a SubjectPublicKeyInfo (RFC 8410, section 4). */
const SPKI_PREFIX = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const KEY_BYTES = 32;

/**
 * See `Ports.ed25519`. On the caller's thread: a signature takes 0.1 ms there. Web Crypto has another thread do it, which
 * takes 0.45 ms of processor time on Node and twice as long as here on Deno and Bun, most of it on the caller's thread.
 */
export const ed25519: VerifierOf = (publicKey) => {
  if (publicKey.length !== KEY_BYTES) throw new TypeError("an ed25519 key has 32 bytes");
  const key = createPublicKey({ key: Buffer.from([...SPKI_PREFIX, ...publicKey]), format: "der", type: "spki" });
  return (signature, data) => verify(null, data, key, signature);
};
