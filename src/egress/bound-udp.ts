/** UDP from one interface alone. */
import type { SocketAddress, UdpBindOptions, UdpPort, UdpSocket } from "../ports.ts";
import type { InterfaceWatch } from "./interface-watch.ts";

/** UDP whose sockets are bound to the interface's address, and again when it is back. Multicast is refused by the engine's options. */
export function boundUdp(udp: UdpPort, watch: InterfaceWatch): UdpPort {
  return {
    async bind(options) {
      const isWildcard = options.host === undefined || options.host === "0.0.0.0" || options.host === "::";
      if (!isWildcard) return await udp.bind(options);
      const socket = new BoundUdpSocket(udp, options, watch);
      await socket.open();
      return socket;
    },
  };
}

class BoundUdpSocket implements UdpSocket {
  readonly #udp: UdpPort;
  readonly #options: UdpBindOptions;
  readonly #watch: InterfaceWatch;
  readonly #handlers: ((data: Uint8Array, from: SocketAddress) => void)[] = [];
  readonly #stop: () => void;
  #inner: UdpSocket | null = null;
  #port: number;
  #isClosed = false;
  /** One change after the other. */
  #changes: Promise<void> = Promise.resolve();

  constructor(udp: UdpPort, options: UdpBindOptions, watch: InterfaceWatch) {
    this.#udp = udp;
    this.#options = options;
    this.#watch = watch;
    this.#port = options.port ?? 0;
    this.#stop = watch.onChange(() => {
      this.#changes = this.#changes.then(() => this.open()).catch(() => watch.again());
    });
  }

  get address(): SocketAddress {
    return this.#inner?.address ?? { host: this.#options.host ?? "0.0.0.0", port: this.#port };
  }

  get receiveBufferBytes(): number | undefined {
    return this.#inner?.receiveBufferBytes;
  }

  get trouble(): string | null {
    return this.#watch.trouble;
  }

  onMessage(handler: (data: Uint8Array, from: SocketAddress) => void): void {
    this.#handlers.push(handler);
  }

  async send(data: Uint8Array, to: SocketAddress): Promise<void> {
    const inner = this.#inner;
    if (inner !== null && inner.address.host.includes(":") === to.host.includes(":")) await inner.send(data, to);
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    this.#inner?.close();
    this.#inner = null;
  }

  /**
   * While the interface is away nothing is opened.
   *
   * @throws `conflict`, `unavailable`: as `UdpPort.bind`
   */
  async open(): Promise<void> {
    const { ipv4, ipv6 } = this.#watch.addresses();
    const host = this.#options.host === "::" ? ipv6 : ipv4;
    if (this.#inner !== null && this.#inner.address.host === host) return;
    this.#inner?.close();
    this.#inner = null;
    if (host === null || this.#isClosed) return;
    const inner = await this.#udp.bind({ ...this.#options, host, port: this.#port });
    if (this.#isClosed) return inner.close();
    this.#inner = inner;
    this.#port = inner.address.port;
    inner.onMessage((data, from) => {
      // What one handler keeps the others may not change.
      for (const [n, handler] of this.#handlers.entries()) handler(n === 0 ? data : data.slice(), from);
    });
  }
}
