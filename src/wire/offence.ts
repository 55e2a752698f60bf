/** How grave a breach of the protocol is. */
import { hasCode, MillraceError } from "../errors.ts";

/**
 * - `slip`: a malformed message, which a fault of the peer's program explains.
 * - `flood`: more work than any honest peer causes.
 * - `lie`: data that its hash or signature proves to be forged.
 */
export type Offence = "slip" | "flood" | "lie";

/** The error for a `flood` or a `lie`; every other `protocol_violation` is a slip. */
export function grave(offence: "flood" | "lie", message: string): MillraceError {
  return new MillraceError("protocol_violation", message, { detail: { offence } });
}

/** What `error` says about the peer whose connection it ended; null when that is nothing bad. */
export function offenceOf(error: unknown): Offence | null {
  if (!hasCode(error, "protocol_violation")) return null;
  const offence = error.detail?.["offence"];
  return offence === "flood" || offence === "lie" ? offence : "slip";
}
