/** Looks up one swarm in the DHT periodically. */
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, Logger, SocketAddress, Timer } from "../ports.ts";
import type { DiscoverySourceStatus } from "./types.ts";

/** Time between regular lookups; nodes keep announces for about 30 min (BEP 5). */
const INTERVAL_MS = 5 * 60_000;

/** Shortest time between lookups on demand. */
const MIN_INTERVAL_MS = 15_000;

/** The same when nobody can connect to us and we have no peers: a lookup costs about twenty datagrams. */
const URGENT_INTERVAL_MS = 5_000;

/** Peers counted for `status`: nodes may name any number. */
const MAX_COUNTED = 2_000;

/** The part of the DHT node that a search needs. */
export interface DhtLookup {
  lookup(
    infohash: Uint8Array,
    port: number,
    report: (peer: SocketAddress, node: string) => void,
    signal: AbortSignal,
  ): Promise<number>;
  onFirstNode(listener: () => void): () => void;
  bootstrap(): Promise<void>;
}

/** Dependencies of a search. */
export interface DhtSearchContext {
  readonly clock: Clock;
  readonly log: Logger;
  readonly node: DhtLookup;
  readonly infohash: Uint8Array;
  peerPort(): number;
  /** `node`: literal address of the DHT node that reported it. */
  onPeer(peer: SocketAddress, node: string): void;
}

/**
 * Looks up at the start, every five minutes, and on demand at most every 15 s (5 s when urgent). An exception costs one
 * lookup, and nobody else notices.
 */
export class DhtSearch {
  readonly #context: DhtSearchContext;
  readonly #aborter = new AbortController();
  readonly #unsubscribe: () => void;
  #timer: Timer | null = null;
  #running = false;
  /** The first node of a DHT came while a lookup was under way that may not have asked it. */
  #wanted = false;
  #lastStartMs = -Infinity;
  #nextMs = 0;
  #replies = 0;
  #lastPeers = 0;
  #lastError: string | null = null;

  constructor(context: DhtSearchContext) {
    this.#context = context;
    // With an empty table a lookup ends at once without a result: repeat it as soon as there is a node to ask.
    this.#unsubscribe = context.node.onFirstNode(this.#led(() => {
      if (this.#running) this.#wanted = true;
      else if (this.#replies === 0) this.#scheduleAt(-Infinity);
      // The other DHT (BEP 32) answers, and this one was not asked.
      else this.needPeers();
    }));
    this.#led(() => this.#run())();
  }

  needPeers(isUrgent = false): void {
    if (this.#running || this.#aborter.signal.aborted) return;
    const intervalMs = isUrgent ? URGENT_INTERVAL_MS : MIN_INTERVAL_MS;
    this.#scheduleAt(Math.min(this.#nextMs, this.#lastStartMs + intervalMs));
  }

  status(): DiscoverySourceStatus {
    const nextAnnounceMs = this.#running ? null : Math.max(0, this.#nextMs - this.#context.clock.monotonic());
    return {
      kind: "dht",
      name: "dht",
      peers: this.#lastPeers,
      seeders: null,
      lastError: this.#lastError,
      nextAnnounceMs,
    };
  }

  close(): void {
    this.#unsubscribe();
    this.#timer?.cancel();
    this.#aborter.abort();
  }

  /** `fn`, whose exceptions cost one lookup. */
  #led(fn: () => unknown): () => void {
    return guarded(fn, (error) => {
      this.#broke(error);
      if (!this.#running && !this.#aborter.signal.aborted) {
        this.#scheduleAt(this.#context.clock.monotonic() + MIN_INTERVAL_MS);
      }
    });
  }

  /** Reports a fault of the engine. */
  #broke(error: unknown): void {
    const { log, infohash } = this.#context;
    this.#replies = 0;
    this.#lastError = "internal error";
    const fields = { infohash: toHex(infohash), ...faultFields(error) };
    log.log("error", "a fault of the engine ended a lookup in the DHT", fields);
  }

  #scheduleAt(atMs: number): void {
    this.#timer?.cancel();
    const nowMs = this.#context.clock.monotonic();
    this.#nextMs = Math.max(atMs, nowMs);
    this.#timer = this.#context.clock.setTimeout(this.#led(() => this.#run()), this.#nextMs - nowMs);
  }

  async #run(): Promise<void> {
    const { clock, node, infohash } = this.#context;
    if (this.#running || this.#aborter.signal.aborted) return;
    this.#running = true;
    this.#wanted = false;
    this.#lastStartMs = clock.monotonic();
    const found = new Set<string>();
    const broken = new AbortController();
    const report = guarded((peer: SocketAddress, node: string) => {
      if (broken.signal.aborted) return;
      if (found.size < MAX_COUNTED) found.add(`${peer.host} ${peer.port}`);
      this.#context.onPeer(peer, node);
    }, (error) => broken.abort(error));
    const signal = AbortSignal.any([this.#aborter.signal, broken.signal]);
    try {
      this.#replies = await node.lookup(infohash, this.#context.peerPort(), report, signal);
      this.#lastError = this.#replies > 0 ? null : "no DHT node answers";
    } catch (error) {
      if (this.#aborter.signal.aborted) return;
      if (broken.signal.aborted) this.#broke(broken.signal.reason);
      else if (!(error instanceof MillraceError)) this.#broke(error);
      else {
        this.#replies = 0;
        this.#lastError = error.code === "timeout" ? "the lookup took too long" : error.message;
      }
    } finally {
      this.#running = false;
    }
    if (this.#aborter.signal.aborted) return;
    this.#lastPeers = found.size;
    if (this.#replies === 0) node.bootstrap().catch((error) => this.#broke(error));
    const delayMs = this.#replies === 0 && this.#wanted
      ? 0
      : this.#replies === 0 || this.#wanted
      ? MIN_INTERVAL_MS
      : INTERVAL_MS;
    this.#scheduleAt(clock.monotonic() + delayMs);
  }
}
