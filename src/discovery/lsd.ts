/** Local service discovery (BEP 14), over IPv4 and IPv6, shared by all swarms. */
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import { toHex } from "../bytes/hex.ts";
import type { Clock, Logger, SocketAddress, Timer, UdpPort, UdpSocket } from "../ports.ts";
import { addressKey, isOfLink } from "./addresses.ts";
import { decodeLsd, encodeLsd, MAX_LSD_INFOHASHES } from "./lsd-message.ts";
import type { DiscoverySourceStatus } from "./types.ts";

/** BEP 14's groups. */
const GROUP: SocketAddress = { host: "239.192.152.143", port: 6771 };
const GROUP6_HOST = "ff15::efc0:988f";

/** BEP 14: a torrent is announced every 5 min. */
const INTERVAL_MS = 5 * 60_000;

/** BEP 14: at most one announce per minute. */
const MIN_INTERVAL_MS = 60_000;

/** Dependencies of LSD. */
export interface LsdContext {
  readonly udp: UdpPort;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  peerPort(): number;
}

/** Options of LSD. */
export interface LsdOptions {
  /** Addresses of the interfaces to announce and listen on; default: the system's choice. */
  readonly interfaces?: readonly string[];
  /** Names of the interfaces to announce and listen on over IPv6, too. Default none. */
  readonly ipv6Interfaces?: readonly string[];
  /** IPv4 group, and the port of both. Default 239.192.152.143:6771; tests use their own port. */
  readonly group?: SocketAddress;
}

/** One swarm's membership. */
export interface LsdMembership {
  /** Announces again, at most once per minute. */
  needPeers(): void;
  status(): DiscoverySourceStatus;
  close(): void;
}

/** A socket that has joined a group. */
interface Joined {
  readonly socket: UdpSocket;
  readonly group: SocketAddress;
}

interface Member {
  readonly infohash: Uint8Array;
  /** The infohash, hexadecimal. */
  readonly key: string;
  readonly onPeer: (peer: SocketAddress) => void;
  /** Time of the next announce and of the last one, monotonic ms. */
  nextMs: number;
  lastMs: number;
  readonly heard: Set<string>;
}

/** Peers counted for `status`. */
const MAX_COUNTED = 100;

/** The LSD sockets and the swarms they serve. */
export class LocalDiscovery {
  readonly #context: LsdContext;
  readonly #joined: readonly Joined[];
  readonly #cookie: string;
  /** Several may have one infohash: two magnets of a torrent of both versions whose metadata is not here yet. */
  readonly #members = new Set<Member>();
  #timer: Timer | null = null;
  #closed = false;
  readonly #failed = (error: unknown) =>
    this.#context.log.log("error", "a fault of the engine in local discovery", faultFields(error));

  private constructor(context: LsdContext, joined: readonly Joined[]) {
    this.#context = context;
    this.#joined = joined;
    this.#cookie = toHex(crypto.getRandomValues(new Uint8Array(8)));
    const receive = guarded((data: Uint8Array, from: SocketAddress) => this.#receive(data, from), this.#failed);
    for (const { socket } of joined) socket.onMessage(receive);
  }

  /** Joins the group on each interface. Rejects when no interface can join. */
  static async open(context: LsdContext, options: LsdOptions = {}): Promise<LocalDiscovery> {
    const group = options.group ?? GROUP;
    const group6 = { host: GROUP6_HOST, port: group.port };
    const join = async (group: SocketAddress, host: string, multicastInterface?: string): Promise<Joined> => {
      const at = multicastInterface === undefined ? {} : { multicastInterface };
      return { socket: await context.udp.bind({ host, port: group.port, multicastGroup: group.host, ...at }), group };
    };
    const { interfaces = [], ipv6Interfaces = [] } = options;
    const bound = await Promise.allSettled([
      ...interfaces.length === 0 ? [join(group, "0.0.0.0")] : interfaces.map((at) => join(group, "0.0.0.0", at)),
      // On IPv6 an interface is given by its index or name: it may have many addresses.
      ...ipv6Interfaces.map((name) => join(group6, "::", `::%${name}`)),
    ]);
    const joined = bound.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
    const failed = bound.find((result) => result.status === "rejected");
    if (joined.length === 0 && failed !== undefined) throw failed.reason;
    return new LocalDiscovery(context, joined);
  }

  /** Announces the swarm now and periodically; reports others that announce it. */
  join(infohash: Uint8Array, onPeer: (peer: SocketAddress) => void): LsdMembership {
    const member: Member = { infohash, key: toHex(infohash), onPeer, nextMs: 0, lastMs: -Infinity, heard: new Set() };
    this.#members.add(member);
    this.#announceBy(member, this.#context.clock.monotonic());
    return {
      needPeers: () => this.#announceBy(member, member.lastMs + MIN_INTERVAL_MS),
      status: () => ({
        kind: "lsd",
        name: "lsd",
        peers: member.heard.size,
        seeders: null,
        lastError: null,
        nextAnnounceMs: Math.max(0, member.nextMs - this.#context.clock.monotonic()),
      }),
      close: () => {
        this.#members.delete(member);
        this.#schedule();
      },
    };
  }

  /** Leaves the group. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#members.clear();
    for (const { socket } of this.#joined) socket.close();
  }

  #announceBy(member: Member, atMs: number): void {
    if (member.lastMs > -Infinity && member.nextMs <= atMs) return;
    member.nextMs = Math.max(atMs, this.#context.clock.monotonic());
    this.#schedule();
  }

  #schedule(): void {
    const nextMs = Math.min(...[...this.#members].map((member) => member.nextMs));
    this.#scheduleIn(Math.max(0, nextMs - this.#context.clock.monotonic()));
  }

  #scheduleIn(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#closed || this.#members.size === 0) return;
    const failed = (error: unknown) => {
      this.#failed(error);
      this.#scheduleIn(MIN_INTERVAL_MS);
    };
    this.#timer = this.#context.clock.setTimeout(guarded(() => this.#announceDue(), failed), delayMs);
  }

  /** Announces the swarms that are due; swarms that start together share a datagram. */
  #announceDue(): void {
    const nowMs = this.#context.clock.monotonic();
    const due = [...this.#members].filter((member) => member.nextMs <= nowMs);
    const port = this.#context.peerPort();
    for (let at = 0; at < due.length; at += MAX_LSD_INFOHASHES) {
      const part = due.slice(at, at + MAX_LSD_INFOHASHES);
      for (const member of part) {
        member.lastMs = nowMs;
        // Spread over a tenth, so that machines started together do not announce together forever.
        member.nextMs = nowMs + INTERVAL_MS * (0.95 + this.#context.random() * 0.1);
      }
      if (port === 0) continue;
      const message = { port, infohashes: part.map((member) => member.infohash), cookie: this.#cookie };
      for (const { socket, group } of this.#joined) {
        socket.send(encodeLsd(addressKey(group), message), group).catch(() => {});
      }
    }
    this.#schedule();
  }

  #receive(datagram: Uint8Array, from: SocketAddress): void {
    if (this.#closed || isOfLink(from.host)) return;
    const message = decodeLsd(datagram);
    if (message === null || message.cookie === this.#cookie) return;
    const named = new Set(message.infohashes.map(toHex));
    for (const member of this.#members) {
      if (!named.has(member.key)) continue;
      const peer = { host: from.host, port: message.port };
      if (member.heard.size < MAX_COUNTED) member.heard.add(`${peer.host} ${peer.port}`);
      guarded(member.onPeer, this.#failed)(peer);
      // Reply within the rate limit: the other end may have started after our last announce.
      this.#announceBy(member, member.lastMs + MIN_INTERVAL_MS);
    }
  }
}
