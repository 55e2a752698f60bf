/** The sockets of Multicast DNS (RFC 6762), shared by searches and announcements; open while there is a listener. */
import { Allowance, Allowances } from "../../bytes/allowance.ts";
import { faultFields, guarded } from "../../bytes/guarded-clock.ts";
import type { Clock, InterfaceAddress, Logger, NetworkPort, SocketAddress, UdpPort, UdpSocket } from "../../ports.ts";
import { isNear, localNetworks } from "../../upnp/near.ts";
import { type DnsMessage, MAX_MESSAGE_BYTES, readMessage, writeMessage } from "./message.ts";

const GROUP: SocketAddress = { host: "224.0.0.251", port: 5353 };
/** Messages read per second and machine, and how many may accumulate: a device sends a few per minute. */
const MESSAGES_PER_SECOND = 20;
const MESSAGES_AT_ONCE = 50;
/** Machines whose messages are counted. */
const MAX_SENDERS = 256;
/** The same for all machines together: a sender may use any address of its network, and a message costs up to 1 ms. */
const ALL_MESSAGES_PER_SECOND = 200;
const ALL_MESSAGES_AT_ONCE = 150;

/** What the sockets need of the machine. */
export interface MdnsPorts {
  readonly udp: UdpPort;
  readonly network: NetworkPort;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Called with each message from a machine of the local networks; the same one may come more than once. */
export type MdnsListener = (message: DnsMessage, from: SocketAddress) => void;

/** Sockets on each interface with an IPv4 network. */
export class MulticastDns {
  readonly #ports: MdnsPorts;
  readonly #listeners = new Set<MdnsListener>();
  /** By the interface's address. */
  readonly #sockets = new Map<string, UdpSocket>();
  readonly #senders: Allowances;
  readonly #all: Allowance;
  /** As they were at the last send: asking the system for each message would cost as much as reading it. */
  #networks: readonly InterfaceAddress[] = [];
  #binding: Promise<void> = Promise.resolve();
  /** A fault of a listener costs that listener the message, and nobody else. */
  readonly #failed = (error: unknown) =>
    this.#ports.log.log("error", "a fault of the engine: an mDNS message was not read", faultFields(error));

  constructor(ports: MdnsPorts) {
    this.#ports = ports;
    this.#senders = new Allowances({
      perSecond: MESSAGES_PER_SECOND,
      most: MESSAGES_AT_ONCE,
      limit: MAX_SENDERS,
      nowMs: () => ports.clock.monotonic(),
    });
    this.#all = new Allowance(ALL_MESSAGES_PER_SECOND, ALL_MESSAGES_AT_ONCE, ports.clock.monotonic());
  }

  /** Adds `listener`; resolves when all sockets that can be opened are open. */
  async join(listener: MdnsListener): Promise<void> {
    this.#listeners.add(listener);
    await this.#bind();
  }

  /** Removes `listener`; removing the last one closes the sockets. */
  leave(listener: MdnsListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  /** This machine's addresses in the networks where its sockets are open. */
  hosts(): readonly string[] {
    return [...this.#sockets.keys()];
  }

  /** Sends to each network, or only to `to`, the message that `messageFor` makes for this machine's address there; null: none. */
  async send(messageFor: (ownHost: string) => DnsMessage | null, to: SocketAddress = GROUP): Promise<void> {
    await this.#bind();
    await Promise.all([...this.#sockets].map(async ([host, socket]) => {
      const message = messageFor(host);
      if (message !== null) await socket.send(writeMessage(message), to);
    }));
  }

  /** Opens sockets for the interfaces present now: laptops move between networks. */
  #bind(): Promise<void> {
    return this.#binding = this.#binding.catch(() => {}).then(async () => {
      this.#networks = localNetworks(this.#ports.network);
      const hosts = new Set(this.#networks.map(({ host }) => host));
      for (const [host, socket] of this.#sockets) {
        if (hosts.has(host)) continue;
        socket.close();
        this.#sockets.delete(host);
      }
      for (const host of hosts) if (!this.#sockets.has(host)) await this.#open(host);
    });
  }

  async #open(host: string): Promise<void> {
    const where = { multicastGroup: GROUP.host, multicastInterface: host };
    // With a port other than 5353, a search gets its answers by unicast and receives no goodbyes (RFC 6762, section 6.7).
    const socket = await this.#ports.udp.bind({ ...where, port: GROUP.port })
      .catch(() => this.#ports.udp.bind(where)).catch(() => null);
    if (socket === null) return;
    if (this.#listeners.size === 0) return socket.close();
    this.#sockets.set(host, socket);
    socket.onMessage(guarded((data: Uint8Array, from: SocketAddress) => this.#hear(data, from), this.#failed));
  }

  #hear(data: Uint8Array, from: SocketAddress): void {
    if (data.length > MAX_MESSAGE_BYTES || !isNear(from.host, this.#networks)) return;
    if (!this.#senders.take(from.host) || !this.#all.take(1, () => this.#ports.clock.monotonic())) return;
    const message = readMessage(data);
    if (message === null) return;
    // Multicast answers must come from port 5353 (RFC 6762, section 6).
    if (message.isResponse && from.port !== GROUP.port) return;
    for (const listener of this.#listeners) guarded(listener, this.#failed)(message, from);
  }
}
