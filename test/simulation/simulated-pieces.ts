/** Pieces and headers of the simulation, and who tells genuine ones from false ones. */
import { attachSignature, blockCount, encodeUnsigned, type PieceHeader } from "../../src/live/header.ts";
import type { LiveVerifier } from "../../src/live/signer.ts";

/** Unix ms at virtual time 0. */
export const EPOCH_MS = 1_800_000_000_000;

/** Genuine and poisoned payload: told apart by their buffer, so that millions of blocks cost nothing. */
export const GENUINE = new Uint8Array(1 << 20);
export const POISON = new Uint8Array(1 << 20).fill(1);
const SIGNATURE = new Uint8Array(64).fill(1);

/** Answers at once; only `GENUINE` bytes under the simulated signature pass. */
export const SIMULATED_VERIFIER: LiveVerifier = {
  header: (header, done) => done(header.signature[0] === 1),
  block: (data, _hash, done) => done(data.buffer === GENUINE.buffer),
};

/** A signed header of the simulation. */
export function simulatedHeader(
  fields: { epoch?: number; seq: number; timestampMs: number; flags: number; lengthBytes: number },
): PieceHeader {
  const unsigned = { epoch: 1, ...fields, hashes: new Uint8Array(20 * blockCount(fields.lengthBytes)) };
  return attachSignature(unsigned, encodeUnsigned(unsigned), SIGNATURE);
}
