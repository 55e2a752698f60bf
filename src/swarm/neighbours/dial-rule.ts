/**
 * Which peers the engine connects to. The one that names a peer chooses where the engine sends a handshake and,
 * with the infohash, 18 bytes of its content: enough for a command to a service that trusts this machine or its
 * network. So a peer's address may not be nearer to us than the addresses that its source could reach itself.
 *
 * | the peer's address | is dialled when |
 * | --- | --- |
 * | this machine | a caller on this machine joined the swarm, and it named the peer itself or the source is on this machine |
 * | private | a caller on this machine named it, or the source is on this machine or in a private network |
 * | public, in a subnet of ours | as any public address, except that a foreign caller may not name it |
 * | public | always |
 *
 * A source is the tracker, DHT node or peer that reported the address; a peer that connected to us or announced itself
 * in the local network is its own source. Except at public addresses, the ports of well-known services are never
 * dialled.
 */
import type { Nearness, NetworkSurroundings } from "../../discovery/nearness.ts";
import type { PeerOrigin, ServerScope } from "../../discovery/types.ts";
import type { SocketAddress } from "../../ports.ts";
import { addressKey } from "./address.ts";

/** A peer that somebody named. */
export interface NamedPeer {
  /** A literal address; names are resolved before. */
  readonly address: SocketAddress;
  readonly origin: PeerOrigin;
  /** Literal address of the tracker, DHT node or peer that reported it; null: unknown, treated as public. */
  readonly source: string | null;
  /**
   * For the origins `magnet` and `manual` the scope of the caller that named it, else the widest of all that joined the
   * swarm. "any": a caller on this machine.
   */
  readonly scope: ServerScope;
}

/** Mail ports: other clients too refuse to dial peers there, on any address. */
const MAIL_PORTS: ReadonlySet<number> = new Set([25, 110, 143, 465, 587, 993, 995]);

/** What clients behind a proxy announce, because trackers take no 0: nobody can dial them. */
const PROXIED_PORT = 1;

/** Ports below this belong to the system's own services (RFC 6335 §6). */
const FIRST_USER_PORT = 1024;

/**
 * Services in local networks that often trust whoever reaches them and take commands as lines or short frames:
 * databases, caches, queues, remote control, printers, proxies. All are below the range of ephemeral ports.
 */
const SERVICE_PORTS: ReadonlySet<number> = new Set([
  ...[1080, 1099, 1433, 1434, 1521, 1723, 1883, 1900, 2049, 2181, 2222, 2323, 2375, 2376, 2377, 2379, 2380, 3000, 3128],
  ...[3268, 3306, 3389, 3690, 4222, 4369, 4444, 4505, 4506, 4786, 5000, 5001, 5037, 5038, 5060, 5061, 5222, 5269, 5353],
  ...[5432, 5433, 5555, 5601, 5666, 5672, 5900, 5901, 5984, 5985, 5986, 6000, 6001, 6379, 6380, 6443, 6660, 6661, 6662],
  ...[6663, 6664, 6665, 6666, 6667, 6668, 6669, 6697, 7000, 7001, 7199, 7474, 7547, 7687, 8000, 8008, 8009, 8080, 8081],
  ...[8086, 8088, 8123, 8161, 8291, 8300, 8301, 8443, 8500, 8728, 8888, 9000, 9001, 9042, 9050, 9051, 9090, 9092, 9100],
  ...[9160, 9200, 9300, 9418, 10000, 10250, 10255, 11211, 15672, 16379, 26379, 27017, 27018, 27019, 28015, 28017],
]);

/** Decides whom the swarms of an engine dial. */
export class DialRule {
  readonly #surroundings: Pick<NetworkSurroundings, "nearness">;

  constructor(surroundings: Pick<NetworkSurroundings, "nearness">) {
    this.#surroundings = surroundings;
  }

  /** Whether this peer may be dialled. */
  allows({ address, origin, source, scope }: NamedPeer): boolean {
    const nearness = this.#surroundings.nearness(address.host);
    if (nearness === null || !isPeerPort(address.port, nearness)) return false;
    if (nearness === "public") return true;
    const isNamed = origin === "magnet" || origin === "manual";
    if (isNamed) return scope === "any";
    const told = origin === "incoming" || origin === "lsd" ? nearness : this.#nearnessOf(source);
    switch (nearness) {
      case "own":
        return scope === "any" && told === "own";
      case "private":
        return told === "own" || told === "private";
      case "neighbour":
        return true;
    }
  }

  #nearnessOf(source: string | null): Nearness {
    return (source === null ? null : this.#surroundings.nearness(source)) ?? "public";
  }
}

/** Peers kept for a caller that may use them, the newest: far more than a tracker on this machine lists. */
const MAX_KEPT = 200;

/** A peer that a source reported. */
export type ReportedPeer = Omit<NamedPeer, "scope">;

/** The rule for one swarm, which callers of different scopes may join. */
export class SwarmDialRule {
  readonly #rule: DialRule;
  readonly #kept = new Map<string, ReportedPeer>();
  #scope: ServerScope = "public";

  constructor(rule: DialRule) {
    this.#rule = rule;
  }

  /** A caller of this scope joined; the widest counts from now on. Returns the kept peers that may be dialled now. */
  joinedBy(scope: ServerScope): readonly ReportedPeer[] {
    if (scope === "public") return [];
    this.#scope = "any";
    const kept = [...this.#kept.values()];
    this.#kept.clear();
    return kept;
  }

  /** As `DialRule.allows`; `scope` defaults to the widest of those that joined. */
  allows(address: SocketAddress, origin: PeerOrigin, source: string | null, scope: ServerScope = this.#scope): boolean {
    return this.#rule.allows({ address, origin, source, scope });
  }

  /**
   * Keeps a peer that is not allowed for a caller that may use it: sources report it again only after minutes. Peers that
   * nobody may use are not kept.
   */
  keep(peer: ReportedPeer): void {
    if (this.#scope === "any" || !this.#rule.allows({ ...peer, scope: "any" })) return;
    const key = addressKey(peer.address);
    this.#kept.delete(key);
    this.#kept.set(key, peer);
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
  }
}

function isPeerPort(port: number, nearness: Nearness): boolean {
  if (port === PROXIED_PORT || MAIL_PORTS.has(port)) return false;
  return nearness === "public" || (port >= FIRST_USER_PORT && !SERVICE_PORTS.has(port));
}
