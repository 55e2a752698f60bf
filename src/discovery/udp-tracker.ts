/** Announces to UDP trackers (BEP 15) over one socket per address family, shared by all swarms. */
import { toHex } from "../bytes/hex.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { Clock, NetworkPort, SocketAddress, UdpPort, UdpSocket } from "../ports.ts";
import { canonicalHost, isLocalName, isNearName, isPublicHost } from "./addresses.ts";
import type { Announce, AnnounceAnswer } from "./announce.ts";
import type { ServerScope } from "./types.ts";
import { announceRequest, connectRequest, parseAnnounce, parseConnect, transactionOf } from "./udp-tracker-messages.ts";

/**
 * How long each try waits. BEP 15 says 15·2ⁿ s; a short try comes first, since a lost datagram would otherwise delay a
 * stream's start by 15 s, and the series ends at 60 s because the tier moves to its next tracker long before an hour is
 * over.
 */
const TRY_MS = [3_000, 15_000, 30_000, 60_000] as const;

/** A client may use a connection id for one minute (BEP 15). */
const CONNECTION_LIFE_MS = 60_000;

/** Refusals of the connection id, as trackers word them; some call it a cookie, and some give no reason at all. */
const NAMES_CONNECTION = /connection|cookie|^refused without a reason$/i;

/** How long the other family may take after one has replied. */
const LATE_MS = 20_000;

/** Trackers whose connection is remembered; the oldest is dropped first. */
const MAX_CONNECTIONS = 256;

/** Requests under way: every tracker of a dozen swarms at once. */
const MAX_TRANSACTIONS = 512;

/** The parts of the machine that the client needs. */
export interface UdpTrackerPorts {
  readonly udp: UdpPort;
  readonly network: NetworkPort;
  readonly clock: Clock;
}

interface Transaction {
  readonly to: SocketAddress;
  answer(datagram: Uint8Array): void;
}

/** What a tracker gave us to announce with. */
interface Connection {
  readonly id: bigint;
  /** Monotonic ms. */
  readonly untilMs: number;
}

interface Endpoint {
  readonly to: SocketAddress;
  readonly family: 4 | 6;
  /** Path and query of the URL. */
  readonly path: string;
}

/** Options of one announce. */
export interface UdpAnnounceOptions {
  /** Limits which trackers may be asked: all, or only those on public networks. Default "any". */
  readonly scope?: ServerScope;
  /** Receives the second reply. */
  readonly late?: (answer: AnnounceAnswer) => void;
}

/** Client for all UDP trackers. */
export class UdpTrackerClient {
  readonly #ports: UdpTrackerPorts;
  readonly #sockets = new Map<4 | 6, Promise<UdpSocket>>();
  readonly #transactions = new Map<number, Transaction>();
  readonly #connections = new Map<string, Connection>();
  /** Endpoints that replied to an announce, and so may list us; the oldest is dropped first. */
  readonly #answered = new Set<string>();
  readonly #closing = new AbortController();

  constructor(ports: UdpTrackerPorts) {
    this.#ports = ports;
  }

  /**
   * Announces once, in up to four tries (108 s) unless `signal` fires earlier. Throws `denied` beyond `scope`. A
   * tracker with an IPv4 and an IPv6 address gets the announce at both, since each lists the peers of its own family
   * (BEP 7, 15): the first reply counts, `late` gets the other. `stopped` is sent only where a reply came from before.
   */
  async announce(
    tracker: string,
    announce: Announce,
    signal: AbortSignal,
    { scope = "any", late = () => {} }: UdpAnnounceOptions = {},
  ): Promise<AnnounceAnswer> {
    const all = await this.#endpoints(tracker, toHex(announce.infohash), signal);
    if (scope === "public" && !all.every(({ to }) => isPublicHost(to.host) || isRemoteName(to.host))) {
      throw new MillraceError("denied", "the tracker is inside a private network");
    }
    const known = all.filter((endpoint) => this.#answered.has(endpointKey(endpoint)));
    const endpoints = announce.event === "stopped" && known.length > 0 ? known : all;
    if (endpoints.length === 1) return await this.#announceAt(endpoints[0]!, announce, signal);
    const rest = new AbortController();
    const either = AbortSignal.any([signal, rest.signal, this.#closing.signal]);
    const runs = endpoints.map((endpoint) => this.#announceAt(endpoint, announce, either));
    if (announce.event === "stopped") await Promise.allSettled(runs);
    try {
      const first = await Promise.any(runs.map(async (run, index) => ({ answer: await run, index })));
      const timer = this.#ports.clock.setTimeout(() => rest.abort(), LATE_MS);
      const others = runs.filter((_, index) => index !== first.index).map((run) => run.then(late, () => {}));
      void Promise.all(others).finally(() => timer.cancel());
      return first.answer;
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error;
    }
  }

  /**
   * Announces once, and once more with a fresh connection id when the tracker may have refused the id alone: a restarted
   * tracker, or one of several behind one address, does not know the ids that we have.
   */
  async #announceAt(endpoint: Endpoint, announce: Announce, signal: AbortSignal): Promise<AnnounceAnswer> {
    const known = this.#connections.get(endpointKey(endpoint));
    try {
      return await this.#announceInTries(endpoint, announce, signal, known);
    } catch (error) {
      const mayBeTheId = hasCode(error, "tracker") && (known !== undefined || NAMES_CONNECTION.test(error.message));
      if (!mayBeTheId) throw error;
      return await this.#announceInTries(endpoint, announce, signal);
    }
  }

  /** `known`: the connection from before this announce, if any. */
  async #announceInTries(
    endpoint: Endpoint,
    announce: Announce,
    signal: AbortSignal,
    known?: Connection,
  ): Promise<AnnounceAnswer> {
    const socket = await this.#socket(endpoint.family);
    const key = endpointKey(endpoint);
    for (const tryMs of TRY_MS) {
      const connection = await this.#connect(endpoint, socket, tryMs, signal);
      if (connection === null) continue;
      const transactionId = this.#newTransaction();
      const request = announceRequest(connection.id, transactionId, announce, endpoint.path);
      const answer = await this.#exchange(endpoint, socket, transactionId, request, tryMs, signal);
      if (answer === null) {
        // Some trackers drop what has an id that they do not know.
        if (connection === known) this.#connections.delete(key);
        continue;
      }
      try {
        const parsed = { ...parseAnnounce(answer, endpoint.family), from: canonicalHost(endpoint.to.host) };
        this.#remember(endpoint, announce.event);
        return parsed;
      } catch (error) {
        this.#connections.delete(key);
        throw error;
      }
    }
    throw new MillraceError("timeout", "the tracker does not answer");
  }

  /** Releases the sockets; requests under way end by their signal or deadline. */
  async close(): Promise<void> {
    this.#closing.abort(new MillraceError("closed", "the tracker client is closed"));
    const sockets = await Promise.allSettled(this.#sockets.values());
    for (const socket of sockets) if (socket.status === "fulfilled") socket.value.close();
    this.#sockets.clear();
    this.#transactions.clear();
    this.#connections.clear();
    this.#answered.clear();
  }

  #remember(endpoint: Endpoint, event: Announce["event"]): void {
    const key = endpointKey(endpoint);
    this.#answered.delete(key);
    if (event === "stopped") return;
    this.#answered.add(key);
    if (this.#answered.size > MAX_CONNECTIONS) this.#answered.delete(this.#answered.values().next().value!);
  }

  /** One endpoint per address family, at least one. */
  async #endpoints(tracker: string, holder: string, signal: AbortSignal): Promise<readonly Endpoint[]> {
    const url = new URL(tracker);
    const port = Number(url.port);
    if (port < 1) throw new MillraceError("invalid_argument", "a UDP tracker needs a port");
    const name = url.hostname.replace(/^\[|\]$/g, "");
    const literal = canonicalHost(name);
    const path = `${url.pathname}${url.search}`;
    // A proxy looks it up, and takes the address that it prefers.
    if (literal === null && this.#ports.network.namesAreRemote === true) {
      return [{ to: { host: name, port }, family: 4, path }];
    }
    const hosts = literal === null ? await this.#ports.network.resolve(name, { signal, holder }) : [literal];
    const v4 = hosts.find((candidate) => !candidate.includes(":"));
    // On a machine without IPv6 that attempt would only run into its deadline.
    const v6 = v4 === undefined || this.#hasIpv6() ? hosts.find((candidate) => candidate.includes(":")) : undefined;
    const endpoints: Endpoint[] = [];
    if (v4 !== undefined) endpoints.push({ to: { host: v4, port }, family: 4, path });
    if (v6 !== undefined) endpoints.push({ to: { host: v6, port }, family: 6, path });
    if (endpoints.length === 0) throw new MillraceError("not_found", `no address for ${name}`);
    return endpoints;
  }

  #hasIpv6(): boolean {
    return this.#ports.network.interfaces().some(({ family, host }) => family === 6 && isPublicHost(host));
  }

  #socket(family: 4 | 6): Promise<UdpSocket> {
    if (this.#closing.signal.aborted) return Promise.reject(abortError(this.#closing.signal));
    let socket = this.#sockets.get(family);
    if (socket === undefined) {
      socket = this.#ports.udp.bind({ host: family === 4 ? "0.0.0.0" : "::", port: 0 }).then((bound) => {
        bound.onMessage((data, from) => this.#receive(data, from));
        return bound;
      });
      this.#sockets.set(family, socket);
      socket.catch(() => this.#sockets.delete(family));
    }
    return socket;
  }

  #receive(datagram: Uint8Array, from: SocketAddress): void {
    const id = transactionOf(datagram);
    const transaction = id === null ? undefined : this.#transactions.get(id);
    if (transaction === undefined || from.port !== transaction.to.port) return;
    const asked = canonicalHost(transaction.to.host);
    if (asked !== null && canonicalHost(from.host) !== asked) return;
    transaction.answer(datagram);
  }

  async #connect(
    endpoint: Endpoint,
    socket: UdpSocket,
    tryMs: number,
    signal: AbortSignal,
  ): Promise<Connection | null> {
    const key = endpointKey(endpoint);
    const known = this.#connections.get(key);
    if (known !== undefined && known.untilMs > this.#ports.clock.monotonic()) return known;
    const transactionId = this.#newTransaction();
    const sentMs = this.#ports.clock.monotonic();
    const answer = await this.#exchange(endpoint, socket, transactionId, connectRequest(transactionId), tryMs, signal);
    if (answer === null) return null;
    const connection = { id: parseConnect(answer), untilMs: sentMs + CONNECTION_LIFE_MS };
    this.#connections.delete(key);
    this.#connections.set(key, connection);
    if (this.#connections.size > MAX_CONNECTIONS) this.#connections.delete(this.#connections.keys().next().value!);
    return connection;
  }

  #newTransaction(): number {
    if (this.#transactions.size >= MAX_TRANSACTIONS) {
      throw new MillraceError("too_busy", "too many tracker requests are under way");
    }
    const draw = new Uint32Array(1);
    do crypto.getRandomValues(draw); while (this.#transactions.has(draw[0]!));
    return draw[0]!;
  }

  /** Sends the request and waits for its reply; null after `tryMs`. */
  #exchange(
    endpoint: Endpoint,
    socket: UdpSocket,
    id: number,
    request: Uint8Array,
    tryMs: number,
    signal: AbortSignal,
  ) {
    return new Promise<Uint8Array | null>((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      if (socket.trouble) return reject(new MillraceError("unavailable", socket.trouble));
      const finish = (settle: () => void) => {
        this.#transactions.delete(id);
        timer.cancel();
        signal.removeEventListener("abort", abort);
        settle();
      };
      const abort = () => finish(() => reject(abortError(signal)));
      const timer = this.#ports.clock.setTimeout(() => finish(() => resolve(null)), tryMs);
      signal.addEventListener("abort", abort, { once: true });
      this.#transactions.set(id, { to: endpoint.to, answer: (datagram) => finish(() => resolve(datagram)) });
      // A failed send counts as a lost datagram: the deadline of this try handles it.
      socket.send(request, endpoint.to).catch(() => {});
    });
  }
}

/** Whether `host` is a name that a proxy may look up for strangers. */
function isRemoteName(host: string): boolean {
  return canonicalHost(host) === null && !isLocalName(host) && !isNearName(host);
}

function endpointKey(endpoint: Endpoint): string {
  return `${endpoint.to.host} ${endpoint.to.port}`;
}
