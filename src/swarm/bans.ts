/** Hosts that sent corrupt data or broke the protocol. */
import { hostKey } from "./address.ts";

/** Bans kept at once: an attacker with more addresses than this costs us hash failures, never memory. */
export const MAX_BANS = 4096;

/**
 * How long a ban lasts, ms: an hour outlives any one download attempt, but shared addresses are forgiven in the end.
 */
export const BAN_MS = 3_600_000;

/** A bounded list of banned hosts; the oldest ban gives way. Times are monotonic ms. */
export class BanList {
  readonly #until = new Map<string, number>();

  ban(host: string, nowMs: number): void {
    const key = hostKey(host);
    this.#until.delete(key);
    if (this.#until.size >= MAX_BANS) this.#until.delete(this.#until.keys().next().value!);
    this.#until.set(key, nowMs + BAN_MS);
  }

  has(host: string, nowMs: number): boolean {
    const key = hostKey(host);
    const until = this.#until.get(key);
    if (until === undefined) return false;
    if (until > nowMs) return true;
    this.#until.delete(key);
    return false;
  }

  get size(): number {
    return this.#until.size;
  }
}
