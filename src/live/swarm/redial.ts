/** Which addresses of a live swarm to dial, and when again. */
import type { PeerOrigin } from "../../discovery/types.ts";
import { backOff, type BookPolicy, type KnownAddress, score } from "../../swarm/neighbours/address-book.ts";

/**
 * A broadcaster that is gone is dialled again after this, ms. Viewers must have it back within two seconds, and all of
 * them wait for the last of the members that headed the trees.
 */
export const SOURCE_RETRY_MS = 250;
/**
 * A broadcaster dials nobody for this long after its start, ms. Its first links are for the members that headed the
 * trees before; strangers that came first would keep some of them out.
 */
export const SOURCE_QUIET_MS = 1000;
/**
 * Times of a swarm's `Dialer`. A dial that takes longer than 1.2 s is probably to somebody behind NAT; one lost packet fits
 * into that limit.
 */
export const DIAL_TIMES = { minRetryDelayMs: 100, connectTimeoutMs: 3_000, doubtfulAfterMs: 1_200 } as const;
/** Failed dials of a broadcaster after which it is dialled less often. */
const SOURCE_PATIENCE = 240;
const SOURCE_SLOW_MS = 30_000;
/** A connection that ended sooner than this was not wanted, ms. */
const SHORT_MS = 5000;
/** An address that the user named is dialled again after this, ms. */
const NAMED_RETRY_MS = 1000;
/** Failed dials of an address that the user named before each further one doubles the delay. */
const NAMED_PATIENCE = 5;
/** A newcomer that took the metadata hangs up and joins. It is dialled again after this, ms, doubled a few times. */
const NEWCOMER_RETRY_MS = 300;
const NEWCOMER_RETRIES = 5;
/** Addresses remembered at which the broadcaster was: it may move, and have several. */
const MAX_SOURCES = 4;

/** Decides for one swarm. */
export class RedialPolicy implements BookPolicy {
  readonly #random: () => number;
  /** Neighbours of each origin, read at each choice. */
  readonly #neighbours: () => Iterable<PeerOrigin>;
  /** Address of a broadcaster → how often in a row it took the connection and soon hung up. */
  readonly #sources = new Map<string, number>();
  /**
   * Random order for addresses. Everybody learns the same addresses in the same order, and dialling in that order would
   * lead all to the same few.
   */
  readonly #lots = new WeakMap<KnownAddress, number>();
  /** Address of a newcomer → how often it was dialled again soon. */
  readonly #newcomers = new WeakMap<KnownAddress, number>();
  readonly #reachable = new WeakSet<KnownAddress>();
  readonly #near = new WeakSet<KnownAddress>();
  readonly #isNear: (host: string) => boolean;

  /** `isNear`: whether a host is in our own network, where links are quick and use nobody's up-link to the Internet. */
  constructor(
    random: () => number,
    neighbours: () => Iterable<PeerOrigin>,
    isNear: (host: string) => boolean = () => false,
  ) {
    this.#random = random;
    this.#neighbours = neighbours;
    this.#isNear = isNear;
  }

  /** A member is connected to this address, and says that others can be, too. */
  isReachable(entry: KnownAddress | undefined): void {
    if (entry !== undefined) this.#reachable.add(entry);
  }

  /** Its connection ended before it became a member. */
  fetchedMetadata(entry: KnownAddress): void {
    this.#newcomers.set(entry, (this.#newcomers.get(entry) ?? -1) + 1);
  }

  /** A broadcaster listens there. */
  isSource(entry: KnownAddress): void {
    if (this.#sources.size < MAX_SOURCES && !this.#sources.has(entry.key)) this.#sources.set(entry.key, 0);
  }

  /** A connection to it is over. A short one means that it is full, or not ready yet. */
  left(entry: KnownAddress, lastedMs: number): void {
    const count = this.#sources.get(entry.key);
    if (count !== undefined) this.#sources.set(entry.key, lastedMs < SHORT_MS ? count + 1 : 0);
  }

  retryDelayMs(entry: KnownAddress): number | null {
    const refusals = this.#sources.get(entry.key);
    const again = this.#newcomers.get(entry) ?? NEWCOMER_RETRIES;
    if (again < NEWCOMER_RETRIES && entry.failures === 0) return this.#doubled(NEWCOMER_RETRY_MS, again);
    if (refusals === undefined) {
      // A peer the user named may be the only one we know, and full right now; retry, it will free a slot.
      const isNamed = entry.origin === "manual" || entry.origin === "magnet";
      if (!isNamed) return backOff(entry);
      return this.#doubled(NAMED_RETRY_MS, entry.failures - NAMED_PATIENCE);
    }
    return this.#doubled(SOURCE_RETRY_MS, entry.failures > SOURCE_PATIENCE ? Infinity : refusals - 1);
  }

  /** `firstMs`, doubled `times` times (below 0: not at all), within its limit and 20 % to each side. */
  #doubled(firstMs: number, times: number): number {
    return Math.min(SOURCE_SLOW_MS, firstMs * 2 ** Math.max(0, times)) * (0.8 + 0.4 * this.#random());
  }

  /**
   * Broadcasters first, then peers the user named, then those of our own network (admission takes half of these at
   * most), then the origin with the fewest neighbours. So an attacker who controls one of tracker, DHT and peers does
   * not choose all neighbours. Within one origin, addresses that others say can be dialled come first.
   */
  score(entry: KnownAddress): number {
    if (this.#sources.has(entry.key)) return -1;
    if (entry.origin === "manual" || entry.origin === "magnet") return score(entry);
    let same = 0;
    for (const origin of this.#neighbours()) if (origin === entry.origin) same++;
    let lot = this.#lots.get(entry);
    if (lot === undefined) {
      this.#lots.set(entry, lot = this.#random());
      if (this.#isNear(entry.address.host)) this.#near.add(entry);
    }
    if (this.#near.has(entry)) return 10 * entry.failures + lot;
    return 10 * entry.failures + 2 + Math.min(7, same) + lot - (this.#reachable.has(entry) ? 1 : 0);
  }
}
