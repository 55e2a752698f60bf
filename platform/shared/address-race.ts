/**
 * Which of a name's addresses is used: the one to which a TCP connection stands first, begun in turn (happy eyeballs, RFC 8305).
 * Many networks have an IPv6 route that leads nowhere. The connection is only for finding out: a runtime's HTTP client does not
 * say when it is connected, and a request that waits for a slow server must not be sent twice.
 */
import net from "node:net";
import { deadline } from "../../src/bytes/deadline.ts";
import { abortError } from "../../src/errors.ts";
import type { AddressRace, Clock, Racers, TcpPort } from "../../src/ports.ts";

/** Head start of each address over the next one, ms (RFC 8305, section 8). */
const HEAD_START_MS = 250;
/** A race without a winner ends after this, ms. */
const RACE_MS = 5000;
/** Addresses of one name that are tried. */
const MAX_ADDRESSES = 4;
/** How long the winner is used without another race, ms, and how many are remembered. */
const KEEP_MS = 10 * 60_000;
const MAX_KEPT = 256;

/** What a race needs. */
export interface RaceParts {
  readonly tcp: Pick<TcpPort, "connect">;
  readonly clock: Clock;
}

/** The races of this machine. */
export class TcpAddressRace implements AddressRace {
  readonly #parts: RaceParts;
  /** By the addresses of a name. */
  readonly #winners = new Map<string, { readonly address: string; readonly untilMs: number }>();

  constructor(parts: RaceParts) {
    this.#parts = parts;
  }

  async order(racers: Racers): Promise<readonly string[]> {
    const addresses = alternating(racers.addresses).slice(0, MAX_ADDRESSES);
    if (addresses.length < 2) return addresses;
    const key = keyOf(racers);
    const known = this.#winners.get(key);
    const nowMs = this.#parts.clock.monotonic();
    const winner = known !== undefined && known.untilMs > nowMs ? known.address : await this.#race(addresses, racers);
    if (winner === null) return addresses;
    if (winner !== known?.address || known.untilMs <= nowMs) this.#keep(key, winner);
    return [winner, ...addresses.filter((address) => address !== winner)];
  }

  forget(racers: Racers): void {
    this.#winners.delete(keyOf(racers));
  }

  #keep(key: string, address: string): void {
    this.#winners.delete(key);
    this.#winners.set(key, { address, untilMs: this.#parts.clock.monotonic() + KEEP_MS });
    if (this.#winners.size > MAX_KEPT) this.#winners.delete(this.#winners.keys().next().value!);
  }

  /** The address whose connection stands first; null when none does. */
  async #race(addresses: readonly string[], { port, localAddress, signal }: Racers): Promise<string | null> {
    const { tcp, clock } = this.#parts;
    const limit = deadline(clock, RACE_MS, signal);
    const over = new AbortController();
    const ending = AbortSignal.any([limit.signal, over.signal]);
    const failures = addresses.map(() => Promise.withResolvers<void>());
    const options = { signal: ending, ...(localAddress !== undefined && { localAddress }) };
    const attempts = addresses.map(async (host, i) => {
      try {
        // A failure lets the next one begin at once.
        if (i > 0) await headStart(clock, failures[i - 1]!.promise, i * HEAD_START_MS, ending);
        const connection = await tcp.connect({ host, port }, options);
        connection.open({ data() {}, drain() {}, end() {}, close() {} });
        connection.abort();
        return host;
      } catch (error) {
        failures[i]!.resolve();
        throw error;
      }
    });
    try {
      return await Promise.any(attempts);
    } catch {
      if (signal.aborted) throw abortError(signal);
      return null;
    } finally {
      limit.cancel();
      over.abort();
    }
  }
}

/** Resolves when the address before has failed, or after `delayMs`. Rejects with the signal's reason. */
async function headStart(clock: Clock, before: Promise<void>, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw abortError(signal);
  let stop = () => {};
  const over = new Promise<never>((_, reject) => stop = () => reject(abortError(signal)));
  const late = Promise.withResolvers<void>();
  const timer = clock.setTimeout(late.resolve, delayMs);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await Promise.race([before, late.promise, over]);
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", stop);
  }
}

/** The families take turns, beginning with that of the first (RFC 8305, section 4). */
function alternating(addresses: readonly string[]): string[] {
  const first = net.isIP(addresses[0] ?? "");
  const own = addresses.filter((address) => net.isIP(address) === first);
  const others = addresses.filter((address) => net.isIP(address) !== first);
  return Array.from({ length: addresses.length }, (_, i) => [own[i], others[i]]).flat()
    .filter((address) => address !== undefined);
}

function keyOf({ addresses, port, localAddress = "" }: Racers): string {
  return `${localAddress} ${port} ${[...addresses].sort().join(" ")}`;
}
