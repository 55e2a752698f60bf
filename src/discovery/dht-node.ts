/**
 * Our node of the mainline DHT (BEP 5; BEP 44, of whose mutable items it only reads; IPv4), shared by all swarms. The protocol is
 * bittorrent-dht's; socket, bootstrap, persistence, deadlines and checks are ours. Any node id is accepted
 * (BEP 42 is tolerated, not enforced); a node enters the table once it has replied, one per address.
 */
import DHT from "bittorrent-dht";
import { decodeBencode, encodeBencode } from "../bytes/bencode.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import { equalBytes, toHex } from "../bytes/hex.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type {
  Clock,
  FilePort,
  Logger,
  NetworkPort,
  SocketAddress,
  Timer,
  UdpPort,
  UdpSocket,
  VerifierOf,
} from "../ports.ts";
import { canonicalHost, parseHostPort } from "./addresses.ts";
import { TablePlaces } from "./dht-guard.ts";
import {
  ANSWERED_NODES,
  ANSWERED_PEERS,
  LIBRARY_LIMITS,
  type LibraryContact,
  type LibrarySender,
} from "./dht-library.ts";
import { type MutableName, mutableQuery } from "./dht-mutable.ts";
import { NamedContacts } from "./dht-named-contacts.ts";
import { DhtSocket } from "./dht-socket.ts";
import { loadTable, saveTable } from "./dht-table-file.ts";
import { Surroundings } from "./nearness.ts";
import { PEER_RECEIVE_BUFFER_BYTES, shareSocket } from "./shared-socket.ts";

/** BEP 44: the bencoded value of an item takes at most 1000 bytes. */
const MAX_ITEM_BYTES = 1_000;

/** One lookup visits some dozens of nodes, 16 at once, with 2 s for each. */
const LOOKUP_DEADLINE_MS = 30_000;

/** Time to resolve a bootstrap node's name. */
const RESOLVE_DEADLINE_MS = 5_000;

/** How long an item request waits for the first node when the table is empty. */
const FIRST_NODE_DEADLINE_MS = 10_000;

/** The table changes slowly; a crash loses at most this much. */
const SAVE_EVERY_MS = 10 * 60_000;

/** With fewer saved contacts than this, bootstrap nodes are asked too. */
const ENOUGH_NODES = 8;

/** Shortest time between two bootstraps of an empty table. */
const BOOTSTRAP_EVERY_MS = 30_000;

/** Nodes named by others that are tried at once; more are dropped, since any peer can name any number. */
const MAX_TRIALS = 16;

/** After this a trial's place is free again; a ping takes at most 2.5 s. */
const TRIAL_MS = 5_000;

/** A node that replied within this time is a good one (BEP 5). */
const GOOD_NODE_MS = 15 * 60_000;

/** Options of the DHT node. */
export interface DhtNodeOptions {
  /** First contacts, `host:port`; with an empty list none is contacted. */
  readonly bootstrap: readonly string[];
  /** File of the node table; null: the table is not kept. */
  readonly statePath: string | null;
  /** Address to bind. Default "0.0.0.0". */
  readonly host?: string;
  /** Shared with other users that ask how near an address is. Default: a new one. */
  readonly surroundings?: Surroundings;
  /** Preferred UDP port; another is used if it is taken. Default 0: any free one. */
  readonly port?: number;
}

/** The parts of the machine that the node needs. */
export interface DhtPorts {
  readonly udp: UdpPort;
  readonly files: FilePort;
  readonly network: NetworkPort;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ed25519: VerifierOf;
}

/** Receives a peer and the literal address of the node that reported it. */
type PeerReport = (peer: SocketAddress, node: string) => void;

/** The DHT node. */
export class DhtNode {
  /** UDP port that it listens on. */
  readonly port: number;
  /** Receives the datagrams at that port that are not of the DHT. */
  readonly peerDatagrams: UdpSocket;
  readonly #ports: DhtPorts;
  readonly #options: DhtNodeOptions;
  // deno-lint-ignore no-explicit-any -- the library ships no types
  readonly #dht: any;
  readonly #named: NamedContacts;
  readonly #closing = new AbortController();
  readonly #lookups = new Map<string, Set<PeerReport>>();
  readonly #firstNodeListeners = new Set<() => void>();
  readonly #trials = new Set<Timer>();
  #saveTimer: Timer | null = null;
  /** Writes of the table, one after another: an older one must not replace a newer one. */
  #saving: Promise<void> = Promise.resolve();
  #lastBootstrapMs = -Infinity;
  readonly #failed = (error: unknown) =>
    this.#ports.log.log("error", "a fault of the engine in the DHT", faultFields(error));

  private constructor(ports: DhtPorts, options: DhtNodeOptions, socket: UdpSocket, nodeId: Uint8Array | null) {
    this.#ports = ports;
    this.#options = options;
    this.port = socket.address.port;
    const shared = shareSocket(socket);
    this.peerDatagrams = shared.peers;
    this.#named = new NamedContacts(shared.dht, (address) => this.addNode(address));
    // The library gets no bootstrap list: it would resolve names itself and fall back to public nodes of its own.
    const nowMs = () => ports.clock.monotonic();
    const surroundings = options.surroundings ?? new Surroundings(ports.network, nowMs);
    const nearness = (host: string) => surroundings.nearness(host);
    const dhtSocket = new DhtSocket(shared.dht, { nowMs, nearness });
    const base = { ...LIBRARY_LIMITS, bootstrap: false, socket: dhtSocket };
    this.#dht = new DHT(nodeId === null ? base : { ...base, nodeId });
    this.#restrain(dhtSocket, new TablePlaces(nearness));
    this.#dht.on("error", (error: unknown) => ports.log.log("warn", "DHT node failed", { error: String(error) }));
    this.#dht.on("warning", () => {}); // damaged or late datagrams: everyday on the open network
    this.#dht.on("peer", (peer: SocketAddress, infohash: Uint8Array, node: LibrarySender | null) => {
      // Peers announced to us proved their address with a token that was sent there.
      const from = node?.address ?? node?.host ?? peer.host;
      for (const report of this.#lookups.get(toHex(infohash)) ?? []) report({ host: peer.host, port: peer.port }, from);
    });
    this.#dht.on("node", () => this.#onNode());
    this.#dht.listen();
  }

  /** Binds, restores the table and starts to bootstrap. Rejects when no UDP socket is available. */
  static async open(ports: DhtPorts, options: DhtNodeOptions): Promise<DhtNode> {
    const host = options.host ?? "0.0.0.0";
    const wanted = { host, receiveBufferBytes: PEER_RECEIVE_BUFFER_BYTES };
    const socket = await ports.udp.bind({ ...wanted, port: options.port ?? 0 }).catch((error) => {
      if (!hasCode(error, "conflict")) throw error;
      return ports.udp.bind(wanted);
    });
    const table = options.statePath === null ? null : await loadTable(ports.files, options.statePath).catch((error) => {
      ports.log.log("warn", "cannot read the DHT node table", { error });
      return null;
    });
    const node = new DhtNode(ports, options, socket, table?.id ?? null);
    for (const contact of table?.nodes ?? []) node.#dht.addNode({ ...contact });
    if ((table?.nodes.length ?? 0) < ENOUGH_NODES) void node.bootstrap();
    node.#scheduleSave();
    return node;
  }

  /** Nodes in the table. */
  get nodeCount(): number {
    return this.#dht.nodes.count();
  }

  /** True when a node replied within the last quarter of an hour; restored nodes count once they reply. */
  get hasAnswers(): boolean {
    const since = this.#ports.clock.now() - GOOD_NODE_MS;
    return this.#dht.nodes.toArray().some((node: { seen?: number }) => (node.seen ?? 0) > since);
  }

  /** Calls `listener` when an empty table gets its first node; returns a function that stops that. */
  onFirstNode(listener: () => void): () => void {
    this.#firstNodeListeners.add(listener);
    return () => this.#firstNodeListeners.delete(listener);
  }

  /** Tries a node that somebody named; it enters the table when it replies. */
  addNode(address: SocketAddress): void {
    const host = canonicalHost(address.host);
    if (this.#closing.signal.aborted || host === null || host.includes(":")) return;
    if (address.port < 1 || address.port > 65535 || this.#trials.size >= MAX_TRIALS) return;
    const timer = this.#ports.clock.setTimeout(() => this.#trials.delete(timer), TRIAL_MS);
    this.#trials.add(timer);
    this.#dht.addNode({ host, port: address.port });
  }

  /**
   * Looks up the swarm (`get_peers`) and, with a `port` above 0, announces us there. Reports peers as they come;
   * returns how many nodes replied. Rejects with `timeout` after 30 s, or as `signal` says.
   */
  async lookup(infohash: Uint8Array, port: number, report: PeerReport, signal: AbortSignal) {
    const key = toHex(infohash);
    const reports = this.#lookups.get(key) ?? new Set();
    this.#lookups.set(key, reports.add(report));
    let stop = () => {};
    try {
      return await this.#within(LOOKUP_DEADLINE_MS, signal, async () => {
        const replies = await new Promise<number>((resolve, reject) => {
          stop = this.#dht.lookup(
            infohash,
            (cause: Error | null, count: number) => cause ? reject(failedLookup(cause)) : resolve(count),
          );
        });
        if (port > 0 && replies > 0) {
          // Nodes that do not accept the announce have left since the lookup: the next round finds others.
          await new Promise<void>((resolve) => this.#dht.announce(infohash, port, () => resolve()));
        }
        return replies;
      });
    } finally {
      stop();
      reports.delete(report);
      if (reports.size === 0 && this.#lookups.get(key) === reports) this.#lookups.delete(key);
    }
  }

  /** The bencoded value of an immutable item, its hash checked; null when nobody has it. */
  async getImmutable(target: Uint8Array, signal: AbortSignal): Promise<Uint8Array | null> {
    const value = await this.#item(target, {}, signal);
    return value !== null && equalBytes(await sha1(value), target) ? value : null;
  }

  /** The bencoded value of a mutable item, the newest that its key has signed; null when nobody has it. */
  async getMutable(name: MutableName, signal: AbortSignal): Promise<Uint8Array | null> {
    const { target, options } = await mutableQuery(name, this.#ports.ed25519);
    return await this.#item(target, options, signal);
  }

  async #item(target: Uint8Array, options: object, signal: AbortSignal): Promise<Uint8Array | null> {
    await this.#firstNode(signal);
    const item = await this.#within(LOOKUP_DEADLINE_MS, signal, () => {
      return new Promise<{ v?: unknown } | null>((resolve, reject) => {
        const done = (error: unknown, value: { v?: unknown } | null) => error ? reject(error) : resolve(value);
        this.#dht.get(target, options, done);
      });
    });
    if (item?.v === undefined) return null;
    const value = encodeBencode(item.v);
    return value.length <= MAX_ITEM_BYTES ? value : null;
  }

  /**
   * Stores `value` with the nodes closest to its hash; returns the hash. Rejects with `invalid_argument` when it is not
   * canonical bencoding or exceeds 1000 bytes, `unavailable` when no node accepted it.
   */
  async putImmutable(value: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    if (value.length > MAX_ITEM_BYTES) {
      throw new MillraceError("invalid_argument", `a DHT item has at most ${MAX_ITEM_BYTES} bytes`);
    }
    const decoded = decodeBencode(value, { maxDepth: 8, errorCode: "invalid_argument" });
    if (!equalBytes(encodeBencode(decoded), value)) {
      throw new MillraceError(
        "invalid_argument",
        "a DHT item must be canonical bencoding: keys sorted, no leading zeros",
      );
    }
    await this.#firstNode(signal);
    await this.#within(LOOKUP_DEADLINE_MS, signal, () => {
      return new Promise<void>((resolve, reject) => {
        this.#dht.put({ v: decoded }, (error: unknown) => error ? reject(notStored(error)) : resolve());
      });
    });
    return sha1(value);
  }

  /** Pings the bootstrap nodes unless that was done in the last 30 s; those that reply enter the table. */
  async bootstrap(): Promise<void> {
    const { clock, network } = this.#ports;
    if (this.#closing.signal.aborted || clock.monotonic() - this.#lastBootstrapMs < BOOTSTRAP_EVERY_MS) return;
    this.#lastBootstrapMs = clock.monotonic();
    await Promise.allSettled(this.#options.bootstrap.map(async (text) => {
      const contact = parseHostPort(text);
      if (contact === null) return;
      const limit = deadline(clock, RESOLVE_DEADLINE_MS, this.#closing.signal);
      try {
        const literal = canonicalHost(contact.host);
        if (literal === null && network.namesAreRemote === true) return this.#named.ping(contact, this.#dht.nodeId);
        const hosts = literal === null
          ? await withSignal(network.resolve(contact.host, { signal: limit.signal }), limit.signal)
          : [literal];
        const host = hosts.find((candidate) => !candidate.includes(":"));
        if (host !== undefined && !this.#closing.signal.aborted) this.#dht.addNode({ host, port: contact.port });
      } finally {
        limit.cancel();
      }
    }));
  }

  /** Saves the table and releases socket and timers. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new MillraceError("closed", "the DHT node is closed"));
    this.#saveTimer?.cancel();
    for (const timer of this.#trials) timer.cancel();
    this.#firstNodeListeners.clear();
    await this.#save();
    await new Promise<void>((resolve) => this.#dht.destroy(() => resolve()));
  }

  /** Bounds what the library leaves unbounded. Only its pinned version has these members. */
  #restrain(socket: DhtSocket, places: TablePlaces): void {
    const { nodes, _peers: peers, _rpc: rpc } = this.#dht;
    const [add, closest, get] = [nodes.add.bind(nodes), nodes.closest.bind(nodes), peers.get.bind(peers)];
    nodes.add = (node: LibraryContact) => places.allows(toHex(node.id), node.host) ? add(node) : nodes;
    nodes.on("added", (node: LibraryContact) => places.entered(toHex(node.id), node.host));
    nodes.on("removed", (node: LibraryContact) => places.left(toHex(node.id)));
    // Called without a count, it would reply with all nodes that it knows, or all peers.
    nodes.closest = (target: Uint8Array, count: number = ANSWERED_NODES) => closest(target, count);
    peers.get = (infohash: string, count: number = ANSWERED_PEERS) => get(infohash, count);
    const enter = rpc._addNode.bind(rpc);
    rpc._addNode = (node: LibraryContact) => {
      if (!places.allows(toHex(node.id), node.host)) return;
      // A node that only asks us may have forged its address, so we query it in turn.
      if (socket.isAnswer) enter(node);
      else this.addNode(node);
    };
  }

  #onNode(): void {
    if (this.nodeCount !== 1) return;
    // In a microtask: by then a restored table is complete.
    queueMicrotask(guarded(() => {
      if (this.#closing.signal.aborted) return;
      for (const listener of [...this.#firstNodeListeners]) listener();
      // Fill the table around our own id: every node that replies to a lookup enters it.
      this.#dht.lookup(this.#dht.nodeId, () => {});
    }, this.#failed));
  }

  async #firstNode(signal: AbortSignal): Promise<void> {
    if (this.nodeCount > 0 || this.#options.bootstrap.length === 0) return;
    let stop = () => {};
    const first = new Promise<void>((resolve) => stop = this.onFirstNode(resolve));
    void this.bootstrap();
    try {
      await this.#within(FIRST_NODE_DEADLINE_MS, signal, () => first);
    } catch (error) {
      if (!hasCode(error, "timeout") || signal.aborted) throw error;
    } finally {
      stop();
    }
  }

  /** Runs `work` with a deadline, the caller's signal and our own end (the library drops its callbacks when destroyed). */
  async #within<T>(timeoutMs: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const own = deadline(this.#ports.clock, timeoutMs, this.#closing.signal);
    try {
      if (signal.aborted) throw abortError(signal);
      if (own.signal.aborted) throw abortError(own.signal);
      return await withSignal(withSignal(work(), own.signal), signal);
    } finally {
      own.cancel();
    }
  }

  #scheduleSave(): void {
    if (this.#options.statePath === null || this.#closing.signal.aborted) return;
    const save = () => this.#save().finally(() => this.#scheduleSave());
    this.#saveTimer = this.#ports.clock.setTimeout(guarded(save, this.#failed), SAVE_EVERY_MS);
  }

  #save(): Promise<void> {
    return this.#saving = this.#saving.catch(() => {}).then(() => this.#saveNow());
  }

  async #saveNow(): Promise<void> {
    const path = this.#options.statePath;
    const nodes: LibraryContact[] = this.#dht.nodes.toArray();
    // An empty table would only overwrite contacts that may work again tomorrow.
    if (path === null || nodes.length === 0) return;
    await saveTable(this.#ports.files, path, { id: this.#dht.nodeId, nodes }).catch((error) => {
      this.#ports.log.log("warn", "cannot save the DHT node table", { error });
    });
  }
}

async function sha1(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-1", new Uint8Array(bytes)));
}

function failedLookup(cause: Error): MillraceError {
  return new MillraceError("unavailable", `the lookup failed: ${cause.message}`, { cause });
}

function notStored(cause: unknown): MillraceError {
  return new MillraceError("unavailable", "no DHT node accepted the item", { cause });
}
