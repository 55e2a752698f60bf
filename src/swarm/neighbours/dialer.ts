/** Opens connections to the addresses of one swarm, best first, as many at once as the slots allow. */
import { deadline } from "../../bytes/deadline.ts";
import type { Clock, TcpConnection, Timer } from "../../ports.ts";
import type { AddressBook, KnownAddress } from "./address-book.ts";
import type { DialSlots } from "./dial-slots.ts";
import type { Transports } from "./transports.ts";

/** Time limit for opening a connection, ms: two lost SYNs still fit. */
const CONNECT_TIMEOUT_MS = 6_000;

/** Shortest time between two checks of addresses that back off, ms. */
const MIN_RETRY_DELAY_MS = 1_000;

/** How patient a dialer is. */
export interface DialTimes {
  /** Shortest time between two checks of resting addresses, ms. Default 1000. */
  readonly minRetryDelayMs?: number;
  /** Time limit for opening a connection, ms. Default 6000. */
  readonly connectTimeoutMs?: number;
  /**
   * A dial that takes longer than this, ms, is probably in vain. It no longer counts against `room`, so that other
   * addresses are tried. Default: it counts until it ends.
   */
  readonly doubtfulAfterMs?: number;
}

/** The swarm that a dialer works for (`Neighbourhood`). */
export interface DialingSwarm {
  readonly clock: Clock;
  readonly book: AddressBook;
  readonly dialTimes?: DialTimes;
  /** How many more peers are wanted, not counting those being dialled. */
  room(): number;
  /** Whether no address of this host may be dialled now. */
  skips(host: string): boolean;
  /** A connection is open, which took `rttMs`. It must be `open`ed in the same turn. */
  connected(entry: KnownAddress, connection: TcpConnection, rttMs: number): void;
  /** A dial failed. */
  unreached?(entry: KnownAddress): void;
  /** Taking a connection failed by a fault of ours. */
  failed(error: unknown): void;
}

/** The dialer of one swarm. */
export class Dialer {
  readonly #swarm: DialingSwarm;
  readonly #transports: Pick<Transports, "connect">;
  readonly #slots: DialSlots;
  readonly #ending = new AbortController();
  #dialing = 0;
  #timer: Timer | null = null;
  #closed = false;
  readonly #onSlot = () => this.pump();

  constructor(swarm: DialingSwarm, transports: Pick<Transports, "connect">, slots: DialSlots) {
    this.#swarm = swarm;
    this.#transports = transports;
    this.#slots = slots;
  }

  /** Dials while there is room. Call it whenever an address or room may have appeared. */
  pump(): void {
    if (this.#closed) return;
    const swarm = this.#swarm;
    const now = swarm.clock.monotonic();
    while (swarm.room() > this.#dialing) {
      const entry = swarm.book.next(now, (host) => swarm.skips(host));
      if (entry === null) return this.#sleep(now);
      if (!this.#slots.tryTake()) return this.#slots.wait(this.#onSlot);
      this.#dialing++;
      this.#dial(entry).catch((error) => swarm.failed(error));
    }
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#slots.forget(this.#onSlot);
    this.#ending.abort();
  }

  async #dial(entry: KnownAddress): Promise<void> {
    const { clock, book, dialTimes: { connectTimeoutMs = CONNECT_TIMEOUT_MS, doubtfulAfterMs } = {} } = this.#swarm;
    entry.state = "dialing";
    const limit = deadline(clock, connectTimeoutMs, this.#ending.signal);
    let counts = true;
    const doubt = () => {
      if (counts) this.#dialing--;
      counts = false;
    };
    const timer = doubtfulAfterMs === undefined
      ? null
      : clock.setTimeout(() => (doubt(), this.pump()), doubtfulAfterMs);
    try {
      const dialled = await this.#transports.connect(entry, limit.signal).catch(() => null);
      if (dialled === null) {
        book.failed(entry, clock.monotonic());
        this.#swarm.unreached?.(entry);
      } else if (this.#closed) return dialled.connection.abort();
      else this.#swarm.connected(entry, dialled.connection, dialled.rttMs);
    } finally {
      limit.cancel();
      timer?.cancel();
      doubt();
      this.#slots.release();
    }
    this.pump();
  }

  #sleep(nowMs: number): void {
    this.#timer?.cancel();
    this.#timer = null;
    const { book, clock, dialTimes: { minRetryDelayMs = MIN_RETRY_DELAY_MS } = {} } = this.#swarm;
    const retryMs = book.nextRetryMs();
    if (retryMs === null) return;
    this.#timer = clock.setTimeout(() => this.pump(), Math.max(minRetryDelayMs, retryMs - nowMs));
  }
}
