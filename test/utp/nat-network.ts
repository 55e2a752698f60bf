/** UDP between simulated machines, some of them behind NAT, on a clock that the test moves. */
import type { SocketAddress, UdpPort, UdpSocket } from "../../src/ports.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { seeded } from "../support/random.ts";

/**
 * How a machine's router translates addresses (RFC 4787). "cone": one outside port for a socket, whoever it sends to; a
 * datagram gets in only from an address and port that the socket has sent to. "lenient": the same, but from any port of
 * a host that it has sent to. "symmetric": a port for each destination.
 */
export type Nat = "none" | "cone" | "lenient" | "symmetric";

interface Mapping {
  readonly owner: SimUdpSocket;
  readonly sentTo: SocketAddress[];
  letsIn(from: SocketAddress): boolean;
}

/** What paths are like. */
export interface PathOptions {
  readonly latencyMs?: number;
  /** Latency varies by up to this, ms, so that datagrams overtake each other. */
  readonly jitterMs?: number;
  /** Share of datagrams that are lost. */
  readonly loss?: number;
  /** A line that all datagrams to one host pass, one after the other, with room for so much time of waiting ones. */
  readonly line?: { readonly to: string; readonly bytesPerMs: number; readonly queueMs: number };
}

/** Of IPv4 and UDP. */
const HEADERS_BYTES = 28;

/** The network. */
export class NatNetwork {
  /** Datagrams that machines sent, lost ones included. */
  sent = 0;
  readonly #clock: FakeClock;
  readonly #path: Required<Omit<PathOptions, "line">> & Pick<PathOptions, "line">;
  /** When the line has sent everything that waits, monotonic ms. */
  #lineFreeMs = 0;
  readonly #random = seeded(7);
  readonly #mappings = new Map<string, Mapping>();
  #nextPort = 20_000;

  constructor(clock: FakeClock, path: PathOptions = {}) {
    this.#clock = clock;
    this.#path = { latencyMs: 20, jitterMs: 0, loss: 0, ...path };
  }

  /** UDP of a machine that others see at `host`. */
  machine(host: string, nat: Nat = "none"): UdpPort {
    return {
      bind: ({ port = 0 }) => {
        const own = { host, port: port || this.#nextPort++ };
        const socket = new SimUdpSocket(own, nat, this);
        if (nat === "none") this.#mappings.set(keyOf(own), { owner: socket, sentTo: [], letsIn: () => true });
        return Promise.resolve(socket);
      },
    };
  }

  /** Carries a datagram from a socket. */
  carry(socket: SimUdpSocket, data: Uint8Array, to: SocketAddress): void {
    this.sent++;
    const from = this.#outside(socket, to);
    const { latencyMs, jitterMs, loss } = this.#path;
    if (this.#random() < loss) return;
    const waitMs = this.#waitMs(to.host, data.length);
    if (waitMs === null) return;
    const copy = data.slice();
    this.#clock.setTimeout(() => {
      const mapping = this.#mappings.get(keyOf(to));
      if (mapping === undefined || !mapping.letsIn(from)) return;
      mapping.owner.deliver(copy, from);
    }, waitMs + latencyMs + jitterMs * this.#random());
  }

  /** How long a datagram is in the line and its queue; null when the queue is full. */
  #waitMs(host: string, bytes: number): number | null {
    const { line } = this.#path;
    if (line?.to !== host) return 0;
    const nowMs = this.#clock.monotonic();
    const startMs = Math.max(nowMs, this.#lineFreeMs);
    if (startMs - nowMs > line.queueMs) return null;
    this.#lineFreeMs = startMs + (bytes + HEADERS_BYTES) / line.bytesPerMs;
    return this.#lineFreeMs - nowMs;
  }

  #outside(socket: SimUdpSocket, to: SocketAddress): SocketAddress {
    if (socket.nat === "none") return socket.address;
    const destination = socket.nat === "symmetric" ? keyOf(to) : "";
    let outside = socket.outside.get(destination);
    if (outside === undefined) {
      outside = { host: socket.address.host, port: this.#nextPort++ };
      socket.outside.set(destination, outside);
      const sentTo: SocketAddress[] = [];
      const letsIn = (from: SocketAddress) => {
        return sentTo.some(({ host, port }) => host === from.host && (port === from.port || socket.nat === "lenient"));
      };
      this.#mappings.set(keyOf(outside), { owner: socket, sentTo, letsIn });
    }
    const mapping = this.#mappings.get(keyOf(outside))!;
    if (!mapping.letsIn(to)) mapping.sentTo.push(to);
    return outside;
  }
}

class SimUdpSocket implements UdpSocket {
  readonly address: SocketAddress;
  readonly nat: Nat;
  /** By destination (one for all with "cone"). */
  readonly outside = new Map<string, SocketAddress>();
  readonly #network: NatNetwork;
  #handler: (data: Uint8Array, from: SocketAddress) => void = () => {};
  #isClosed = false;

  constructor(address: SocketAddress, nat: Nat, network: NatNetwork) {
    this.address = address;
    this.nat = nat;
    this.#network = network;
  }

  onMessage(handler: (data: Uint8Array, from: SocketAddress) => void): void {
    this.#handler = handler;
  }

  send(data: Uint8Array, to: SocketAddress): Promise<void> {
    if (!this.#isClosed) this.#network.carry(this, data, to);
    return Promise.resolve();
  }

  close(): void {
    this.#isClosed = true;
  }

  deliver(data: Uint8Array, from: SocketAddress): void {
    if (!this.#isClosed) this.#handler(data, from);
  }
}

function keyOf({ host, port }: SocketAddress): string {
  return `${host}:${port}`;
}
