/** UDP through a SOCKS5 proxy (RFC 1928, section 7): a TCP connection that lasts, and datagrams with the far end's address in front. */
import { deadline } from "../bytes/deadline.ts";
import { concatBytes } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { SocketAddress, Timer, UdpBindOptions, UdpPort, UdpSocket } from "../ports.ts";
import { associateThrough } from "./handshake.ts";
import { HANDSHAKE_TIMEOUT_MS, type ProxiedTcpParts, throughProxy } from "./proxied-tcp.ts";
import { decodeDatagram, encodeAddress } from "./socks-address.ts";

/** Pause before the proxy is asked again, ms: first, and most after it has refused again and again. */
const RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;

/** What it needs. */
export interface ProxiedUdpParts extends ProxiedTcpParts {
  readonly udp: UdpPort;
}

/** UDP through the proxy. `bind` ignores host and port: the proxy chooses where datagrams leave. */
export function proxiedUdp(parts: ProxiedUdpParts): UdpPort {
  return {
    async bind(options: UdpBindOptions): Promise<UdpSocket> {
      if (options.multicastGroup !== undefined) throw new MillraceError("unavailable", "no multicast through a proxy");
      const socket = new ProxiedUdpSocket(parts, options.receiveBufferBytes);
      await socket.associate();
      return socket;
    },
  };
}

/** What the proxy passes on for one socket. */
interface Association {
  readonly local: UdpSocket;
  readonly relay: SocketAddress;
  close(): void;
}

/** A socket that asks the proxy again when it loses it. What is sent meanwhile is lost. */
class ProxiedUdpSocket implements UdpSocket {
  /** Where others see us is unknown. */
  readonly address: SocketAddress = { host: "0.0.0.0", port: 0 };
  readonly #parts: ProxiedUdpParts;
  readonly #receiveBufferBytes: number | undefined;
  readonly #handlers: ((data: Uint8Array, from: SocketAddress) => void)[] = [];
  readonly #ending = new AbortController();
  #association: Association | null = null;
  #trouble: string | null = null;
  #retry: Timer | null = null;
  #retryMs = RETRY_MS;

  constructor(parts: ProxiedUdpParts, receiveBufferBytes: number | undefined) {
    this.#parts = parts;
    this.#receiveBufferBytes = receiveBufferBytes;
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  onMessage(handler: (data: Uint8Array, from: SocketAddress) => void): void {
    this.#handlers.push(handler);
  }

  async send(data: Uint8Array, to: SocketAddress): Promise<void> {
    const association = this.#association;
    if (association === null) return;
    const head = Uint8Array.of(0, 0, 0);
    await association.local.send(concatBytes([head, encodeAddress(to), data]), association.relay);
  }

  close(): void {
    this.#ending.abort(new MillraceError("closed", "the socket is closed"));
    this.#retry?.cancel();
    this.#association?.close();
    this.#association = null;
  }

  /** Asks the proxy once; later again by itself until it agrees. Never rejects: `trouble` says why nothing goes. */
  async associate(): Promise<void> {
    const { clock, health } = this.#parts;
    const late = deadline(clock, HANDSHAKE_TIMEOUT_MS, this.#ending.signal);
    try {
      this.#association = await this.#open(late.signal);
      this.#trouble = null;
      this.#retryMs = RETRY_MS;
      health.udpWorks();
    } catch (error) {
      this.#lost(error as Error);
    } finally {
      late.cancel();
    }
  }

  async #open(signal: AbortSignal): Promise<Association> {
    const { proxy, udp } = this.#parts;
    let relay: SocketAddress | null = null;
    const control = await throughProxy(this.#parts, proxy, signal, async (line) => {
      relay = await associateThrough(line, proxy);
    });
    const { host, port } = relay!;
    // "Where you reached me": the proxy knows no address of its own.
    const at = { host: host === "0.0.0.0" || host === "::" ? control.proxyHost : host, port };
    let isOpen = true;
    let local: UdpSocket | null = null;
    const close = () => {
      isOpen = false;
      control.abort();
      local?.close();
    };
    control.open({
      data() {},
      end: close,
      drain() {},
      close: (error) => {
        const wasOpen = isOpen;
        close();
        if (wasOpen) this.#lost(error ?? new MillraceError("connection_failed", "the proxy stopped passing UDP on"));
      },
    });
    local = await udp.bind({
      host: at.host.includes(":") ? "::" : "0.0.0.0",
      ...(this.#receiveBufferBytes === undefined ? {} : { receiveBufferBytes: this.#receiveBufferBytes }),
    }).catch((error) => {
      close();
      throw error;
    });
    if (!isOpen || signal.aborted) {
      close();
      throw new MillraceError("connection_failed", "the proxy stopped passing UDP on");
    }
    local.onMessage((data, from) => {
      if (from.host !== at.host || from.port !== at.port) return;
      const head = decodeDatagram(data);
      if (head === null) return;
      for (const handler of this.#handlers) handler(data.slice(head.contentAt), head.from);
    });
    return { local, relay: at, close };
  }

  #lost(error: Error): void {
    this.#association = null;
    if (this.#ending.signal.aborted) return;
    this.#trouble = error.message;
    this.#parts.health.udpFails(error);
    this.#retry?.cancel();
    this.#retry = this.#parts.clock.setTimeout(() => void this.associate(), this.#retryMs);
    this.#retryMs = Math.min(MAX_RETRY_MS, this.#retryMs * 2);
  }
}
