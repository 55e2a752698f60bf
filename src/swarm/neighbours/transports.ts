/** The ways to a peer of a torrent: TCP, and uTP for those that TCP does not reach. */
import { guarded } from "../../bytes/guarded-clock.ts";
import { abortError, hasCode } from "../../errors.ts";
import type { Clock, SocketAddress, TcpConnection } from "../../ports.ts";

/** Head start of the first way, ms: as long as RFC 8305 waits between two attempts to connect. */
const HEAD_START_MS = 250;

/**
 * How long a host that refused TCP may take to answer by uTP: so many times what the refusal took, and at least this, ms. Most
 * of these have no peer any more, and a dial holds one of few places.
 */
const REFUSALS_LONG = 3;
const LEAST_AFTER_REFUSAL_MS = 500;

/** A way to a peer. */
export type Transport = "tcp" | "utp";

/** An address of a peer (`KnownAddress`). */
export interface DialTarget {
  readonly address: SocketAddress;
  /** The way that led to it last. */
  transport: Transport;
  /** A common neighbour has it dial us by uTP at this moment (BEP 55): our own datagrams let its ones in. */
  dialsUs?: boolean;
}

/** What opens connections of one kind (`TcpPort`, `UtpEndpoint`). */
export interface Connects {
  connect(address: SocketAddress, options: { signal: AbortSignal }): Promise<TcpConnection>;
}

/** An open connection, and how long it took to open, ms. */
export interface Dialled {
  readonly connection: TcpConnection;
  readonly rttMs: number;
}

/** Opens connections to peers. */
export class Transports {
  readonly #clock: Clock;
  readonly #tcp: Connects;
  readonly #utp: Connects | null;

  /** `utp`: null to use TCP alone. */
  constructor(clock: Clock, tcp: Connects, utp: Connects | null) {
    this.#clock = clock;
    this.#tcp = tcp;
    this.#utp = utp;
  }

  /**
   * Connects by the way that the peer took last time, TCP at first, and by the other one as well when that fails or takes
   * longer than the head start. TCP comes first because the kernel does its work. Rejects when both fail, with the error of
   * the second, or when `signal` fires.
   */
  async connect(entry: DialTarget, signal: AbortSignal): Promise<Dialled> {
    const utp = this.#utp;
    if (utp !== null && entry.dialsUs === true) {
      Object.assign(entry, { dialsUs: false, transport: "utp" });
      return await this.#open(utp, entry.address, signal);
    }
    if (utp === null) return await this.#open(this.#tcp, entry.address, signal);
    const first: Transport = entry.transport;
    const second: Transport = first === "tcp" ? "utp" : "tcp";
    const ways = { tcp: this.#tcp, utp };
    // One for each: the signal of the attempt that won must not fire afterwards.
    const endings = { tcp: new AbortController(), utp: new AbortController() };
    const end = () => [first, second].forEach((transport) => endings[transport].abort(abortError(signal)));
    if (signal.aborted) throw abortError(signal);
    signal.addEventListener("abort", end, { once: true });
    let isWon = false;
    let isSecondUnderWay = false;
    let failures = 0;
    let cancel = () => {};
    const startedMs = this.#clock.monotonic();
    try {
      return await new Promise<Dialled>((resolve, reject) => {
        const attempt = (transport: Transport) => {
          this.#open(ways[transport], entry.address, endings[transport].signal).then((dialled) => {
            if (isWon) return dialled.connection.abort();
            isWon = true;
            entry.transport = transport;
            endings[transport === first ? second : first].abort();
            resolve(dialled);
          }, (error) => {
            if (++failures === 2 || signal.aborted) return reject(error);
            attemptSecond();
            if (transport === "tcp" && hasCode(error, "connection_failed")) giveUpSoon();
          });
        };
        const attemptSecond = () => {
          if (isSecondUnderWay) return;
          isSecondUnderWay = true;
          cancel();
          attempt(second);
        };
        const giveUpSoon = () => {
          const tookMs = this.#clock.monotonic() - startedMs;
          const leftMs = Math.max(LEAST_AFTER_REFUSAL_MS, REFUSALS_LONG * tookMs);
          const late = this.#clock.setTimeout(() => endings.utp.abort(), leftMs);
          cancel = () => late.cancel();
        };
        const timer = this.#clock.setTimeout(guarded(attemptSecond, reject), HEAD_START_MS);
        cancel = () => timer.cancel();
        attempt(first);
      });
    } finally {
      cancel();
      signal.removeEventListener("abort", end);
    }
  }

  async #open(way: Connects, address: SocketAddress, signal: AbortSignal): Promise<Dialled> {
    const startedMs = this.#clock.monotonic();
    const connection = await way.connect(address, { signal });
    return { connection, rttMs: this.#clock.monotonic() - startedMs };
  }
}
