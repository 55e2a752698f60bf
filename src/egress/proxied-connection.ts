/** A connection to a target through a proxy: first the line of the handshake, then what its owner sees. */
import { concatBytes } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { SocketAddress, TcpConnection, TcpHandlers } from "../ports.ts";
import type { HandshakeLine } from "./handshake.ts";

/** What a target may send before its owner listens, bytes: then the connection is not read until somebody does. */
const MAX_HELD_BYTES = 16 * 1024;

/** Speaks with the proxy by `read` and `write` until `open` is called. Make it in the turn in which `inner` was obtained. */
export class ProxiedConnection implements TcpConnection, HandshakeLine {
  readonly remote: SocketAddress;
  readonly #inner: TcpConnection;
  #handlers: TcpHandlers | null = null;
  /** Arrived and not passed on. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #hasEnded = false;
  #closed: { readonly error?: Error } | null = null;
  #isPaused = false;
  #isDelivering = false;
  #waiting: { readonly count: number; resolve(bytes: Uint8Array): void; reject(error: Error): void } | null = null;

  constructor(inner: TcpConnection, target: SocketAddress) {
    this.#inner = inner;
    this.remote = target;
    inner.open({
      data: (chunk) => this.#data(chunk),
      end: () => this.#end(),
      drain: () => this.#handlers?.drain(),
      close: (error) => this.#close(error),
    });
  }

  get local(): SocketAddress {
    return this.#inner.local;
  }

  /** Literal address of the proxy. */
  get proxyHost(): string {
    return this.#inner.remote.host;
  }

  get bufferedBytes(): number {
    return this.#inner.bufferedBytes;
  }

  read(count: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting = { count, resolve, reject };
      this.#serve();
    });
  }

  open(handlers: TcpHandlers): void {
    this.#handlers = handlers;
    queueMicrotask(() => this.#deliver());
  }

  write(chunk: Uint8Array): boolean {
    return this.#inner.write(chunk);
  }

  pause(): void {
    this.#isPaused = true;
    this.#inner.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#inner.resume();
    if (this.#handlers !== null) queueMicrotask(() => this.#deliver());
  }

  /** Some proxies take the end of one direction for the end of both. */
  end(): void {
    this.#inner.end();
  }

  abort(): void {
    this.#inner.abort();
  }

  #data(chunk: Uint8Array): void {
    if (this.#handlers !== null && this.#held.length === 0 && this.#isDelivering) return this.#handlers.data(chunk);
    this.#held.push(chunk.slice());
    this.#heldBytes += chunk.length;
    if (this.#heldBytes > MAX_HELD_BYTES && this.#handlers === null) this.#inner.pause();
    this.#serve();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#serve();
    if (this.#isDelivering) this.#deliver();
  }

  #close(error?: Error): void {
    this.#closed = error === undefined ? {} : { error };
    this.#serve();
    if (this.#handlers !== null) this.#deliver();
  }

  /** Gives the handshake what it waits for. */
  #serve(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    if (this.#heldBytes >= waiting.count) {
      this.#waiting = null;
      const all = concatBytes(this.#held);
      this.#held = all.length === waiting.count ? [] : [all.subarray(waiting.count)];
      this.#heldBytes = all.length - waiting.count;
      return waiting.resolve(all.subarray(0, waiting.count));
    }
    if (!this.#hasEnded && this.#closed === null) return;
    this.#waiting = null;
    waiting.reject(this.#closed?.error ?? new MillraceError("connection_failed", "the proxy closed the connection"));
  }

  /** Gives the owner what came before it listened, then everything. */
  #deliver(): void {
    const handlers = this.#handlers;
    if (handlers === null) return;
    if (!this.#isDelivering && this.#closed === null && !this.#isPaused) this.#inner.resume();
    while (this.#held.length > 0 && !this.#isPaused && this.#closed?.error === undefined) {
      const chunk = this.#held.shift()!;
      this.#heldBytes -= chunk.length;
      handlers.data(chunk);
    }
    this.#isDelivering = this.#held.length === 0;
    if (!this.#isDelivering && this.#closed?.error === undefined) return;
    if (this.#hasEnded) {
      this.#hasEnded = false;
      handlers.end();
    }
    if (this.#closed === null) return;
    this.#handlers = null;
    handlers.close(this.#closed.error);
  }
}
