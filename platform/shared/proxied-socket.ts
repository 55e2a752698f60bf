/** Sockets of node:net that lead to a target through a proxy. */
import net from "node:net";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { ProxyServer, SocketAddress } from "../../src/ports.ts";
import { connectThrough, type HandshakeLine, proxyFault } from "../../src/egress/handshake.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../../src/egress/proxied-tcp.ts";

/**
 * Connects to `target`, whose host may be a name, through `proxy`, from `localAddress` if given. Rejects with `connection_failed`, or with the reason of
 * `signal`.
 */
export async function openProxied(
  proxy: ProxyServer,
  target: SocketAddress,
  signal: AbortSignal,
  localAddress?: string,
): Promise<net.Socket> {
  if (signal.aborted) throw abortError(signal);
  const late = AbortSignal.any([signal, AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS)]);
  const socket = net.connect({ host: proxy.host, port: proxy.port, ...(localAddress && { localAddress }) });
  const line = new SocketLine(socket, proxy);
  const abort = () => void socket.destroy(abortError(late));
  late.addEventListener("abort", abort, { once: true });
  try {
    await line.connected;
    await connectThrough(line, proxy, target);
    return socket;
  } catch (error) {
    socket.destroy();
    throw late.aborted ? abortError(late) : error;
  } finally {
    late.removeEventListener("abort", abort);
    line.release();
  }
}

/** The socket while the proxy's protocol is spoken. Reads exactly what is asked for, so that nothing of the target's is lost. */
class SocketLine implements HandshakeLine {
  /** Resolves when the proxy has taken the connection. */
  readonly connected: Promise<void>;
  readonly #socket: net.Socket;
  #failure: Error | null = null;
  #waiting: { readonly count: number; resolve(bytes: Uint8Array): void; reject(error: Error): void } | null = null;
  readonly #serve = () => {
    const waiting = this.#waiting;
    if (waiting === null) return;
    const bytes: Uint8Array | null = this.#socket.read(waiting.count);
    if (bytes === null && this.#failure === null) return;
    this.#waiting = null;
    if (bytes !== null && bytes.length === waiting.count) waiting.resolve(new Uint8Array(bytes));
    else waiting.reject(this.#failure ?? closed());
  };
  readonly #fail = (error?: Error) => {
    this.#failure ??= error ?? closed();
    this.#serve();
  };
  readonly #ended = () => this.#fail();

  constructor(socket: net.Socket, proxy: ProxyServer) {
    this.#socket = socket;
    this.connected = new Promise((resolve, reject) => {
      socket.once("connect", () => {
        socket.setNoDelay(true);
        socket.on("readable", this.#serve);
        resolve();
      });
      socket.once("error", (cause) => reject(proxyFault(proxy, "cannot be reached", cause)));
    });
    socket.on("error", this.#fail);
    socket.on("end", this.#ended);
    socket.on("close", this.#ended);
  }

  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  read(count: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting = { count, resolve, reject };
      this.#serve();
    });
  }

  /** Leaves the socket to its next owner. */
  release(): void {
    const socket = this.#socket;
    socket.off("readable", this.#serve);
    socket.off("end", this.#ended);
    socket.off("close", this.#ended);
    // Until the next owner listens, an error must not be one that nobody handles.
    socket.on("error", () => {});
    socket.off("error", this.#fail);
  }
}

function closed(): MillraceError {
  return new MillraceError("connection_failed", "the proxy closed the connection");
}
