/** Peer addresses a swarm knows of, and which of them to dial next. */
import { machineKey } from "../../bytes/machine-key.ts";
import type { PeerOrigin } from "../../discovery/types.ts";
import type { SocketAddress } from "../../ports.ts";
import { addressKey } from "./address.ts";
import type { Transport } from "./transports.ts";

/** Addresses kept for a swarm. Trackers and PEX of the largest swarms fill it; then the least promising give way. */
export const MAX_ADDRESSES = 2000;

/** Addresses kept for one host (`machineKey`): a peer that advertises a thousand ports of one machine must not fill the book. */
const MAX_PER_HOST = 16;

/** Delay before an address is tried again, ms: doubled with every failure, up to the last. */
const FIRST_RETRY_MS = 5_000;
const LAST_RETRY_MS = 600_000;

/** A peer that leaves while the metadata is unknown is tried again after this, ms, and so often. */
const RETURN_MS = 1_000;
const MAX_RETURNS = 3;

/** An address is forgotten after this many failures in a row. */
const MAX_FAILURES = 6;

/** Addresses that are dialled at once when there is no neighbour left: as many as `DialSlots` has places. */
const MAX_WOKEN = 30;

/**
 * Sources whose naming of an address ends its rest, with the longest rest, ms, that goes on nevertheless. The user wants it
 * dialled now. Several trackers may name one that has just failed. What peers repeat of each other would end every rest
 * within a minute.
 */
const RENAMED: ReadonlyMap<PeerOrigin, number> = new Map([
  ["manual", 0],
  ["magnet", 0],
  ["lsd", FIRST_RETRY_MS],
  ["tracker", FIRST_RETRY_MS],
]);

/** How a kind of swarm rates addresses. */
export interface BookPolicy {
  /** Delay before an address is tried again after its failures in a row (0: the last connection worked), ms; null: never. */
  retryDelayMs(entry: KnownAddress): number | null;
  /** Lower is dialled first. */
  score(entry: KnownAddress): number;
}

/** Best first: peers the user named, then origins that are hard to forge. */
const ORIGIN_RANK: Readonly<Record<PeerOrigin, number>> = {
  manual: 0,
  magnet: 0,
  lsd: 1,
  tracker: 2,
  incoming: 3,
  pex: 4,
  dht: 5,
};

/** One known address. */
export interface KnownAddress {
  readonly key: string;
  readonly address: SocketAddress;
  origin: PeerOrigin;
  state: "idle" | "dialing" | "connected" | "self";
  failures: number;
  /** Monotonic ms before which it is not dialled. */
  retryAtMs: number;
  /** How often it was tried again soon after it had left. */
  returns: number;
  /** The way that led to it last. */
  transport: Transport;
  /** As in `DialTarget`. */
  dialsUs?: boolean;
  /** The peer hung up during our handshake: begin the other way (encrypted or plain) next time. */
  flipEncryption: boolean;
  /** The peer could not take data in the same packet as our handshake: wait for its own handshake next time. */
  patient: boolean;
  /** Not dialled for a while, because both sides had everything. */
  seed: boolean;
  /** The address was a neighbour once. */
  hasWorked: boolean;
}

/** The bounded book of one swarm. Times are monotonic ms. */
export class AddressBook {
  readonly #entries = new Map<string, KnownAddress>();
  readonly #perHost = new Map<string, number>();
  readonly #policy: BookPolicy;
  #seedsRest = false;
  /** There is no neighbour, so that failures say as much about our own line. Addresses that have worked are kept meanwhile. */
  isAlone = false;

  constructor(policy: BookPolicy = FILE_SWARM) {
    this.#policy = policy;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Learns an address; false when it was already known, is unusable, or the book is full of better ones. */
  add(address: SocketAddress, origin: PeerOrigin): boolean {
    if (address.port < 1 || address.port > 65535 || address.host === "") return false;
    const key = addressKey(address);
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (ORIGIN_RANK[origin] < ORIGIN_RANK[known.origin]) known.origin = origin;
      return false;
    }
    const host = machineKey(address.host);
    const sameHost = this.#perHost.get(host) ?? 0;
    if (sameHost >= MAX_PER_HOST) return false;
    if (this.#entries.size >= MAX_ADDRESSES && !this.#evictWorse(origin)) return false;
    this.#entries.set(key, {
      key,
      address,
      origin,
      state: "idle",
      failures: 0,
      retryAtMs: -Infinity,
      returns: 0,
      flipEncryption: false,
      patient: false,
      transport: "tcp",
      seed: false,
      hasWorked: false,
    });
    this.#perHost.set(host, sameHost + 1);
    return true;
  }

  /** An address was named, again perhaps: its rest may end, unless both sides had everything. Returns whether it did. */
  endRest(address: SocketAddress, origin: PeerOrigin, nowMs: number): boolean {
    const entry = this.get(address);
    const leastMs = RENAMED.get(origin);
    if (entry === undefined || leastMs === undefined || entry.state !== "idle" || entry.seed) return false;
    if (entry.retryAtMs - nowMs <= leastMs) return false;
    entry.retryAtMs = nowMs;
    return true;
  }

  get(address: SocketAddress): KnownAddress | undefined {
    return this.#entries.get(addressKey(address));
  }

  /** The best address to dial now, or null. `skip` filters (banned hosts). */
  next(nowMs: number, skip: (host: string) => boolean): KnownAddress | null {
    let best: KnownAddress | null = null;
    for (const entry of this.#entries.values()) {
      if (entry.state !== "idle" || entry.retryAtMs > nowMs || skip(entry.address.host)) continue;
      if (best === null || this.#policy.score(entry) < this.#policy.score(best)) best = entry;
    }
    return best;
  }

  /** Earliest time at which an idle address may be tried again; null when there is none. */
  nextRetryMs(): number | null {
    let earliest: number | null = null;
    for (const entry of this.#entries.values()) {
      if (entry.state === "idle" && (earliest === null || entry.retryAtMs < earliest)) earliest = entry.retryAtMs;
    }
    return earliest;
  }

  /** The dial or the connection failed: back off, or forget the address. */
  failed(entry: KnownAddress, nowMs: number): void {
    entry.failures++;
    this.#retryLater(entry, nowMs);
  }

  /** A connection that had worked is over: try again after the first delay. */
  ended(entry: KnownAddress, nowMs: number): void {
    entry.failures = 0;
    this.#retryLater(entry, nowMs);
  }

  /**
   * A connection that had worked is over, and we don't know yet what the swarm shares. The peer may just have found out
   * that it is a broadcast, which it joins with new connections. So it is tried again soon, a few times.
   */
  endedEarly(entry: KnownAddress, nowMs: number): void {
    this.ended(entry, nowMs);
    if (entry.returns >= MAX_RETURNS) return;
    entry.returns++;
    entry.retryAtMs = nowMs + RETURN_MS;
  }

  /** The peer answered, but not to this kind of handshake: the other kind is tried at once. */
  flip(entry: KnownAddress, nowMs: number): void {
    entry.state = "idle";
    entry.flipEncryption = true;
    entry.patient = true;
    entry.retryAtMs = nowMs;
  }

  /** The peer shook hands but ignored what came with our handshake: dial it again immediately, and wait for its handshake. */
  slower(entry: KnownAddress, nowMs: number): void {
    entry.state = "idle";
    entry.patient = true;
    entry.retryAtMs = nowMs;
  }

  /** The peer is of no use for a while: the swarm is full or, with `asSeed`, both sides have everything. */
  rest(entry: KnownAddress, nowMs: number, asSeed: boolean): void {
    entry.state = "idle";
    entry.seed = asSeed;
    this.#seedsRest ||= asSeed;
    entry.retryAtMs = nowMs + LAST_RETRY_MS;
  }

  /** We lack something again: resting seeds may be dialled at once. Returns whether there are any. */
  wakeSeeds(nowMs: number): boolean {
    if (!this.#seedsRest) return false;
    this.#seedsRest = false;
    for (const entry of this.#entries.values()) {
      if (entry.seed && entry.state === "idle") entry.retryAtMs = Math.min(entry.retryAtMs, nowMs);
      entry.seed = false;
    }
    return true;
  }

  /** There is no neighbour: the most promising of the addresses that worked, were named, or rest may be dialled at once. */
  wake(nowMs: number): void {
    const promising = this.list().filter(({ state, retryAtMs, seed, failures, hasWorked, origin }) =>
      state === "idle" && retryAtMs > nowMs && !seed &&
      (hasWorked || failures === 0 || origin === "manual" || origin === "magnet")
    );
    const scored = promising.map((entry) => ({ entry, score: this.#policy.score(entry) }));
    scored.sort((a, b) => a.score - b.score);
    for (const { entry } of scored.slice(0, MAX_WOKEN)) entry.retryAtMs = nowMs;
  }

  /** All addresses. */
  list(): KnownAddress[] {
    return [...this.#entries.values()];
  }

  remove(entry: KnownAddress): void {
    if (!this.#entries.delete(entry.key)) return;
    const host = machineKey(entry.address.host);
    const left = (this.#perHost.get(host) ?? 1) - 1;
    if (left === 0) this.#perHost.delete(host);
    else this.#perHost.set(host, left);
  }

  #retryLater(entry: KnownAddress, nowMs: number): void {
    const delayMs = this.#policy.retryDelayMs(entry);
    entry.state = "idle";
    if (delayMs === null && !(this.isAlone && entry.hasWorked)) this.remove(entry);
    else entry.retryAtMs = nowMs + (delayMs ?? LAST_RETRY_MS);
  }

  /** Makes room by dropping the worst idle address, if it is no better than one from `origin`. */
  #evictWorse(origin: PeerOrigin): boolean {
    let worst: KnownAddress | null = null;
    for (const entry of this.#entries.values()) {
      if (entry.state === "idle" && (worst === null || score(entry) > score(worst))) worst = entry;
    }
    if (worst === null || score(worst) < ORIGIN_RANK[origin]) return false;
    this.remove(worst);
    return true;
  }
}

/** The policy of torrent swarms: fewest failures first, then the best origin. */
const FILE_SWARM: BookPolicy = { retryDelayMs: backOff, score };

/** The delay, doubled with every failure; null after too many. */
export function backOff(entry: Pick<KnownAddress, "failures">): number | null {
  if (entry.failures >= MAX_FAILURES) return null;
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.max(0, entry.failures - 1));
}

/** Lower is better: fewer failures first, then the origin. */
export function score(entry: KnownAddress): number {
  return entry.failures * 10 + ORIGIN_RANK[entry.origin];
}
