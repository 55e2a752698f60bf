/**
 * Doubts a list that lost most of its items at once. Servers send "account expired" as a list of one entry, and half a
 * list when they break off; a channel that is gone for a week goes to the trash.
 */
import { MillraceError } from "../../errors.ts";

/** So many items may always vanish at once. */
const ALWAYS_FEW = 10;
/** A larger share of the items is doubted. */
const MOST = 0.5;
/** The same when the body seems to be cut off. */
const MOST_WHEN_CUT = 0.1;
/** After this time, seconds, the schedule believes what it doubted: the server has had a day to mend it. */
const BELIEVED_AFTER_S = 86_400;

/** What an update would do to the items of its list. */
export interface Loss {
  /** Items that the last list had, without those in the trash and locked ones. */
  readonly present: number;
  /** How many of them the new list lacks. */
  readonly lost: number;
  /** True when the body may have been cut off. */
  readonly isCut: boolean;
}

/** What is known about an earlier doubt. */
export interface Doubt {
  /** When a loss was first refused, Unix seconds; 0: the last update lost little. */
  readonly since: number;
  readonly now: number;
  /** True when the user started the update. */
  readonly isByHand: boolean;
}

/** The update was refused because of what it would lose. */
export class LossError extends MillraceError {
  constructor({ present, lost }: Loss) {
    super(
      "conflict",
      `the list lacks ${lost} of its ${present} items, perhaps by a fault of its server, so nothing was changed; ` +
        "update it again to accept that",
    );
  }
}

/** Throws `LossError` when the loss is too large to be believed at once. */
export function requireCredible(loss: Loss, { since, now, isByHand }: Doubt): void {
  const { present, lost, isCut } = loss;
  if (lost <= ALWAYS_FEW || lost <= present * (isCut ? MOST_WHEN_CUT : MOST)) return;
  // A time in the future was stored by a clock that was wrong.
  const isSeenAgain = since > 0 && (isByHand || now - since >= BELIEVED_AFTER_S || since > now);
  if (!isSeenAgain) throw new LossError(loss);
}
