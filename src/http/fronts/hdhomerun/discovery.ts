/** Answers programs that look for a tuner in the local network, by broadcasts to UDP port 65001. */
import { Allowance, Allowances } from "../../../bytes/allowance.ts";
import { faultFields, guarded } from "../../../bytes/guarded-clock.ts";
import type { Clock, Logger, NetworkPort, SocketAddress, UdpPort, UdpSocket } from "../../../ports.ts";
import { isNear, localNetworks } from "../../../upnp/near.ts";
import { TUNERS } from "./device.ts";
import { looksForTuner, tunerFound } from "./messages.ts";

/** Where clients search. */
const PORT = 65_001;
/** Searches of one machine that are answered, per second, and saved up: clients repeat theirs. */
const PER_SECOND = 5;
const AT_ONCE = 20;
/** The same for all machines together: a sender may use any address of its network. */
const ALL_PER_SECOND = 50;
const ALL_AT_ONCE = 100;
/** Machines whose searches are counted. */
const MAX_SENDERS = 256;

/** What answering needs. */
export interface TunerDiscoveryParts {
  readonly udp: UdpPort;
  readonly network: NetworkPort;
  readonly clock: Clock;
  readonly log: Logger;
  /** Eight hexadecimal digits. */
  readonly id: string;
  /** Where HTTP clients reach the tuner. `host` null: at all addresses of this machine. */
  readonly served: { readonly host: string | null; readonly port: number };
  /** Whether others may use it now. */
  readonly isOffered: () => boolean;
}

/** Answers until it is closed. */
export class TunerDiscovery {
  readonly #parts: TunerDiscoveryParts;
  readonly #opening: Promise<UdpSocket | null>;
  readonly #searches: Allowances;
  readonly #all: Allowance;

  constructor(parts: TunerDiscoveryParts) {
    this.#parts = parts;
    const { udp, clock, log } = parts;
    const nowMs = () => clock.monotonic();
    this.#searches = new Allowances({ perSecond: PER_SECOND, most: AT_ONCE, limit: MAX_SENDERS, nowMs });
    this.#all = new Allowance(ALL_PER_SECOND, ALL_AT_ONCE, nowMs());
    this.#opening = udp.bind({ port: PORT }).then((socket) => {
      const failed = (error: unknown) =>
        log.log("error", "a fault of the engine: a search was not answered", faultFields(error));
      socket.onMessage(guarded((data, from) => this.#hear(socket, data, from), failed));
      return socket;
    }, (error) => {
      log.log("debug", "programs can't find the tuner by themselves", { error });
      return null;
    });
  }

  /** Resolves when nothing is answered any more. */
  async close(): Promise<void> {
    (await this.#opening)?.close();
  }

  #hear(socket: UdpSocket, data: Uint8Array, from: SocketAddress): void {
    const { network, served, id: digits, clock, isOffered } = this.#parts;
    const id = Number.parseInt(digits, 16);
    const own = localNetworks(network).find((one) => isNear(from.host, [one]));
    if (own === undefined || (served.host !== null && served.host !== own.host)) return;
    if (!looksForTuner(data, id) || !isOffered()) return;
    if (!this.#searches.take(from.host) || !this.#all.take(1, () => clock.monotonic())) return;
    const baseUrl = `http://${own.host}:${served.port}`;
    void socket.send(tunerFound({ id, tuners: TUNERS, baseUrl }), from);
  }
}
