/** Announces to UDP trackers (BEP 15) over one socket a family, shared by all swarms. */
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, NetworkPort, SocketAddress, UdpPort, UdpSocket } from "../ports.ts";
import { canonicalHost } from "./addresses.ts";
import type { Announce, AnnounceAnswer } from "./announce.ts";
import { announceRequest, connectRequest, parseAnnounce, parseConnect, transactionOf } from "./udp-tracker-messages.ts";

/**
 * How long each try waits. BEP 15 says 15·2ⁿ s; one quick try comes before, since a lost datagram would otherwise cost a
 * stream's start 15 s, and the row ends at 60 s because the tier turns to its next tracker long before an hour is over.
 */
const TRY_MS = [3_000, 15_000, 30_000, 60_000] as const;

/** A client may use a connection id for one minute (BEP 15). */
const CONNECTION_LIFE_MS = 60_000;

/** Trackers whose connection is remembered; the oldest goes first. */
const MAX_CONNECTIONS = 256;

/** Requests under way: every tracker of a dozen swarms at once. */
const MAX_TRANSACTIONS = 512;

/** What the client needs of the machine. */
export interface UdpTrackerPorts {
  readonly udp: UdpPort;
  readonly network: NetworkPort;
  readonly clock: Clock;
}

interface Transaction {
  readonly to: SocketAddress;
  answer(datagram: Uint8Array): void;
}

interface Endpoint {
  readonly socket: UdpSocket;
  readonly to: SocketAddress;
  readonly family: 4 | 6;
  /** Path and query of the URL. */
  readonly path: string;
}

/** Client of all UDP trackers. */
export class UdpTrackerClient {
  private readonly ports: UdpTrackerPorts;
  private readonly sockets = new Map<4 | 6, Promise<UdpSocket>>();
  private readonly transactions = new Map<number, Transaction>();
  private readonly connections = new Map<string, { id: bigint; untilMs: number }>();
  private closed = false;

  constructor(ports: UdpTrackerPorts) {
    this.ports = ports;
  }

  /** Announces once, trying up to four times (108 s) unless `signal` fires earlier. */
  async announce(tracker: string, announce: Announce, signal: AbortSignal): Promise<AnnounceAnswer> {
    const endpoint = await this.endpoint(tracker, signal);
    for (const tryMs of TRY_MS) {
      const connectionId = await this.connect(endpoint, tryMs, signal);
      if (connectionId === null) continue;
      const transactionId = this.newTransaction();
      const request = announceRequest(connectionId, transactionId, announce, endpoint.path);
      const answer = await this.exchange(endpoint, transactionId, request, tryMs, signal);
      if (answer === null) continue;
      try {
        return parseAnnounce(answer, endpoint.family);
      } catch (error) {
        // The refusal may be about a connection id that the tracker forgot early: the next announce opens a new one.
        this.connections.delete(endpointKey(endpoint));
        throw error;
      }
    }
    throw new MillraceError("timeout", "the tracker does not answer");
  }

  /** Lets the sockets go; what is under way runs into its signal or deadline. */
  async close(): Promise<void> {
    this.closed = true;
    const sockets = await Promise.allSettled(this.sockets.values());
    for (const socket of sockets) if (socket.status === "fulfilled") socket.value.close();
    this.sockets.clear();
    this.transactions.clear();
    this.connections.clear();
  }

  private async endpoint(tracker: string, signal: AbortSignal): Promise<Endpoint> {
    const url = new URL(tracker);
    const port = Number(url.port);
    if (port < 1) throw new MillraceError("invalid_argument", "a UDP tracker needs a port");
    const name = url.hostname.replace(/^\[|\]$/g, "");
    const literal = canonicalHost(name);
    const hosts = literal === null ? await this.ports.network.resolve(name, { signal }) : [literal];
    // IPv4 first: most swarms live there, and a machine without IPv6 routes would only run into the deadline.
    const host = hosts.find((candidate) => !candidate.includes(":")) ?? hosts[0];
    if (host === undefined) throw new MillraceError("not_found", `no address for ${name}`);
    const family = host.includes(":") ? 6 : 4;
    return { socket: await this.socket(family), to: { host, port }, family, path: `${url.pathname}${url.search}` };
  }

  private socket(family: 4 | 6): Promise<UdpSocket> {
    if (this.closed) return Promise.reject(new MillraceError("closed", "the tracker client is closed"));
    let socket = this.sockets.get(family);
    if (socket === undefined) {
      socket = this.ports.udp.bind({ host: family === 4 ? "0.0.0.0" : "::", port: 0 }).then((bound) => {
        bound.onMessage((data, from) => this.receive(data, from));
        return bound;
      });
      this.sockets.set(family, socket);
      socket.catch(() => this.sockets.delete(family));
    }
    return socket;
  }

  private receive(datagram: Uint8Array, from: SocketAddress): void {
    const id = transactionOf(datagram);
    const transaction = id === null ? undefined : this.transactions.get(id);
    if (transaction === undefined || from.port !== transaction.to.port) return;
    if (canonicalHost(from.host) !== canonicalHost(transaction.to.host)) return;
    transaction.answer(datagram);
  }

  private async connect(endpoint: Endpoint, tryMs: number, signal: AbortSignal): Promise<bigint | null> {
    const key = endpointKey(endpoint);
    const known = this.connections.get(key);
    if (known !== undefined && known.untilMs > this.ports.clock.monotonic()) return known.id;
    const transactionId = this.newTransaction();
    const sentMs = this.ports.clock.monotonic();
    const answer = await this.exchange(endpoint, transactionId, connectRequest(transactionId), tryMs, signal);
    if (answer === null) return null;
    const id = parseConnect(answer);
    this.connections.delete(key);
    this.connections.set(key, { id, untilMs: sentMs + CONNECTION_LIFE_MS });
    if (this.connections.size > MAX_CONNECTIONS) this.connections.delete(this.connections.keys().next().value!);
    return id;
  }

  private newTransaction(): number {
    if (this.transactions.size >= MAX_TRANSACTIONS) {
      throw new MillraceError("too_busy", "too many tracker requests are under way");
    }
    const draw = new Uint32Array(1);
    do crypto.getRandomValues(draw); while (this.transactions.has(draw[0]!));
    return draw[0]!;
  }

  /** Sends the request and waits for its answer; null after `tryMs`. */
  private exchange(endpoint: Endpoint, id: number, request: Uint8Array, tryMs: number, signal: AbortSignal) {
    return new Promise<Uint8Array | null>((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      const finish = (settle: () => void) => {
        this.transactions.delete(id);
        timer.cancel();
        signal.removeEventListener("abort", abort);
        settle();
      };
      const abort = () => finish(() => reject(abortError(signal)));
      const timer = this.ports.clock.setTimeout(() => finish(() => resolve(null)), tryMs);
      signal.addEventListener("abort", abort, { once: true });
      this.transactions.set(id, { to: endpoint.to, answer: (datagram) => finish(() => resolve(datagram)) });
      // A failed send counts as a lost datagram: the deadline of this try takes care of it.
      endpoint.socket.send(request, endpoint.to).catch(() => {});
    });
  }
}

function endpointKey(endpoint: Endpoint): string {
  return `${endpoint.to.host} ${endpoint.to.port}`;
}
