/** Shared by the contract tests: the current runtime's ports, deadlines and a place for files. */
import os from "node:os";
import { loadPorts } from "../../platform/detect.ts";
import type { SocketAddress, TcpConnection, TcpHandlers, TcpListener } from "../../src/ports.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

/** Ports of the runtime that runs the tests. */
export const ports = await loadPorts({ log: { level: "error" } });

/** No single wait of a test may take longer, ms. */
export const WAIT_MS = 8000;

/** A signal that fires when a test has waited too long. */
export const soon = (): AbortSignal => AbortSignal.timeout(WAIT_MS);

/** A promise with its handles. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  /** Does nothing: nobody waits any more. */
  cancel(): void;
}

/** A promise to be resolved by hand; rejects by itself when that does not happen in time. */
export function deferred<T = void>(what: string): Deferred<T> {
  let resolve!: (value: T) => void;
  let cancel!: () => void;
  const promise = new Promise<T>((yes, no) => {
    const timer = setTimeout(() => no(new Error(`waited too long for ${what}`)), WAIT_MS);
    // A wait that nobody needs any more must not hold up the end of the run.
    (timer as { unref?(): void }).unref?.();
    cancel = () => clearTimeout(timer);
    resolve = (value) => {
      cancel();
      yes(value);
    };
  });
  promise.catch(() => {});
  return { promise, resolve, cancel };
}

/** Lets the event loop turn once or a few times. */
export async function turns(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Runs `body` with a new directory that is removed afterwards. */
export async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = `${os.tmpdir().replaceAll("\\", "/")}/millrace-contract-${crypto.randomUUID()}`;
  await ports.files.makeDirectory(directory);
  try {
    await body(directory);
  } finally {
    await ports.files.remove(directory);
  }
}

/** One end of a connection that keeps everything it receives. */
export class Recorder implements TcpHandlers {
  readonly received: Uint8Array[] = [];
  receivedBytes = 0;
  readonly ended = deferred("the far end to finish sending");
  readonly closed = deferred<Error | undefined>("the connection to close");
  closeCalls = 0;
  drains = 0;
  keep = true;
  onData: (() => void) | null = null;
  onDrain: (() => void) | null = null;

  data(chunk: Uint8Array): void {
    this.receivedBytes += chunk.length;
    if (this.keep) this.received.push(chunk.slice());
    this.onData?.();
  }
  end(): void {
    this.ended.resolve();
  }
  drain(): void {
    this.drains++;
    this.onDrain?.();
  }
  close(error?: Error): void {
    this.closeCalls++;
    this.ended.cancel();
    this.closed.resolve(error);
  }

  /** Resolves when at least `count` bytes have arrived. */
  async has(count: number): Promise<void> {
    const enough = deferred(`${count} bytes`);
    this.onData = () => {
      if (this.receivedBytes >= count) enough.resolve();
    };
    this.onData();
    await enough.promise;
  }

  bytes(): Uint8Array {
    return concatBytes(this.received);
  }
}

/** Both ends of a loopback connection, opened. */
export interface Pair {
  readonly client: TcpConnection;
  readonly server: TcpConnection;
  readonly atClient: Recorder;
  readonly atServer: Recorder;
}

/** Address on which tests listen. */
export const LOOPBACK: SocketAddress = { host: "127.0.0.1", port: 0 };

/** Runs `body` with a connection between two recorders; drops it afterwards. */
export async function withPair(body: (pair: Pair) => Promise<void>): Promise<void> {
  const atClient = new Recorder();
  const atServer = new Recorder();
  const accepted = deferred<TcpConnection>("a connection");
  const listener: TcpListener = await ports.tcp.listen(LOOPBACK, (connection) => {
    connection.open(atServer);
    accepted.resolve(connection);
  });
  const client = await ports.tcp.connect(listener.address, { signal: soon() });
  client.open(atClient);
  const server = await accepted.promise;
  try {
    await body({ client, server, atClient, atServer });
  } finally {
    client.abort();
    server.abort();
    await listener.close();
    await Promise.all([atClient.closed.promise, atServer.closed.promise]);
  }
}
