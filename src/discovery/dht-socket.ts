/**
 * The datagram socket that the DHT library expects (the part of node's `dgram` that it calls), over our UDP port. Every
 * datagram is checked before the library decodes it, and what the library throws at hostile fields ends here.
 */
import { scanBencode } from "../bytes/bencode.ts";
import type { SocketAddress, UdpSocket } from "../ports.ts";

/** Longest message read. KRPC messages fit into one Ethernet frame; some nodes answer with a little more. */
const MAX_DATAGRAM_BYTES = 4_096;

/** The deepest KRPC message (BEP 44 `v` in `r`) needs few levels; the values of 200 peers are the most. */
const LIMITS = { maxDepth: 16, maxValues: 1_000 } as const;

type Listener = (...args: unknown[]) => void;

/** A socket as the DHT library uses it. */
export class DhtSocket {
  private readonly socket: UdpSocket;
  private readonly listeners = new Map<string, Listener[]>();
  private closed = false;

  constructor(socket: UdpSocket) {
    this.socket = socket;
    socket.onMessage((data, from) => this.receive(data, from));
  }

  on(event: string, listener: Listener): this {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
    return this;
  }

  address(): { address: string; family: string; port: number } {
    return { address: this.socket.address.host, family: "IPv4", port: this.socket.address.port };
  }

  /** The socket is bound already: this only reports so. */
  bind(): void {
    queueMicrotask(() => {
      if (!this.closed) this.emit("listening");
    });
  }

  send(
    data: Uint8Array,
    offset: number,
    length: number,
    port: number,
    host: string,
    sent: (error?: Error) => void,
  ): void {
    if (this.closed) return;
    // The library may reuse its buffer, the port may send later.
    const datagram = data.slice(offset, offset + length);
    this.socket.send(datagram, { host, port }).then(() => sent(), (error) => sent(error));
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.socket.close();
    queueMicrotask(() => this.emit("close"));
  }

  private receive(data: Uint8Array, from: SocketAddress): void {
    if (this.closed || data.length > MAX_DATAGRAM_BYTES || from.port === 0) return;
    try {
      scanBencode(data, LIMITS);
      this.emit("message", data, { address: from.host, family: "IPv4", port: from.port, size: data.length });
    } catch {
      // Not KRPC, or a field of a type that the library does not expect (it calls methods on them): drop the datagram.
    }
  }

  private emit(event: string, ...args: unknown[]): void {
    for (const listener of this.listeners.get(event) ?? []) listener(...args);
  }
}
