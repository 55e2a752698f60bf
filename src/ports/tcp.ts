/** Addresses, and connections over TCP. */

/** An IP endpoint. `host` is a literal address without brackets; `port` 0–65535. */
export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** What a TCP connection reports to its owner. No handler is called before `open()` returns. */
export interface TcpHandlers {
  /** Bytes arrived. `chunk` is a view of a buffer that is reused: copy what you keep before returning. */
  data(chunk: Uint8Array): void;
  /** The far end finished sending (half-close); writing still works. */
  end(): void;
  /** `write()` returned false earlier, and less than the low mark (64 KiB) is queued now. */
  drain(): void;
  /** Last call, exactly once: both directions are over. `error` is absent after an orderly close. */
  close(error?: Error): void;
}

/** A connected TCP socket. TCP_NODELAY is on. */
export interface TcpConnection {
  readonly local: SocketAddress;
  readonly remote: SocketAddress;
  /** Attaches the handlers and starts delivery. Call once, in the same turn in which the connection was obtained. */
  open(handlers: TcpHandlers): void;
  /**
   * Queues `chunk`; false when over 256 KiB is queued (the caller should wait for `drain`). Small writes of one turn
   * are sent together. The caller must not change the bytes before they are sent. Ignored after `end()` or close.
   */
  write(chunk: Uint8Array): boolean;
  /** Bytes queued and not yet handed to the kernel. */
  readonly bufferedBytes: number;
  /** Stops `data` calls (at most one buffer's worth may still arrive) so that the kernel's window closes. */
  pause(): void;
  resume(): void;
  /** Half-closes once the queued bytes have been sent. */
  end(): void;
  /** Drops the connection at once; `close` follows. Idempotent. */
  abort(): void;
}

/** A listening TCP socket. */
export interface TcpListener {
  readonly address: SocketAddress;
  /** Stops accepting; existing connections live on. */
  close(): Promise<void>;
}

/** TCP client and server. */
export interface TcpPort {
  /**
   * Connects. Rejects with `connection_failed`, or with `timeout`/`aborted` when `signal` fires.
   * `target.host` may be a name, or a literal address: that alone with `localAddress`, from where to connect.
   */
  connect(target: SocketAddress, options: { signal: AbortSignal; localAddress?: string }): Promise<TcpConnection>;
  /** Listens; port 0 picks a free one. Rejects with `conflict` when the port is taken. */
  listen(at: SocketAddress, onConnection: (connection: TcpConnection) => void): Promise<TcpListener>;
}
