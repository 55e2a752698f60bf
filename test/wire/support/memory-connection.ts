/** TCP in memory: two joined connections that deliver a microtask after the write, in pieces as the test chooses. */
import type { SocketAddress, TcpConnection, TcpHandlers } from "../../../src/ports.ts";
import { settle } from "../../support/fake-clock.ts";

/** Returns how many of the available bytes arrive together. */
export type Cutter = (available: number) => number;

/** One end. */
export class MemoryConnection implements TcpConnection {
  readonly local: SocketAddress;
  readonly remote: SocketAddress;
  /** Sizes of the writes made, in order. */
  readonly writes: number[] = [];
  closes = 0;
  /** While true, bytes written here stay queued: a peer that does not read. */
  stuck = false;
  other!: MemoryConnection;
  #handlers: TcpHandlers | null = null;
  readonly #queue: Uint8Array[] = [];
  #paused = false;
  #closed = false;
  #ended = false;
  #needsDrain = false;
  readonly #cut: Cutter;

  constructor(local: SocketAddress, remote: SocketAddress, cut: Cutter) {
    this.local = local;
    this.remote = remote;
    this.#cut = cut;
  }

  open(handlers: TcpHandlers): void {
    this.#handlers = handlers;
    this.other.schedule();
  }

  write(chunk: Uint8Array): boolean {
    if (this.#closed || this.#ended) return true;
    this.writes.push(chunk.length);
    this.#queue.push(chunk);
    this.schedule();
    if (this.bufferedBytes > 262144) this.#needsDrain = true;
    return !this.#needsDrain;
  }

  get bufferedBytes(): number {
    return this.#queue.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.other.schedule();
  }

  end(): void {
    this.#ended = true;
    this.schedule();
  }

  abort(): void {
    if (this.#closed) return;
    this.#closed = true;
    queueMicrotask(() => this.#shut());
    queueMicrotask(() => this.other.abort());
  }

  #shut(): void {
    this.closes++;
    this.#handlers?.close();
  }

  /** Delivers the bytes queued here to the other end. */
  schedule(): void {
    queueMicrotask(() => this.#deliver());
  }

  #deliver(): void {
    const target = this.other;
    while (this.#queue.length > 0 && !this.stuck) {
      if (target.#handlers === null || target.#paused || target.#closed) return;
      const chunk = this.#queue.shift()!;
      for (let at = 0; at < chunk.length;) {
        const count = Math.max(1, Math.min(this.#cut(chunk.length - at), chunk.length - at));
        // Delivered from a buffer that is overwritten afterwards, as the contract allows.
        const reused = new Uint8Array(chunk.subarray(at, at + count));
        at += count;
        if (!target.#closed) target.#handlers.data(reused);
        reused.fill(0xee);
      }
    }
    if (this.#needsDrain && !this.#closed && this.bufferedBytes < 65536) {
      this.#needsDrain = false;
      this.#handlers?.drain();
    }
    if (this.#ended && this.#queue.length === 0 && !target.#closed) {
      this.#ended = false;
      target.#handlers?.end();
    }
  }
}

/** A joined pair: `[client, server]`. `cut` 0 delivers writes whole. */
export function connectionPair(cut: number | Cutter = 0): [MemoryConnection, MemoryConnection] {
  const cutter: Cutter = typeof cut === "function" ? cut : cut === 0 ? (n) => n : () => cut;
  const a = { host: "192.0.2.1", port: 40000 };
  const b = { host: "192.0.2.2", port: 6881 };
  const client = new MemoryConnection(a, b, cutter);
  const server = new MemoryConnection(b, a, cutter);
  client.other = server;
  server.other = client;
  return [client, server];
}

/** Lets everything that is queued happen. */
export async function quiet(turns = 4): Promise<void> {
  for (let i = 0; i < turns; i++) await settle();
}

/** Waits for `done` (work off the main thread takes its own time); gives up after 2000 turns. */
export async function until(done: () => boolean): Promise<void> {
  for (let i = 0; i < 2000 && !done(); i++) await settle();
  await quiet();
}

/** The far end as raw bytes. */
export class RawPeer {
  readonly connection: MemoryConnection;
  received: number[] = [];
  closed = false;

  constructor(connection: MemoryConnection) {
    this.connection = connection;
    connection.open({
      data: (chunk) => {
        for (const byte of chunk) this.received.push(byte);
      },
      end: () => {},
      drain: () => {},
      close: () => this.closed = true,
    });
  }

  send(...parts: (Uint8Array | readonly number[])[]): void {
    this.connection.write(Uint8Array.from(parts.flatMap((part) => [...part])));
  }
}
