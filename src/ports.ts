/**
 * What the engine needs from the machine it runs on. `src/` knows only these interfaces and web-standard globals
 * (fetch, URL, crypto, streams, TextEncoder, AbortSignal); `platform/{deno,node,bun}` implement them and
 * `test/contract` checks that every implementation keeps the promises written here.
 */

import type { PagePort } from "./ports/pages.ts";
import type { ResolveOptions, Route } from "./ports/route.ts";
import type { SocketAddress, TcpPort } from "./ports/tcp.ts";

export type {
  PageConnection,
  PageConnectionOptions,
  PagePort,
  WebSocketConnection,
  WebSocketRequest,
} from "./ports/pages.ts";
export type { ProxyServer, ResolveOptions, Route } from "./ports/route.ts";
export type { SocketAddress, TcpConnection, TcpHandlers, TcpListener, TcpPort } from "./ports/tcp.ts";

/** A handle to cancel a timer. */
export interface Timer {
  cancel(): void;
}

/** Time, injected so that tests and simulations run on a virtual clock. */
export interface Clock {
  /** Wall clock, Unix milliseconds. */
  now(): number;
  /**
   * Monotonic milliseconds with a fraction; origin arbitrary. Time in which the process stood still for more than 5 s (it
   * was stopped, or its machine suspended) does not count: it heard nobody then, so silence means nothing.
   */
  monotonic(): number;
  /** Runs `fn` once after `delayMs` (≥ 0) of `monotonic`. The timer never keeps the process alive by itself. */
  setTimeout(fn: () => void, delayMs: number): Timer;
}

/** A bound UDP socket. */
export interface UdpSocket {
  readonly address: SocketAddress;
  /** What the kernel keeps of unread datagrams, bytes, its own overhead included; undefined when that is not known. */
  readonly receiveBufferBytes?: number | undefined;
  /** Why what is sent is lost at present; null or absent: nothing is known that speaks against it. */
  readonly trouble?: string | null;
  /** Called for each datagram; `data` is the receiver's to keep. */
  onMessage(handler: (data: Uint8Array, from: SocketAddress) => void): void;
  /**
   * Sends one datagram, after those that were given before; resolves when the kernel has it. Until then `data` must stay as it is.
   * Errors such as "unreachable" are ignored (UDP promises nothing).
   */
  send(data: Uint8Array, to: SocketAddress): Promise<void>;
  close(): void;
}

/** Options of `UdpPort.bind`. */
export interface UdpBindOptions {
  /** Default "0.0.0.0". */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  /** Multicast group, or groups, to join; implies address reuse, loopback of own datagrams and TTL 1. */
  readonly multicastGroup?: string | readonly string[];
  /** Address of the interface to join and send multicast on, with IPv6 `::%name`; default: the system's choice. */
  readonly multicastInterface?: string;
  /** Bytes of unread data that the kernel is asked to keep; it may keep less. Default: the system's choice. */
  readonly receiveBufferBytes?: number;
}

/** UDP. */
export interface UdpPort {
  /** Rejects with `conflict` when the port is taken, `unavailable` where the platform cannot. */
  bind(options: UdpBindOptions): Promise<UdpSocket>;
}

/** Facts about a path. */
export interface FileInfo {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly isDirectory: boolean;
}

/** An open file with positioned access. Several reads and writes may be under way at once. */
export interface FileHandle {
  /** Fills as much of `into` as the file has from `position`; returns the byte count (0 = end). */
  read(into: Uint8Array, position: number): Promise<number>;
  /** Writes all of `data` at `position`, growing the file sparsely. Rejects with `disk_full` or `io`. */
  write(data: Uint8Array, position: number): Promise<void>;
  /** Sets the length; growing leaves a hole. */
  truncate(sizeBytes: number): Promise<void>;
  info(): Promise<FileInfo>;
  /** Flushes to the device. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The file system. Paths are absolute, `/`-separated. Missing paths reject with `not_found`. */
export interface FilePort {
  /** `write` also creates the file, with `permissions` as in chmod, minus the process's umask (default 0o600). */
  open(path: string, mode: "read" | "write", options?: { permissions?: number }): Promise<FileHandle>;
  readFile(path: string, options?: { maxBytes?: number }): Promise<Uint8Array>;
  /** Replaces the file atomically (temporary file, sync, rename); `mode` as in chmod, default 0o600. */
  writeFile(path: string, data: Uint8Array, options?: { mode?: number }): Promise<void>;
  info(path: string): Promise<FileInfo>;
  /** Names in the directory, unsorted. */
  list(path: string): Promise<string[]>;
  /** Creates the directory and its parents, `permissions` as in `open`, default 0o700; succeeds if it exists. */
  makeDirectory(path: string, options?: { permissions?: number }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or a whole directory; succeeds if it is already gone. */
  remove(path: string): Promise<void>;
  /** Removes a directory unless something is in it. Resolves with whether it did. */
  removeEmptyDirectory(path: string): Promise<boolean>;
}

/** A running child process. */
export interface ChildProcess {
  readonly pid: number;
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves with the exit code (128 + signal number when killed). */
  readonly exited: Promise<number>;
  kill(signal?: "SIGTERM" | "SIGKILL"): void;
}

/** Child processes. */
export interface ProcessPort {
  /**
   * Starts `command` with `args` (no shell). Rejects with `unavailable` when it cannot be found, `too_busy` when the
   * machine has no room for another program.
   */
  spawn(command: string, args: readonly string[], options?: { env?: Record<string, string> }): Promise<ChildProcess>;
}

/** Programs that the user of this machine may start. */
export interface ProgramPort {
  /** Absolute path of the program that `command` (a name on the PATH, or a path) would start; null when there is none. */
  find(command: string): Promise<string | null>;
  /** Whether programs started by this process can show windows to a user. */
  hasDesktop(): boolean;
}

/** An address where a program of this user can listen for other programs of this user. */
export interface LocalAddress {
  /** Path of a Unix domain socket in a directory that only this user can enter; on Windows a pipe's name. */
  readonly path: string;
  /** Removes the directory. */
  remove(): Promise<void>;
}

/** A two-way stream of bytes. */
export interface ByteConnection {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** Drops it at once. Idempotent. */
  close(): void;
}

/** Connections between programs on one machine: Unix domain sockets, named pipes on Windows. */
export interface LocalSocketPort {
  /** A new address for a program that will listen there. Rejects with `io`. */
  newAddress(): Promise<LocalAddress>;
  /** Rejects with `connection_failed` while nobody listens, or with the signal's reason. */
  connect(path: string, options: { signal: AbortSignal }): Promise<ByteConnection>;
}

/** TLS to devices of the local network, which have certificates of their own making. */
export interface DeviceTlsPort {
  /**
   * Connects with TLS 1.2 or newer and takes any certificate: the connection is encrypted, but the far end may be anybody at
   * that address. Rejects with `connection_failed`, or with the signal's reason. `target.host` is a literal address.
   */
  connectUnverified(target: SocketAddress, options: { signal: AbortSignal }): Promise<ByteConnection>;
}

/** One address of this machine. */
export interface InterfaceAddress {
  readonly name: string;
  readonly host: string;
  /** Length of the network prefix, 0–32 or 0–128. */
  readonly prefixLength: number;
  readonly family: 4 | 6;
  readonly loopback: boolean;
}

/** What the machine knows about its network. */
export interface NetworkPort {
  /** Current addresses of all interfaces that are up. */
  interfaces(): readonly InterfaceAddress[];
  /** The machine's own name, with its domain if it has one; "" when it is unknown. Absent: unknown. */
  hostName?(): string;
  /** Routers of default routes, IPv6 ones with their zone (`fe80::1%eth0`); empty where the system does not say. Absent: unknown. */
  gateways?(family: 4 | 6): Promise<readonly string[]>;
  /** Names are looked up by a proxy alone: connect by name. Absent: false. */
  readonly namesAreRemote?: boolean;
  /**
   * Literal addresses of `host`, in the order in which to try them. Rejects with `not_found`, with `too_busy`, or with the signal's reason. `holder`: the torrent that names the host. Lookups of one
   * torrent, and of all torrents together, take a part of the places only, so that silent names hold up no others.
   */
  resolve(host: string, options: ResolveOptions): Promise<string[]>;
}

/** Where a request came from. */
export interface RequestInfo {
  readonly remote: SocketAddress;
  /** The front whose own listener took it (`src/http/fronts`). Absent: the engine's own port. */
  readonly front?: string;
}

/** A running HTTP server. */
export interface HttpServer {
  readonly address: SocketAddress;
  /** Stops accepting, lets running responses continue for `graceMs`, then drops them. */
  close(graceMs: number): Promise<void>;
}

/** HTTP/1.1 serving. A response body's `cancel()` runs when the client leaves; a stalled reader stops the pulls. */
export interface HttpPort {
  /** `share` of the process's places for connections, up to 1 (default): those of several servers add up. */
  serve(
    at: SocketAddress,
    handler: (request: Request, info: RequestInfo) => Response | Promise<Response>,
    options?: { readonly share?: number },
  ): Promise<HttpServer>;
}

/** One HTTP request, to an address that was resolved and checked before. */
export interface HttpClientRequest extends Route {
  /** `http:` or `https:`. Credentials in it are not sent. */
  readonly url: URL;
  /**
   * Literal address (through a proxy also a name) to connect to, whatever the URL's name resolves to by now. The name is still sent in `Host`, and
   * the certificate is checked against it.
   */
  readonly address: string;
  readonly method: "GET" | "HEAD";
  readonly headers: Headers;
  /** Reads responses that break HTTP's grammar, as old trackers send them. Default false. */
  readonly isLenient?: boolean;
  /** Ends the exchange, the body included. */
  readonly signal: AbortSignal;
}

/**
 * What `fetch` of the engine's platforms reads beside the standard's options; a runtime's own ignores it. Only GET and HEAD with
 * `redirect: "manual"` take another route.
 */
export interface FetchOptions extends RequestInit, Route {
  /** As `HttpClientRequest.isLenient`. */
  readonly isLenient?: boolean;
}

/** A server's response; the body is as sent, compressed or not. */
export interface HttpClientAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Read only as fast as it is pulled; `cancel()` drops the connection. Errors with `connection_failed` when it breaks. */
  readonly body: ReadableStream<Uint8Array>;
}

/** HTTP/1.1 requests to a chosen address. `fetch` cannot do this: it resolves names itself, after any check. */
export interface HttpClientPort {
  /** Finds which of several addresses is reached first; absent: they are used in turn. */
  readonly race?: AddressRace;
  /** Follows no redirects. A connection whose body was read to its end may serve another request. Rejects with `connection_failed` or the signal's reason. */
  open(request: HttpClientRequest): Promise<HttpClientAnswer>;
}

/** Addresses of one name, and how they are connected to. */
export interface Racers {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly localAddress?: string;
  readonly signal: AbortSignal;
}

/** Which of a name's addresses is used (happy eyeballs, RFC 8305). */
export interface AddressRace {
  /** Four of the addresses at most, in the order in which to use them: the winner first, if there is one. Rejects with the signal's reason. */
  order(racers: Racers): Promise<readonly string[]>;
  /** The next order of these addresses begins with a race: the winner of the last one was of no use. */
  forget(racers: Racers): void;
}

/** Which runtime this is. */
export interface RuntimeFacts {
  readonly name: "deno" | "node" | "bun" | "edge";
  readonly version: string;
  /** As `platform` in section 2.4 of the HTTP API. */
  readonly platform: "linux" | "win32" | "android" | "darwin";
  /** What the whole process takes now. Absent: unknown. */
  usage?(): RuntimeUsage;
}

/** What a process takes. */
export interface RuntimeUsage {
  /** Memory that is in RAM. */
  readonly residentBytes: number;
  /** Objects of the program. */
  readonly heapBytes: number;
  /** Buffers outside the heap. */
  readonly externalBytes: number;
  /** Timers of `Clock` that are not due yet. */
  readonly timers: number;
}

/** All ports. `fetch` is separate so that tests can replace it. */
export interface Ports {
  readonly runtime: RuntimeFacts;
  /** SHA-1 (FIPS 180-4), 20 bytes: hashes pieces. */
  readonly sha1: Digest;
  /** SHA-256 (FIPS 180-4), 32 bytes: hashes blocks of broadcasts. */
  readonly sha256: Digest;
  /** Verifies ed25519 signatures (RFC 8032): those of broadcasts. */
  readonly ed25519: VerifierOf;
  readonly clock: Clock;
  readonly tcp: TcpPort;
  readonly udp: UdpPort;
  readonly files: FilePort;
  readonly processes: ProcessPort;
  readonly programs: ProgramPort;
  readonly localSockets: LocalSocketPort;
  readonly deviceTls: DeviceTlsPort;
  readonly network: NetworkPort;
  readonly http: HttpPort;
  readonly httpClient: HttpClientPort;
  readonly fetch: typeof fetch;
  readonly log: Logger;
  /** Peers in web browsers; null or absent: they cannot be reached. */
  readonly pages?: PagePort | null;
  /**
   * To be called with the number of bytes that were read and are of no use any more. Absent where the runtime's collector comes
   * by itself before they are many.
   */
  readonly spent?: (bytes: number) => void;
  /** SQLite as part of the runtime; null or absent: it has none. */
  readonly sqlite?: SqlitePort | null;
}

/** What SQLite stores. */
export type SqliteValue = null | string | number | bigint | Uint8Array;

/** SQLite. Its refusals are errors with SQLite's name of the result as `code`, such as `SQLITE_BUSY`. */
export interface SqlitePort {
  /** Opens a file, which is created if need be, or `:memory:`. Throws when it cannot be opened. */
  open(path: string): SqliteDatabase;
}

/** One connection. Every call is synchronous, and none waits for a lock. */
export interface SqliteDatabase {
  /** Runs one statement to its end. With results: `rows`. Without: `changes` and `insertId`. */
  run(
    sql: string,
    args: readonly SqliteValue[],
  ): { readonly rows: Record<string, unknown>[]; readonly changes: number; readonly insertId: bigint | null };
  close(): void;
}

/** The digest of data that must not change until it resolves. Large inputs do not block other work. */
export type Digest = (data: Uint8Array) => Promise<Uint8Array>;

/** What verifies signatures of one public key, 32 bytes. Throws a `TypeError` for another length. */
export type VerifierOf = (publicKey: Uint8Array) => SignatureVerifier;

/** Whether the key's owner signed `data`. False, too, for a signature that has not 64 bytes. */
export type SignatureVerifier = (signature: Uint8Array, data: Uint8Array) => boolean;

/** Levels, most severe first. */
export type LogLevel = "error" | "warn" | "info" | "debug";

/** Structured log. `fields` never hold secrets. */
export interface Logger {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** A logger that adds `fields` to each line. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
}
