/** Finds the neighbours of a swarm again after our line was away, or after we stood still. */
import { MillraceError } from "../../errors.ts";
import type { Clock, Timer } from "../../ports.ts";
import type { PeerLink } from "../../wire/types.ts";
import type { AddressBook } from "./address-book.ts";

/**
 * Delay before the addresses of lost neighbours are dialled again when none is left, ms: doubled from the second time on.
 * Our own line may have been away for some seconds, or a minute.
 */
const FIRST_MS = 250;
const SECOND_MS = 1_000;
/** The longest such delay, ms, while somebody waits for bytes, and while nobody does. */
const LAST_MS = 30_000;
const LAST_IDLE_MS = 600_000;
/** A neighbour that stayed for less than this, ms, hung up on purpose: the delay goes on from where it was. */
const SHORT_MS = 10_000;

/** When the wall clock gains this much on the time that we ran, ms, we stood still (`Clock`). */
const STOOD_STILL_MS = 5_000;
/** After that, neighbours have this long to show that they are still there, ms. */
const REPORT_BACK_MS = 5_000;

/** The part of a neighbour that matters here. */
interface Lost {
  readonly isReady: boolean;
  readonly startedMs: number;
  readonly link: Pick<PeerLink, "lastReceivedMs"> | null;
  drop(error: Error): void;
}

/** The swarm (`Neighbourhood`). */
export interface ReturningSwarm {
  readonly clock: Clock;
  readonly book: Pick<AddressBook, "isAlone" | "wake">;
  readonly sessions: Iterable<Lost>;
  /** Somebody waits for bytes. */
  readonly isEager: boolean;
  /** Dials if there is room. */
  pump(): void;
  /** Asks all that know peers for some. */
  search(): void;
}

/** The ways back of one swarm. */
export class Comeback {
  readonly #swarm: ReturningSwarm;
  #timer: Timer | null = null;
  #delayMs = FIRST_MS;
  /** The wall clock minus the monotonic one, ms. */
  #aheadMs: number;
  /** When we last went on after standing still, monotonic ms; null once the neighbours were examined. */
  #wokeMs: number | null = null;

  constructor(swarm: ReturningSwarm) {
    this.#swarm = swarm;
    this.#aheadMs = swarm.clock.now() - swarm.clock.monotonic();
  }

  /** There is a neighbour. */
  joined(): void {
    this.#swarm.book.isAlone = false;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** A neighbour is gone. */
  lost({ startedMs }: Lost): void {
    const { book, sessions, clock } = this.#swarm;
    if (book.isAlone) return;
    for (const { isReady } of sessions) if (isReady) return;
    book.isAlone = true;
    if (clock.monotonic() - startedMs >= SHORT_MS) this.#delayMs = FIRST_MS;
    this.#again();
  }

  /** Call it every second. Neighbours that say nothing after we stood still are given up; others are looked for at once. */
  round(nowMs: number): void {
    const aheadMs = this.#swarm.clock.now() - nowMs;
    if (aheadMs - this.#aheadMs > STOOD_STILL_MS) {
      this.#wokeMs = nowMs;
      this.#swarm.search();
    }
    this.#aheadMs = aheadMs;
    const wokeMs = this.#wokeMs;
    if (wokeMs === null || nowMs - wokeMs < REPORT_BACK_MS) return;
    this.#wokeMs = null;
    for (const session of [...this.#swarm.sessions]) {
      if (!session.isReady || session.link!.lastReceivedMs >= wokeMs) continue;
      session.drop(new MillraceError("timeout", "silent since we stood still"));
    }
  }

  close(): void {
    this.#timer?.cancel();
  }

  #again(): void {
    const { clock, book } = this.#swarm;
    this.#timer = clock.setTimeout(() => {
      const { isEager } = this.#swarm;
      this.#delayMs = Math.min(isEager ? LAST_MS : LAST_IDLE_MS, Math.max(SECOND_MS, 2 * this.#delayMs));
      this.#again();
      book.wake(clock.monotonic());
      this.#swarm.pump();
    }, this.#delayMs);
  }
}
