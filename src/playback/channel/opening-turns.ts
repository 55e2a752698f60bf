/**
 * When a new upstream of a channel may be opened. A viewer who changes fast leaves each channel after a moment, and
 * opening is what costs: a connection, the burst with which servers begin, and a window.
 */
import { Allowance } from "../../bytes/allowance.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { Clock, Timer } from "../../ports.ts";

/** Upstreams that one player opens at once, and per second afterwards: nobody sees more channels than that. */
const CLIENT_BURST = 6;
const CLIENT_PER_SECOND = 2;
/** The same for all players together, twice as many at once after a pause: ten who change at the same moment do not wait. */
const TOTAL_BURST = 16;
const TOTAL_PER_SECOND = 8;
/** Changes of one player that wait; its oldest gives way, because a later one has replaced it on the screen. */
const MAX_WAITING = 4;
/** Players that wait at once; each holds a connection, so they are few. */
const MAX_CLIENTS = 64;
/** Players whose allowance is remembered. */
const MAX_REMEMBERED = 256;
/** How often waiting changes are looked at, ms: less than a viewer notices. */
const LOOK_EVERY_MS = 50;

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (reason: MillraceError) => void;
}

/** Gives turns: the newest change of each player first, and one player after the other. */
export class OpeningTurns {
  readonly #clock: Clock;
  readonly #hasRoom: (client: string) => boolean;
  readonly #total: Allowance;
  readonly #allowances = new Map<string, Allowance>();
  /** By player, the next one to be served first; the changes of each with the newest last. */
  readonly #waiting = new Map<string, Waiting[]>();
  #timer: Timer | null = null;

  /** `hasRoom`: whether that player may have one more upstream of which nothing has come yet. */
  constructor(clock: Clock, hasRoom: (client: string) => boolean) {
    this.#clock = clock;
    this.#hasRoom = hasRoom;
    this.#total = new Allowance(TOTAL_PER_SECOND, TOTAL_BURST, clock.monotonic());
  }

  /**
   * Resolves when `client` may open an upstream. Rejects with `too_busy` when newer changes of it replaced
   * this one or too many players wait, and with the signal's reason.
   */
  take(client: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(abortError(signal));
    const isFree = !this.#waiting.has(client) && this.#waiting.size === 0;
    if (isFree && this.#mayOpen(client)) return Promise.resolve();
    const own = this.#waiting.get(client) ?? [];
    if (own.length === 0 && this.#waiting.size >= MAX_CLIENTS) {
      return Promise.reject(new MillraceError("too_busy", "many channels are being opened: try again in a moment"));
    }
    const turn = new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#forget(client, one);
        reject(abortError(signal));
      };
      const settled = () => signal.removeEventListener("abort", leave);
      const one: Waiting = {
        begin: () => (settled(), resolve()),
        refuse: (reason) => (settled(), reject(reason)),
      };
      signal.addEventListener("abort", leave, { once: true });
      own.push(one);
    });
    this.#waiting.set(client, own);
    if (own.length > MAX_WAITING) {
      own.shift()!.refuse(new MillraceError("too_busy", "the player has changed to other channels meanwhile"));
    }
    this.#timer ??= this.#clock.setTimeout(() => this.#look(), LOOK_EVERY_MS);
    return turn;
  }

  /** Takes what an opening by `client` costs; false, taking nothing, when it has to wait. */
  #mayOpen(client: string): boolean {
    const nowMs = () => this.#clock.monotonic();
    const allowance = this.#allowances.get(client) ?? new Allowance(CLIENT_PER_SECOND, CLIENT_BURST, nowMs());
    this.#allowances.delete(client);
    this.#allowances.set(client, allowance);
    if (this.#allowances.size > MAX_REMEMBERED) this.#allowances.delete(this.#allowances.keys().next().value!);
    if (!this.#hasRoom(client) || !allowance.take(1, nowMs)) return false;
    if (this.#total.take(1, nowMs)) return true;
    allowance.grant(1);
    return false;
  }

  #look(): void {
    this.#timer = null;
    for (const [client, own] of [...this.#waiting]) {
      if (!this.#mayOpen(client)) continue;
      const newest = own.at(-1)!;
      this.#forget(client, newest);
      // The others have their turns before its next one.
      if (own.length > 0) {
        this.#waiting.delete(client);
        this.#waiting.set(client, own);
      }
      newest.begin();
    }
    if (this.#waiting.size > 0) this.#timer = this.#clock.setTimeout(() => this.#look(), LOOK_EVERY_MS);
  }

  #forget(client: string, one: Waiting): void {
    const own = this.#waiting.get(client);
    if (own === undefined || !own.includes(one)) return;
    own.splice(own.indexOf(one), 1);
    if (own.length > 0) return;
    this.#waiting.delete(client);
    if (this.#waiting.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }
}
