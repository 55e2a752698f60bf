/** Divides a scarce resource among holders, so that none takes it from all the others. */

/** The caller that asks for a share. */
export interface ShareHolder {
  /** `own`: a program on this machine, the engine's own pages included. `page`: a page of another site. `other`: another machine. */
  readonly kind: "own" | "page" | "other";
  /** Distinguishes holders of one kind. */
  readonly name: string;
}

/** Programs on this machine, as one holder. */
export const OWN: ShareHolder = { kind: "own", name: "" };

/** How much there is, in any unit. */
export interface ShareLimits {
  /** For all together. */
  readonly total: number;
  /** The part of `total` that only `own` gets. */
  readonly reserved: number;
  /** For one page, or rather for all pages that one machine shows. */
  readonly page: number;
  /** For one other machine. */
  readonly other: number;
}

/** Why there is nothing left: the asking holder has its share, or all together have theirs. */
export type Shortage = "share" | "total";

/** Counts the amount that each holder has. */
export class Shares {
  readonly limits: ShareLimits;
  readonly #taken = new Map<string, number>();
  #total = 0;
  #strangers = 0;

  constructor(limits: ShareLimits) {
    this.limits = limits;
  }

  /** Total amount of all holders. */
  get total(): number {
    return this.#total;
  }

  /** Whether `holder` may have `amount` more: null, or what is short. */
  shortage(holder: ShareHolder, amount = 1): Shortage | null {
    const { total, reserved } = this.limits;
    if (holder.kind !== "own") {
      if ((this.#taken.get(keyOf(holder)) ?? 0) + amount > this.limits[holder.kind]) return "share";
      if (this.#strangers + amount > total - reserved) return "total";
    }
    return this.#total + amount > total ? "total" : null;
  }

  /** Gives `holder` `amount` more, whatever the limits are. */
  take(holder: ShareHolder, amount = 1): void {
    this.#add(holder, amount);
  }

  /** Takes back `amount` that `holder` had. */
  giveBack(holder: ShareHolder, amount = 1): void {
    this.#add(holder, -amount);
  }

  #add(holder: ShareHolder, amount: number): void {
    this.#total += amount;
    if (holder.kind === "own") return;
    this.#strangers += amount;
    const key = keyOf(holder);
    const left = (this.#taken.get(key) ?? 0) + amount;
    if (left > 0) this.#taken.set(key, left);
    else this.#taken.delete(key);
  }
}

const keyOf = ({ kind, name }: ShareHolder) => `${kind} ${name}`;
