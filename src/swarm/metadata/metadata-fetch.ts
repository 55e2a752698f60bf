/**
 * Gets the metadata of a magnet from peers (BEP 9). A few are asked at once, and the first good response wins. Slow
 * peers continue but no longer count: others are asked as well, and replace them once too many are being asked.
 */
import { machineKey } from "../../bytes/machine-key.ts";
import type { Clock, Timer } from "../../ports.ts";
import { MAX_METADATA_BYTES } from "../../wire/limits.ts";
import type { PeerLink } from "../../wire/types.ts";

/** Peers asked at the same time that are not slow: more would only waste their bandwidth. */
const MAX_ASKED = 4;

/** Peers asked at the same time, slow ones included. */
const MAX_BESIDE = 12;

/** A peer that sends no block for this long is slow, ms: two round trips across the world. */
const FIRST_BLOCK_MS = 600;

/** A peer's rate is judged after this, ms. */
const RATE_AFTER_MS = 1_000;

/** A peer is slow when, at its rate, the rest would take longer than this, ms: a viewer is waiting. */
const MAX_REST_MS = 3_000;

/** How often the rates are checked, ms. */
const LOOK_MS = 250;

/** A swarm full of peers without metadata drops those connected for longer than this, ms. */
const USELESS_MS = 5_000;

/** How many such peers are dropped per second. */
const PARTED_PER_ROUND = 4;

/** Memory that all fetches of an engine may hold, bytes, counted by the sizes that the peers announced. */
export const METADATA_BUDGET_BYTES = 96 * 1024 * 1024;

/** One fetch takes at most this fraction (1/n) of what is left: a few huge ones must not keep a small one out. */
const BUDGET_PART = 8;

/** Counted for a peer that does not say how large its metadata is: its first block does. Others are asked before it. */
const UNKNOWN_BYTES = MAX_METADATA_BYTES;

/** Memory that metadata under way may take, over all swarms. */
export class MetadataBudget {
  #left = METADATA_BUDGET_BYTES;

  /** Takes memory for one fetch; false when that is more than its share. */
  take(bytes: number): boolean {
    if (bytes > this.#left / BUDGET_PART) return false;
    this.#left -= bytes;
    return true;
  }

  /** Gives back what `take` took. */
  give(bytes: number): void {
    this.#left += bytes;
  }
}

/** A peer as the fetch sees it. */
export interface MetadataSource {
  readonly isReady: boolean;
  /** Its metadata was refused, wrong or late. */
  readonly metadataUseless: boolean;
  readonly extensions: { readonly extensions: readonly string[]; readonly metadataBytes: number | null } | null;
  readonly link: Pick<PeerLink, "remote" | "fetchMetadata" | "cancelMetadata" | "metadataBytes"> | null;
  /** Monotonic ms. */
  readonly startedMs: number;
  /** Drops it because it is of no use for a while. */
  part(reason: string): void;
}

/** The peers of one torrent (`Peers`). */
export interface MetadataPeers<T extends MetadataSource> {
  readonly sessions: Iterable<T>;
  /** No more peers fit, and there are untried addresses. */
  readonly isCrowded: boolean;
}

interface Fetch {
  readonly askedMs: number;
  readonly sizeBytes: number;
}

/** How much of the metadata has arrived. */
export interface MetadataProgress {
  readonly receivedBytes: number;
  readonly totalBytes: number;
}

/** Chooses which peers to ask. The link checks what arrives against the infohash. */
export class MetadataFetch<T extends MetadataSource> {
  readonly #clock: Clock;
  readonly #budget: MetadataBudget;
  readonly #peers: MetadataPeers<T>;
  readonly #fetches = new Map<T, Fetch>();
  readonly #tries = new WeakMap<T, number>();
  #timer: Timer | null = null;
  #isOver = false;

  constructor(clock: Clock, budget: MetadataBudget, peers: MetadataPeers<T>) {
    this.#clock = clock;
    this.#budget = budget;
    this.#peers = peers;
  }

  /**
   * Asks more peers when too few of those asked are fast. Call it when a peer reported its metadata, failed or left.
   */
  pump(): void {
    if (this.#isOver) return;
    this.#forgetEnded();
    const nowMs = this.#clock.monotonic();
    while (this.#fastCount(nowMs) < MAX_ASKED) {
      const session = this.#best();
      if (session === null || !this.#makeRoom(session, nowMs)) break;
      this.#ask(session, nowMs);
    }
    this.#look();
  }

  /** Call every second: makes room for other peers when the swarm is full of those without metadata. */
  round(nowMs: number): void {
    if (this.#isOver) return;
    let parted = 0;
    for (const session of [...this.#peers.sessions]) {
      if (parted === PARTED_PER_ROUND || !this.#peers.isCrowded) return;
      if (this.#fetches.has(session) || statedBytes(session) !== null) continue;
      if (nowMs - session.startedMs < USELESS_MS) continue;
      parted++;
      session.part("makes_room");
    }
  }

  /** Progress of the peer that has sent most, bytes; null while none is asked. */
  get progress(): MetadataProgress | null {
    let best: MetadataProgress | null = null;
    for (const [{ link }, { sizeBytes }] of this.#fetches) {
      const receivedBytes = link?.metadataBytes ?? 0;
      if (best === null || receivedBytes > best.receivedBytes) best = { receivedBytes, totalBytes: sizeBytes };
    }
    return best;
  }

  /** The metadata is known, or nobody wants it any more. */
  close(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    for (const session of [...this.#fetches.keys()]) this.#cancel(session);
  }

  #look(): void {
    this.#timer?.cancel();
    this.#timer = this.#fetches.size === 0 ? null : this.#clock.setTimeout(() => this.pump(), LOOK_MS);
  }

  #forgetEnded(): void {
    for (const [session, { sizeBytes }] of this.#fetches) {
      if (offeredBytes(session) !== null) continue;
      this.#fetches.delete(session);
      this.#budget.give(sizeBytes);
    }
  }

  #fastCount(nowMs: number): number {
    let count = 0;
    for (const [session, fetch] of this.#fetches) if (!isSlow(session, fetch, nowMs)) count++;
    return count;
  }

  /**
   * The peer tried least often; on a tie from the host asked least often, then with the smallest metadata, which is
   * checked soonest.
   */
  #best(): T | null {
    const asked = new Map<string, number>();
    for (const { link } of this.#fetches.keys()) {
      const host = machineKey(link!.remote.host);
      asked.set(host, (asked.get(host) ?? 0) + 1);
    }
    let best: { session: T; rank: readonly number[] } | null = null;
    for (const session of this.#peers.sessions) {
      const bytes = offeredBytes(session);
      if (bytes === null || this.#fetches.has(session)) continue;
      const rank = [this.#triesOf(session), asked.get(machineKey(session.link!.remote.host)) ?? 0, bytes];
      if (best === null || isBefore(rank, best.rank)) best = { session, rank };
    }
    return best?.session ?? null;
  }

  /** Takes memory for a peer's metadata, if necessary from slow peers that were tried more often. */
  #makeRoom(session: T, nowMs: number): boolean {
    const bytes = offeredBytes(session)!;
    while (this.#fetches.size >= MAX_BESIDE || !this.#budget.take(bytes)) {
      const slowest = this.#slowest(this.#triesOf(session), nowMs);
      if (slowest === null) return false;
      this.#cancel(slowest);
      if (this.#peers.isCrowded) slowest.part("makes_room");
    }
    return true;
  }

  #slowest(minTries: number, nowMs: number): T | null {
    let slowest: T | null = null;
    let longestMs = 0;
    for (const [session, fetch] of this.#fetches) {
      if (this.#triesOf(session) <= minTries || !isSlow(session, fetch, nowMs)) continue;
      const rest = restMs(session, fetch, nowMs);
      if (rest <= longestMs) continue;
      slowest = session;
      longestMs = rest;
    }
    return slowest;
  }

  #ask(session: T, nowMs: number): void {
    this.#tries.set(session, this.#triesOf(session) + 1);
    this.#fetches.set(session, { askedMs: nowMs, sizeBytes: offeredBytes(session)! });
    session.link!.fetchMetadata();
  }

  #cancel(session: T): void {
    this.#budget.give(this.#fetches.get(session)!.sizeBytes);
    this.#fetches.delete(session);
    session.link!.cancelMetadata();
  }

  #triesOf(session: T): number {
    return this.#tries.get(session) ?? 0;
  }
}

/** Size of the metadata that this peer offers; null when it cannot be asked. */
function offeredBytes(session: MetadataSource): number | null {
  const canAsk = session.isReady && !session.metadataUseless && session.extensions?.extensions.includes("ut_metadata");
  return canAsk ? statedBytes(session) ?? UNKNOWN_BYTES : null;
}

/** The size that this peer states; null when it states none, as peers do that have no metadata yet. */
function statedBytes(session: MetadataSource): number | null {
  return session.isReady && !session.metadataUseless ? session.extensions?.metadataBytes ?? null : null;
}

/** How long the rest takes at the rate so far, ms; Infinity before the first block. */
function restMs(session: MetadataSource, { askedMs, sizeBytes }: Fetch, nowMs: number): number {
  const bytes = session.link!.metadataBytes;
  return bytes === 0 ? Infinity : (sizeBytes - bytes) * (nowMs - askedMs) / bytes;
}

function isSlow(session: MetadataSource, fetch: Fetch, nowMs: number): boolean {
  const sinceMs = nowMs - fetch.askedMs;
  if (session.link!.metadataBytes === 0) return sinceMs >= FIRST_BLOCK_MS;
  return sinceMs >= RATE_AFTER_MS && restMs(session, fetch, nowMs) > MAX_REST_MS;
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && a[at]! < b[at]!;
}
