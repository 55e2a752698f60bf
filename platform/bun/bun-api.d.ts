/** The few parts of Bun's API that the platform uses, declared here so that the project needs no types package. */

interface BunSocket {
  readonly localAddress: string | undefined;
  readonly localPort: number;
  readonly remoteAddress: string | undefined;
  readonly remotePort: number;
  data: unknown;
  write(data: Uint8Array): number;
  shutdown(): void;
  end(): void;
  terminate(): void;
  pause(): void;
  resume(): void;
  setNoDelay(on: boolean): boolean;
}

interface BunSocketHandlers {
  open(socket: BunSocket): void;
  data(socket: BunSocket, data: Uint8Array): void;
  drain(socket: BunSocket): void;
  end(socket: BunSocket): void;
  close(socket: BunSocket, error?: Error): void;
  error(socket: BunSocket, error: Error): void;
  connectError?(socket: BunSocket, error: Error): void;
}

interface BunSocketOptions {
  hostname: string;
  port: number;
  allowHalfOpen?: boolean;
  exclusive?: boolean;
  socket: BunSocketHandlers;
}

declare const Bun: {
  readonly version: string;
  /** Collects garbage; without `isForced` beside other work. */
  gc(isForced: boolean): void;
  connect(options: BunSocketOptions): Promise<BunSocket>;
  listen(options: BunSocketOptions): { readonly hostname: string; readonly port: number; stop(force?: boolean): void };
};
