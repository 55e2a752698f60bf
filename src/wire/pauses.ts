/** Reading from a peer stops while anybody has a reason for it. */
import type { PeerLink } from "./types.ts";

/** Why a peer is not read from: 1 = rate limit, 2 = too much of what came waits to be verified and stored. */
export type PauseReason = 1 | 2;

/** The reasons that hold for one link; it is read from while there is none. */
export class Pauses {
  private reasons = 0;

  /** `reason` holds from now on, or no longer. */
  set(link: PeerLink | null, reason: PauseReason, value: boolean): void {
    const before = this.reasons;
    this.reasons = value ? before | reason : before & ~reason;
    if (before === 0 && this.reasons !== 0) link?.pause();
    else if (before !== 0 && this.reasons === 0) link?.resume();
  }
}
