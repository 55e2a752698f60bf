/** TCP on Bun's own sockets. Writes go straight to the kernel; bytes it does not take wait for `drain`. */
/// <reference path="./bun-api.d.ts" />
import { abortError } from "../../src/errors.ts";
import type { SocketAddress, TcpConnection, TcpListener, TcpPort } from "../../src/ports.ts";
import { connectFrom } from "../node/tcp.ts";
import { acquireSendBuffer, releaseSendBuffer } from "../shared/buffer-pool.ts";
import { bindError, connectError } from "../shared/os-error.ts";
import { QueuedTcpConnection } from "../shared/tcp-connection.ts";
import { ReceivedMemory } from "./received-memory.ts";

const receivedMemory = new ReceivedMemory();

class BunTcpConnection extends QueuedTcpConnection {
  readonly #socket: BunSocket;
  /** A send buffer of which the kernel has taken only a part. */
  #pending: { buffer: Uint8Array<ArrayBuffer>; offset: number; end: number } | null = null;
  #paused = true;
  #started = false;
  #destroyed = false;
  /** Bytes that arrived while paused: Bun may still deliver what it had already read. */
  #held: Uint8Array[] = [];
  #heldEnd = false;

  constructor(socket: BunSocket) {
    super(
      { host: socket.localAddress!, port: socket.localPort },
      { host: socket.remoteAddress!, port: socket.remotePort },
    );
    this.#socket = socket;
    socket.pause();
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    if (this.#started) this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused || !this.#started || this.closed) return;
    this.#paused = false;
    this.#deliverHeld();
    if (!this.#paused && !this.closed) this.#socket.resume();
  }

  protected startReading(): void {
    this.#started = true;
    this.resume();
  }

  protected transmit(): void {
    let total = 0;
    const buffer = acquireSendBuffer();
    while (this.queue.bytes > 0) {
      const end = this.queue.fill(buffer);
      this.sending(end);
      const count = Math.max(0, this.#socket.write(end === buffer.length ? buffer : buffer.subarray(0, end)));
      total += count;
      if (count < end) {
        this.#pending = { buffer, offset: count, end };
        this.sent(total, false);
        return;
      }
    }
    releaseSendBuffer(buffer);
    this.sent(total, true);
  }

  /** To be called when Bun reports that the kernel takes bytes again. */
  drained(): void {
    const pending = this.#pending;
    if (pending === null || this.closed) return;
    const count = Math.max(0, this.#socket.write(pending.buffer.subarray(pending.offset, pending.end)));
    pending.offset += count;
    const done = pending.offset === pending.end;
    if (done) {
      this.#pending = null;
      releaseSendBuffer(pending.buffer);
    }
    if (count > 0) this.sent(count, done);
  }

  received(chunk: Uint8Array): void {
    receivedMemory.add(chunk.length);
    if (this.closed) return;
    if (this.#paused || this.#held.length > 0) this.#held.push(chunk.slice());
    else this.handlers?.data(chunk);
  }

  farEnd(): void {
    if (this.#paused || this.#held.length > 0) this.#heldEnd = true;
    else this.ended();
  }

  broke(error: Error | undefined): void {
    this.finish(error);
  }

  protected shutWrite(): void {
    this.#socket.shutdown();
  }

  protected destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#held = [];
    this.#socket.terminate();
  }

  #deliverHeld(): void {
    while (this.#held.length > 0 && !this.#paused) this.handlers?.data(this.#held.shift()!);
    if (this.#heldEnd && !this.#paused) {
      this.#heldEnd = false;
      this.ended();
    }
  }
}

/** `onGone` is called when the far end was gone before the connection could be used. */
function handlersFor(onOpen: (connection: BunTcpConnection) => void, onGone = () => {}): BunSocketHandlers {
  const of = (socket: BunSocket) => socket.data as BunTcpConnection | undefined;
  return {
    open(socket) {
      // A connection that was reset at once no longer has a remote address.
      if (socket.remoteAddress === undefined || socket.localAddress === undefined) {
        socket.terminate();
        return onGone();
      }
      socket.setNoDelay(true);
      const connection = new BunTcpConnection(socket);
      socket.data = connection;
      onOpen(connection);
    },
    data: (socket, chunk) => of(socket)?.received(chunk),
    drain: (socket) => of(socket)?.drained(),
    end: (socket) => of(socket)?.farEnd(),
    close: (socket, error) => of(socket)?.broke(error),
    error: (socket, error) => of(socket)?.broke(error),
  };
}

/** TCP on Bun. */
export const bunTcp: TcpPort = {
  connect(target, { signal, localAddress }): Promise<TcpConnection> {
    if (localAddress !== undefined) return connectFrom(target, localAddress, signal);
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      const abort = () => reject(abortError(signal));
      signal.addEventListener("abort", abort, { once: true });
      const settle = () => signal.removeEventListener("abort", abort);
      const handlers = handlersFor((connection) => {
        settle();
        if (signal.aborted) connection.abort();
        else resolve(connection);
      }, () => {
        settle();
        reject(connectError(new Error("the connection was reset"), target));
      });
      handlers.connectError = (_socket, error) => {
        settle();
        reject(connectError(error, target));
      };
      Bun.connect({ hostname: target.host, port: target.port, allowHalfOpen: true, socket: handlers }).catch(
        (error) => {
          settle();
          reject(connectError(error, target));
        },
      );
    });
  },

  listen(at: SocketAddress, onConnection: (connection: TcpConnection) => void): Promise<TcpListener> {
    try {
      const listener = Bun.listen({
        hostname: at.host,
        port: at.port,
        allowHalfOpen: true,
        exclusive: true,
        socket: handlersFor(onConnection),
      });
      return Promise.resolve({
        address: { host: at.host, port: listener.port },
        close: () => {
          listener.stop(false);
          return Promise.resolve();
        },
      });
    } catch (error) {
      return Promise.reject(bindError(error, at, "TCP"));
    }
  },
};
