import { MillraceError } from "../errors.ts";

/** Length of a peer id, bytes (BEP 3). */
export const PEER_ID_BYTES = 20;

/** Azureus-style client prefix (BEP 20): MI, version 0.1.0.0. Other clients take the usual "MR" for Miro. */
const PREFIX = "-MI0100-";

/** A fresh peer id: the prefix and 12 random bytes. One per engine and swarm; never derived from anything personal. */
export function createPeerId(): Uint8Array {
  const id = crypto.getRandomValues(new Uint8Array(PEER_ID_BYTES));
  new TextEncoder().encodeInto(PREFIX, id);
  return id;
}

/** 40 lower-case hex digits of 20 bytes. Throws `invalid_argument` on another length. */
export function hex20(bytes: Uint8Array): string {
  if (bytes.length !== 20) throw new MillraceError("invalid_argument", `expected 20 bytes, got ${bytes.length}`);
  let hex = "";
  for (const byte of bytes) hex += byte.toString(16).padStart(2, "0");
  return hex;
}
