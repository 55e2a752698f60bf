/** Reading from a peer stops while there is any reason to. */
import type { PeerLink } from "./types.ts";

/** Why a peer is not read from: 1 = rate limit, 2 = too much data waits to be verified and stored. */
export type PauseReason = 1 | 2;

/** The reasons that hold for one link; it is read from while there are none. */
export class Pauses {
  #reasons = 0;

  /** Sets whether `reason` holds from now on. */
  set(link: PeerLink | null, reason: PauseReason, value: boolean): void {
    const before = this.#reasons;
    this.#reasons = value ? before | reason : before & ~reason;
    if (before === 0 && this.#reasons !== 0) link?.pause();
    else if (before !== 0 && this.#reasons === 0) link?.resume();
  }
}
