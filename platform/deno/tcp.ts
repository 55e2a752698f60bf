/** TCP on Deno's own sockets: one pending read into a reused buffer, one pending write at a time. */
import { abortError } from "../../src/errors.ts";
import type { SocketAddress, TcpConnection, TcpListener, TcpPort } from "../../src/ports.ts";
import { connectFrom } from "../node/tcp.ts";
import { acquireSendBuffer, releaseSendBuffer } from "../shared/buffer-pool.ts";
import { RECEIVE_BUFFER_BYTES, SEND_BATCH_BYTES } from "../shared/limits.ts";
import { bindError, connectError } from "../shared/os-error.ts";
import { ReceiveBuffer } from "../shared/receive-buffer.ts";
import { QueuedTcpConnection } from "../shared/tcp-connection.ts";

class DenoTcpConnection extends QueuedTcpConnection {
  readonly #conn: Deno.TcpConn;
  #wake: (() => void) | null = null;
  #paused = false;
  #destroyed = false;

  constructor(conn: Deno.TcpConn) {
    super(toAddress(conn.localAddr), toAddress(conn.remoteAddr));
    this.#conn = conn;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#wake?.();
    this.#wake = null;
  }

  protected startReading(): void {
    this.#readLoop().catch((error) => this.finish(error));
  }

  protected async transmit(): Promise<void> {
    let pooled: Uint8Array<ArrayBuffer> | null = null;
    let bytes = this.queue.takeLarge(SEND_BATCH_BYTES);
    if (bytes === null) {
      pooled = acquireSendBuffer();
      bytes = pooled.subarray(0, this.queue.fill(pooled));
    }
    this.sending(bytes.length);
    try {
      for (let offset = 0; offset < bytes.length;) {
        const count = await this.#conn.write(offset === 0 ? bytes : bytes.subarray(offset));
        offset += count;
        if (offset < bytes.length) this.sent(count, false);
        else this.sent(count, true);
      }
    } catch (error) {
      this.finish(error);
    } finally {
      if (pooled !== null) releaseSendBuffer(pooled);
    }
  }

  protected shutWrite(): void {
    this.#conn.closeWrite().catch((error) => this.finish(error));
  }

  protected destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.resume();
    try {
      this.#conn.close();
    } catch {
      // The runtime closed it after an error.
    }
  }

  async #readLoop(): Promise<void> {
    const buffer = new ReceiveBuffer(RECEIVE_BUFFER_BYTES);
    while (!this.closed) {
      if (this.#paused) await new Promise<void>((resolve) => (this.#wake = resolve));
      if (this.closed) return;
      const target = buffer.next();
      const count = await this.#conn.read(target);
      while (this.#paused && !this.closed) await new Promise<void>((resolve) => (this.#wake = resolve));
      if (this.closed) return;
      if (count === null) return this.ended();
      buffer.used(count);
      this.handlers!.data(target.subarray(0, count));
    }
  }
}

/** TCP on Deno. */
export const denoTcp: TcpPort = {
  async connect(target, { signal, localAddress }): Promise<TcpConnection> {
    if (signal.aborted) throw abortError(signal);
    if (localAddress !== undefined) return await connectFrom(target, localAddress, signal);
    try {
      const conn = await Deno.connect({ hostname: target.host, port: target.port, signal });
      if (signal.aborted) {
        conn.close();
        throw signal.reason;
      }
      conn.setNoDelay(true);
      return new DenoTcpConnection(conn);
    } catch (error) {
      throw signal.aborted ? abortError(signal) : connectError(error, target);
    }
  },

  listen(at: SocketAddress, onConnection: (connection: TcpConnection) => void): Promise<TcpListener> {
    let listener: Deno.TcpListener;
    try {
      listener = Deno.listen({ hostname: at.host, port: at.port });
    } catch (error) {
      return Promise.reject(bindError(error, at, "TCP"));
    }
    const accepting = acceptLoop(listener, onConnection);
    return Promise.resolve({
      address: toAddress(listener.addr),
      close: () => {
        try {
          listener.close();
        } catch {
          // It was closed already.
        }
        return accepting;
      },
    });
  },
};

/** Pause before accepting again after accepting failed (no free descriptor), ms. */
const ACCEPT_RETRY_MS = 50;

async function acceptLoop(listener: Deno.TcpListener, onConnection: (c: TcpConnection) => void): Promise<void> {
  for (;;) {
    let conn: Deno.TcpConn;
    try {
      conn = await listener.accept();
    } catch (error) {
      if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) return;
      await new Promise((resolve) => setTimeout(resolve, ACCEPT_RETRY_MS));
      continue;
    }
    try {
      conn.setNoDelay(true);
      onConnection(new DenoTcpConnection(conn));
    } catch {
      try {
        conn.close();
      } catch {
        // The connection was gone already.
      }
    }
  }
}

function toAddress(address: Deno.NetAddr): SocketAddress {
  return { host: address.hostname, port: address.port };
}
