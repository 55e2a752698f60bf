/** TCP on node:net, read through `onread` into one buffer and written with gathering writes. */
import net from "node:net";
import process from "node:process";
import { abortError } from "../../src/errors.ts";
import type { SocketAddress, TcpConnection, TcpListener, TcpPort } from "../../src/ports.ts";
import { RECEIVE_BUFFER_BYTES } from "../shared/limits.ts";
import { bindError, connectError } from "../shared/os-error.ts";
import { QueuedTcpConnection } from "../shared/tcp-connection.ts";

let sharedBuffer: Uint8Array | null = null;

/**
 * The buffer to read into. libuv reads and calls back in one step, so all sockets can share one buffer; on Windows the
 * buffer is handed over before the data arrives, so each socket needs its own.
 */
function receiveBuffer(): Uint8Array {
  if (process.platform === "win32") return new Uint8Array(RECEIVE_BUFFER_BYTES / 4);
  return (sharedBuffer ??= new Uint8Array(RECEIVE_BUFFER_BYTES));
}

class NodeTcpConnection extends QueuedTcpConnection {
  readonly #socket: net.Socket;
  #failure: Error | undefined;

  constructor(socket: net.Socket) {
    super(toAddress(socket.localAddress, socket.localPort), toAddress(socket.remoteAddress, socket.remotePort));
    this.#socket = socket;
    socket.on("end", () => this.ended());
    socket.on("error", (error) => (this.#failure = error));
    socket.on("close", () => this.finish(this.#failure));
  }

  receive(count: number, buffer: Uint8Array): boolean {
    this.handlers?.data(buffer.subarray(0, count));
    return true;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  protected startReading(): void {
    this.#socket.resume();
  }

  protected transmit(): void {
    const socket = this.#socket;
    const count = this.queue.bytes;
    const chunks = this.queue.takeAll();
    this.sending(count);
    // "close" reports a failed write; the callback only settles the byte count.
    const done = () => this.sent(count, true);
    socket.cork();
    for (let i = 0; i < chunks.length - 1; i++) socket.write(chunks[i]!);
    socket.write(chunks[chunks.length - 1]!, done);
    socket.uncork();
  }

  protected shutWrite(): void {
    this.#socket.end();
  }

  protected destroy(): void {
    this.#socket.destroy();
  }
}

/** TCP on Node. */
export const nodeTcp: TcpPort = {
  connect(target, { signal, localAddress }): Promise<TcpConnection> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      const { socket, attach } = makeSocket(null);
      const abort = () => {
        socket.destroy();
        reject(abortError(signal));
      };
      const fail = (error: Error) => {
        signal.removeEventListener("abort", abort);
        reject(connectError(error, target));
      };
      signal.addEventListener("abort", abort, { once: true });
      socket.once("error", fail);
      socket.pause();
      socket.connect({ host: target.host, port: target.port, ...(localAddress && { localAddress }) }, () => {
        // The option of the same name only works for sockets that `net.connect` makes.
        socket.setNoDelay(true);
        signal.removeEventListener("abort", abort);
        socket.off("error", fail);
        resolve(attach());
      });
    });
  },

  listen(at: SocketAddress, onConnection: (connection: TcpConnection) => void): Promise<TcpListener> {
    return new Promise((resolve, reject) => {
      const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
      server.on("connection", (accepted) => {
        const handle = takeHandle(accepted);
        onConnection(handle === null ? attachPlain(accepted) : makeSocket(handle).attach());
      });
      server.once("error", (error) => reject(bindError(error, at, "TCP")));
      server.listen({ host: at.host, port: at.port }, () => {
        server.removeAllListeners("error");
        // Later errors are failed accepts (no free descriptor); the listener survives them.
        server.on("error", () => {});
        const address = server.address() as net.AddressInfo;
        resolve({
          address: { host: address.address, port: address.port },
          // The descriptor is released when close() returns; its event would also wait for all connections to end.
          close: () => new Promise((closed) => (server.close(), setImmediate(closed))),
        });
      });
    });
  },
};

/** Connects from `localAddress`, for runtimes whose own sockets cannot: slower than those, as each read has a buffer of its own. */
export function connectFrom(
  target: SocketAddress,
  localAddress: string,
  signal: AbortSignal,
): Promise<TcpConnection> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortError(signal));
    const socket = net.connect({ ...target, localAddress, allowHalfOpen: true });
    const abort = () => {
      socket.destroy();
      reject(abortError(signal));
    };
    const fail = (error: Error) => {
      signal.removeEventListener("abort", abort);
      reject(connectError(error, target));
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.setNoDelay(true);
      signal.removeEventListener("abort", abort);
      socket.off("error", fail);
      resolve(attachPlain(socket));
    });
  });
}

/** Makes a socket that reads into the shared buffer; `attach` turns it into a connection once it is connected. */
function makeSocket(handle: object | null): { socket: net.Socket; attach(): NodeTcpConnection } {
  let connection: NodeTcpConnection | null = null;
  const callback = (count: number, buffer: Uint8Array) => connection?.receive(count, buffer) ?? true;
  const onread = { buffer: receiveBuffer(), callback };
  const options = { ...(handle !== null && { handle }), allowHalfOpen: true, onread };
  const socket = new net.Socket(options as net.SocketConstructorOpts);
  return { socket, attach: () => (connection = new NodeTcpConnection(socket)) };
}

/** Takes the handle out of an accepted, still paused socket; null if this version of Node keeps it elsewhere. */
function takeHandle(accepted: net.Socket): object | null {
  const holder = accepted as unknown as { _handle?: object | null };
  const handle = holder._handle;
  if (typeof handle !== "object" || handle === null || !("useUserBuffer" in handle)) return null;
  holder._handle = null;
  return handle;
}

/** Fallback without the handle: a fresh buffer for each read, half as fast. */
function attachPlain(socket: net.Socket): NodeTcpConnection {
  const connection = new NodeTcpConnection(socket);
  socket.on("data", (chunk: Uint8Array) => connection.receive(chunk.length, chunk));
  socket.pause();
  return connection;
}

function toAddress(host: string | undefined, port: number | undefined): SocketAddress {
  return { host: host ?? "", port: port ?? 0 };
}
