/**
 * The part of a TCP connection that is the same on all runtimes: the write queue with its marks, one write per turn of the
 * event loop, the order of half-close and close. A runtime adds how bytes reach the kernel, and how reading stops and starts.
 */
import type { SocketAddress, TcpConnection, TcpHandlers } from "../../src/ports.ts";
import { WRITE_HIGH_BYTES, WRITE_LOW_BYTES } from "./limits.ts";
import { unmapped } from "./mapped.ts";
import { brokenError } from "./os-error.ts";
import { handled } from "./stray.ts";
import { WriteQueue } from "./write-queue.ts";

/** Base of the platforms' connections. */
export abstract class QueuedTcpConnection implements TcpConnection {
  readonly local: SocketAddress;
  readonly remote: SocketAddress;
  protected readonly queue = new WriteQueue();
  protected handlers: TcpHandlers | null = null;
  protected closed = false;
  /** Bytes handed to the runtime that the kernel has not taken yet. */
  #inFlightBytes = 0;
  #flushScheduled = false;
  #needsDrain = false;
  #ending = false;
  #writeShut = false;
  #readEnded = false;
  #closeError: Error | undefined;

  constructor(local: SocketAddress, remote: SocketAddress) {
    this.local = local;
    // A listener at `::` shows IPv4 addresses as mapped ones.
    this.remote = { ...remote, host: unmapped(remote.host) };
  }

  /** Starts delivering received bytes; called after `open` returned. */
  protected abstract startReading(): void;
  abstract pause(): void;
  abstract resume(): void;
  /** Sends from `queue`, which is not empty, and calls `sending` and `sent`; not called again before `sent` says it is done. */
  protected abstract transmit(): void;
  /** Half-closes; called when the queue is empty. */
  protected abstract shutWrite(): void;
  /** Releases the socket at once. */
  protected abstract destroy(): void;

  open(handlers: TcpHandlers): void {
    // A fault in a handler costs its connection.
    const failed = () => this.abort();
    this.handlers = {
      data: (chunk) => handled(() => handlers.data(chunk), failed),
      end: () => handled(() => handlers.end(), failed),
      drain: () => handled(() => handlers.drain(), failed),
      close: (error) => handled(() => handlers.close(error)),
    };
    queueMicrotask(() => {
      if (!this.closed) this.startReading();
      else this.#report();
    });
  }

  get bufferedBytes(): number {
    return this.queue.bytes + this.#inFlightBytes;
  }

  write(chunk: Uint8Array): boolean {
    if (this.#ending || this.closed) return false;
    this.queue.push(chunk);
    this.#scheduleFlush();
    if (this.queue.bytes + this.#inFlightBytes <= WRITE_HIGH_BYTES) return true;
    this.#needsDrain = true;
    return false;
  }

  end(): void {
    if (this.#ending || this.closed) return;
    this.#ending = true;
    this.#scheduleFlush();
  }

  abort(): void {
    if (this.closed) return;
    this.destroy();
    queueMicrotask(() => this.finish());
  }

  /** To be called when `count` bytes were taken from the queue and are on their way to the kernel. */
  protected sending(count: number): void {
    this.#inFlightBytes += count;
  }

  /** To be called when the kernel took `count` of the bytes reported to `sending`; `done` when `transmit` is over. */
  protected sent(count: number, done: boolean): void {
    this.#inFlightBytes -= count;
    if (this.closed) return;
    if (done) this.#flush();
    if (this.#needsDrain && this.bufferedBytes < WRITE_LOW_BYTES && !this.#ending) {
      this.#needsDrain = false;
      this.handlers?.drain();
    }
  }

  /** To be called when the far end has finished sending. */
  protected ended(): void {
    if (this.closed || this.#readEnded) return;
    this.#readEnded = true;
    this.handlers?.end();
    if (this.#writeShut) this.finish();
  }

  /** Reports the end of the connection once; `cause` when it broke. */
  protected finish(cause?: unknown): void {
    if (this.closed) return;
    this.closed = true;
    this.queue.clear();
    this.destroy();
    if (cause !== undefined) this.#closeError = brokenError(cause, this.remote);
    this.#report();
  }

  #report(): void {
    const handlers = this.handlers;
    this.handlers = null;
    handlers?.close(this.#closeError);
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#inFlightBytes > 0) return;
    this.#flushScheduled = true;
    queueMicrotask(() => {
      this.#flushScheduled = false;
      if (!this.closed && this.#inFlightBytes === 0) this.#flush();
    });
  }

  #flush(): void {
    if (this.queue.bytes > 0) {
      this.transmit();
    } else if (this.#ending && !this.#writeShut) {
      this.#writeShut = true;
      this.shutWrite();
      if (this.#readEnded) this.finish();
    }
  }
}
