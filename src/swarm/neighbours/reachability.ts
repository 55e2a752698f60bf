/** Whether strangers can connect to this engine, learnt from incoming connections. */

/** What is known about a listening port: others can connect to it, they cannot, or nothing is known yet. */
export type Reach = "open" | "closed" | "unknown";

/** An incoming connection proves that the port is open for this long, ms: routers restart, machines change networks. */
const OPEN_MS = 30 * 60_000;
/** A helper's connection arrives within this, ms: two round trips and one lost packet. */
const HELP_MS = 4_000;
/**
 * Helpers in different networks that must fail before the port counts as closed: one may be unwilling or behind a
 * firewall.
 */
const HELPERS = 2;
/** Helpers are asked again after this long without an incoming connection, ms. */
const ASK_AGAIN_MS = 10 * 60_000;

/** What the swarms of an engine know about its listening port. One per engine; times are monotonic ms. */
export class Reachability {
  readonly #nowMs: () => number;
  readonly #isStranger: (host: string) => boolean;
  /** Network of a helper → when it was asked to connect. */
  readonly #asked = new Map<string, number>();
  #openUntilMs = -Infinity;

  /** `isStranger`: whether the host is outside of our own network. Only its connection proves anything. */
  constructor(nowMs: () => number, isStranger: (host: string) => boolean) {
    this.#nowMs = nowMs;
    this.#isStranger = isStranger;
  }

  /** What is known at the moment. */
  get state(): Reach {
    const nowMs = this.#nowMs();
    if (nowMs < this.#openUntilMs) return "open";
    let failed = 0;
    for (const askedMs of this.#asked.values()) {
      if (nowMs - askedMs >= HELP_MS && nowMs - askedMs < ASK_AGAIN_MS) failed++;
    }
    return failed >= HELPERS ? "closed" : "unknown";
  }

  /** A connection to our port came in from `host`. */
  incoming(host: string): void {
    if (!this.#isStranger(host)) return;
    this.#openUntilMs = this.#nowMs() + OPEN_MS;
    this.#asked.clear();
  }

  /** Whether a helper in `network` should be asked to connect to us; `host` is its address. */
  wantsHelp(network: string, host: string): boolean {
    const nowMs = this.#nowMs();
    if (nowMs < this.#openUntilMs || !this.#isStranger(host)) return false;
    for (const [key, askedMs] of this.#asked) if (nowMs - askedMs >= ASK_AGAIN_MS) this.#asked.delete(key);
    return this.#asked.size < HELPERS && !this.#asked.has(network);
  }

  /** A helper in `network` was asked. */
  asked(network: string): void {
    this.#asked.set(network, this.#nowMs());
  }

  /** The way in has changed, for example by a port mapping. Earlier results of helpers no longer count. */
  changed(): void {
    this.#asked.clear();
  }
}
