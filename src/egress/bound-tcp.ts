/** TCP from one interface alone. */
import { abortError, MillraceError } from "../errors.ts";
import type { NetworkPort, SocketAddress, TcpConnection, TcpHandlers, TcpListener, TcpPort } from "../ports.ts";
import { canonicalHost } from "../discovery/addresses.ts";
import type { InterfaceWatch } from "./interface-watch.ts";

/** Addresses of one name that are tried at most. */
const MAX_ADDRESSES = 4;

/** What it needs. `network` looks names up from the interface. */
export interface BoundTcpParts {
  readonly tcp: TcpPort;
  readonly network: Pick<NetworkPort, "resolve">;
  readonly watch: InterfaceWatch;
}

/**
 * TCP whose connections leave by the interface, and end when it goes away. A listener at a wildcard address listens at the
 * interface's own, and again when that is back.
 */
export function boundTcp({ tcp, network, watch }: BoundTcpParts): TcpPort {
  const open = new Set<TcpConnection>();
  watch.onChange(() => {
    for (const connection of [...open]) if (!watch.has(connection.local.host)) connection.abort();
  });
  const tracked = (inner: TcpConnection): TcpConnection => {
    const connection = new TrackedConnection(inner, () => open.delete(connection));
    open.add(connection);
    return connection;
  };
  return {
    async connect(target, { signal }) {
      // The addresses are known first: a runtime that is given a name tries those of the other family, too, and stops there.
      const addresses = canonicalHost(target.host) !== null
        ? [target.host]
        : await network.resolve(target.host, { signal });
      let failure: unknown = null;
      for (const host of addresses.slice(0, MAX_ADDRESSES)) {
        if (signal.aborted) throw abortError(signal);
        try {
          return tracked(
            await tcp.connect({ host, port: target.port }, { signal, localAddress: watch.addressFor(host) }),
          );
        } catch (error) {
          failure = error;
        }
      }
      throw failure ?? new MillraceError("not_found", `no address is known for ${target.host}`);
    },
    async listen(at, onConnection) {
      if (!isWildcard(at.host)) return await tcp.listen(at, onConnection);
      const listener = new FollowingListener(tcp, at, watch, (connection) => onConnection(tracked(connection)));
      await listener.open();
      return listener;
    },
  };
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** A connection whose end is noticed. */
class TrackedConnection implements TcpConnection {
  readonly #inner: TcpConnection;
  readonly #ended: () => void;

  constructor(inner: TcpConnection, ended: () => void) {
    this.#inner = inner;
    this.#ended = ended;
  }

  get local(): SocketAddress {
    return this.#inner.local;
  }

  get remote(): SocketAddress {
    return this.#inner.remote;
  }

  get bufferedBytes(): number {
    return this.#inner.bufferedBytes;
  }

  open(handlers: TcpHandlers): void {
    this.#inner.open({
      data: (chunk) => handlers.data(chunk),
      end: () => handlers.end(),
      drain: () => handlers.drain(),
      close: (error) => {
        this.#ended();
        handlers.close(error);
      },
    });
  }

  write(chunk: Uint8Array): boolean {
    return this.#inner.write(chunk);
  }

  pause(): void {
    this.#inner.pause();
  }

  resume(): void {
    this.#inner.resume();
  }

  end(): void {
    this.#inner.end();
  }

  abort(): void {
    this.#ended();
    this.#inner.abort();
  }
}

/** Listens at the interface's address, whichever it is at the time. */
class FollowingListener implements TcpListener {
  readonly #tcp: TcpPort;
  readonly #watch: InterfaceWatch;
  readonly #onConnection: (connection: TcpConnection) => void;
  readonly #stop: () => void;
  #at: SocketAddress;
  #inner: TcpListener | null = null;
  #isClosed = false;
  /** One change after the other. */
  #changes: Promise<void> = Promise.resolve();

  constructor(
    tcp: TcpPort,
    at: SocketAddress,
    watch: InterfaceWatch,
    onConnection: (connection: TcpConnection) => void,
  ) {
    this.#tcp = tcp;
    this.#at = at;
    this.#watch = watch;
    this.#onConnection = onConnection;
    this.#stop = watch.onChange(() => {
      // The port may be taken, by connections of before that the kernel still remembers.
      this.#changes = this.#changes.then(() => this.open()).catch(() => watch.again());
    });
  }

  get address(): SocketAddress {
    return this.#inner?.address ?? this.#at;
  }

  /**
   * While the interface is away nothing is opened.
   *
   * @throws `conflict`: as `TcpPort.listen`
   */
  async open(): Promise<void> {
    const { ipv4, ipv6 } = this.#watch.addresses();
    const host = this.#at.host === "::" ? ipv6 ?? ipv4 : ipv4 ?? ipv6;
    if (this.#inner !== null && this.#inner.address.host === host) return;
    await this.#inner?.close();
    this.#inner = null;
    if (host === null || this.#isClosed) return;
    const inner = await this.#tcp.listen({ host, port: this.#at.port }, this.#onConnection);
    if (this.#isClosed) return await inner.close();
    this.#inner = inner;
    // The port stays the same for those who know it.
    this.#at = { host: this.#at.host, port: inner.address.port };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    await this.#inner?.close();
  }
}
