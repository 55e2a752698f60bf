/**
 * Our node of the mainline DHT (BEP 5; BEP 44, of whose mutable items it only reads), shared by all swarms: of that of IPv4, of
 * that of IPv6 (BEP 32), or of both at one port. The protocol is bittorrent-dht's; IPv6, socket, bootstrap, persistence,
 * deadlines and checks are ours. Our ids fit our address (BEP 42); those of others need not, but a node enters the table only
 * once it has replied, one per machine.
 */
import { decodeBencode, encodeBencode } from "../bytes/bencode.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import { equalBytes } from "../bytes/hex.ts";
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
import { type Family, familyOf, NODE_ID_BYTES } from "./dht-contacts.ts";
import { DhtFamily, type FoundItem, type PeerReport } from "./dht-family.ts";
import { QueryRates } from "./dht-guard.ts";
import { type MutableName, mutableQuery } from "./dht-mutable.ts";
import { NamedContacts } from "./dht-named-contacts.ts";
import { type DhtTable, loadTable, saveTable } from "./dht-table-file.ts";
import { NetworkSurroundings } from "./nearness.ts";
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

/** With fewer contacts of a DHT than this, bootstrap nodes are asked too, and nodes that the other DHT names are tried. */
const ENOUGH_NODES = 8;

/** Shortest time between two bootstraps of an empty table. */
const BOOTSTRAP_EVERY_MS = 30_000;

/** Nodes named by others that are tried at once; more are dropped, since any peer can name any number. */
const MAX_TRIALS = 16;

/** After this a trial's place is free again; a ping takes at most 2.5 s. */
const TRIAL_MS = 5_000;

/** A node that replied within this time is a good one (BEP 5). */
const GOOD_NODE_MS = 15 * 60_000;

const DEFAULT_HOST = "0.0.0.0";

/** Options of the DHT node. */
export interface DhtNodeOptions {
  /** First contacts, `host:port`; with an empty list none is contacted. */
  readonly bootstrap: readonly string[];
  /** File of the node table; null: the table is not kept. */
  readonly statePath: string | null;
  /** Address to bind: "::" is for both DHTs. Default "0.0.0.0". */
  readonly host?: string;
  /** Shared with other users that ask how near an address is. Default: a new one. */
  readonly surroundings?: NetworkSurroundings;
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

/** The DHT node. */
export class DhtNode {
  /** UDP port that it listens on. */
  readonly port: number;
  /** Receives the datagrams at that port that are not of the DHT. */
  readonly peerDatagrams: UdpSocket;
  readonly #ports: DhtPorts;
  readonly #options: DhtNodeOptions;
  readonly #families: readonly DhtFamily[];
  readonly #named: NamedContacts;
  readonly #closing = new AbortController();
  readonly #firstNodeListeners = new Set<() => void>();
  readonly #trials = new Set<Timer>();
  #saveTimer: Timer | null = null;
  /** Writes of the table, one after another: an older one must not replace a newer one. */
  #saving: Promise<void> = Promise.resolve();
  #lastBootstrapMs = -Infinity;
  readonly #failed = (error: unknown) =>
    this.#ports.log.log("error", "a fault of the engine in the DHT", faultFields(error));

  private constructor(ports: DhtPorts, options: DhtNodeOptions, socket: UdpSocket, table: DhtTable | null) {
    this.#ports = ports;
    this.#options = options;
    this.port = socket.address.port;
    const shared = shareSocket(socket);
    this.peerDatagrams = shared.peers;
    this.#named = new NamedContacts(shared.dht, (address) => this.addNode(address));
    const nowMs = () => ports.clock.monotonic();
    const surroundings = options.surroundings ?? new NetworkSurroundings(ports.network, nowMs);
    const nearness = (host: string) => surroundings.nearness(host);
    const families = familiesAt(options.host ?? DEFAULT_HOST);
    const context = {
      ...{ socket: shared.dht, nowMs, nearness, both: families.length > 1 },
      rates: new QueryRates(nowMs, nearness),
      nearest: (family: Family, target: Uint8Array) => this.#of(family)?.nearest(target) ?? [],
      named: (address: SocketAddress) => {
        if ((this.#of(familyOf(address.host))?.nodeCount ?? Infinity) < ENOUGH_NODES) this.addNode(address);
      },
      tryNode: (address: SocketAddress) => this.addNode(address),
      failed: (error: unknown) => ports.log.log("warn", "DHT node failed", { error: String(error) }),
    };
    this.#families = families.map((family) => {
      const nodeId = (family === 6 ? table?.id6 : null) ?? table?.id ?? randomId();
      const onNode = () => this.#onNode(this.#of(family)!);
      return new DhtFamily(family, { ...context, nodeId, onNode, onMoved: () => this.#onMoved() });
    });
  }

  /** Binds, restores the table and starts to bootstrap. Rejects when no UDP socket is available. */
  static async open(ports: DhtPorts, options: DhtNodeOptions): Promise<DhtNode> {
    const host = options.host ?? DEFAULT_HOST;
    const wanted = { host, receiveBufferBytes: PEER_RECEIVE_BUFFER_BYTES };
    const socket = await ports.udp.bind({ ...wanted, port: options.port ?? 0 }).catch((error) => {
      if (!hasCode(error, "conflict")) throw error;
      return ports.udp.bind(wanted);
    });
    const table = options.statePath === null ? null : await loadTable(ports.files, options.statePath).catch((error) => {
      ports.log.log("warn", "cannot read the DHT node table", { error });
      return null;
    });
    const node = new DhtNode(ports, options, socket, table);
    for (const contact of table?.nodes ?? []) node.#of(familyOf(contact.host))?.add(contact);
    if (node.#families.some(({ nodeCount }) => nodeCount < ENOUGH_NODES)) void node.bootstrap();
    node.#scheduleSave();
    return node;
  }

  /** Nodes in the tables. */
  get nodeCount(): number {
    return this.#families.reduce((sum, { nodeCount }) => sum + nodeCount, 0);
  }

  /** True when a node replied within the last quarter of an hour; restored nodes count once they reply. */
  get hasAnswers(): boolean {
    const since = this.#ports.clock.now() - GOOD_NODE_MS;
    return this.#families.some(({ nodes }) => nodes.some(({ seen }) => (seen ?? 0) > since));
  }

  /** Calls `listener` when the empty table of a DHT gets its first node; returns a function that stops that. */
  onFirstNode(listener: () => void): () => void {
    this.#firstNodeListeners.add(listener);
    return () => this.#firstNodeListeners.delete(listener);
  }

  /** Tries a node that somebody named; it enters the table when it replies. */
  addNode(address: SocketAddress): void {
    const host = canonicalHost(address.host);
    const family = host === null ? undefined : this.#of(familyOf(host));
    if (this.#closing.signal.aborted || host === null || family === undefined) return;
    if (address.port < 1 || address.port > 65535 || this.#trials.size >= MAX_TRIALS) return;
    const timer = this.#ports.clock.setTimeout(() => this.#trials.delete(timer), TRIAL_MS);
    this.#trials.add(timer);
    family.add({ host, port: address.port });
  }

  /**
   * Looks up the swarm (`get_peers`) and, with a `port` above 0, announces us there. Reports peers as they come;
   * returns how many nodes replied. Rejects with `timeout` after 30 s, or as `signal` says.
   */
  async lookup(infohash: Uint8Array, port: number, report: PeerReport, signal: AbortSignal) {
    let isOver = false;
    try {
      return await this.#within(LOOKUP_DEADLINE_MS, signal, async () => {
        const counts = await Promise.all(this.#families.map(async (family) => {
          const replies = await family.lookup(infohash, report, () => isOver);
          if (port > 0 && replies > 0) await family.announce(infohash, port);
          return replies;
        }));
        return counts.reduce((sum, count) => sum + count, 0);
      });
    } finally {
      isOver = true;
    }
  }

  /** The bencoded value of an immutable item, its hash checked; null when nobody has it. */
  async getImmutable(target: Uint8Array, signal: AbortSignal): Promise<Uint8Array | null> {
    const value = await this.#item(target, false, {}, signal);
    return value !== null && equalBytes(await sha1(value), target) ? value : null;
  }

  /** The bencoded value of a mutable item, the newest that its key has signed; null when nobody has it. */
  async getMutable(name: MutableName, signal: AbortSignal): Promise<Uint8Array | null> {
    const { target, options } = await mutableQuery(name, this.#ports.ed25519);
    return await this.#item(target, true, options, signal);
  }

  async #item(
    target: Uint8Array,
    isMutable: boolean,
    options: object,
    signal: AbortSignal,
  ): Promise<Uint8Array | null> {
    await this.#firstNode(signal);
    const item = await this.#within(LOOKUP_DEADLINE_MS, signal, async () => {
      const lookups = this.#families.map((family) => family.get(target, options));
      return isMutable ? newest(await Promise.all(lookups)) : await firstFound(lookups);
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
    await this.#within(LOOKUP_DEADLINE_MS, signal, async () => {
      const stored = await Promise.allSettled(this.#families.map((family) => family.put(decoded)));
      const failed = stored.find((result) => result.status === "rejected");
      if (failed !== undefined && stored.every(({ status }) => status === "rejected")) throw failed.reason;
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
        if (literal === null && network.namesAreRemote === true) {
          return this.#named.ping(contact, this.#families[0]!.nodeId);
        }
        const hosts = literal === null
          ? await withSignal(network.resolve(contact.host, { signal: limit.signal }), limit.signal)
          : [literal];
        for (const family of this.#closing.signal.aborted ? [] : this.#families) {
          const host = hosts.find((candidate) => familyOf(candidate) === family.family);
          if (host !== undefined) family.add({ host, port: contact.port });
        }
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
    await Promise.all(this.#families.map((family) => family.close()));
  }

  #of(family: Family): DhtFamily | undefined {
    return this.#families.find((other) => other.family === family);
  }

  #onNode(family: DhtFamily): void {
    if (family.nodeCount !== 1) return;
    // In a microtask: by then a restored table is complete.
    queueMicrotask(guarded(() => {
      if (this.#closing.signal.aborted) return;
      for (const listener of [...this.#firstNodeListeners]) listener();
      family.fill();
    }, this.#failed));
  }

  /** Nodes that refused the old id are asked once more. Happens once an hour at most. */
  #onMoved(): void {
    if (this.#families.every(({ nodeCount }) => nodeCount >= ENOUGH_NODES)) return;
    this.#lastBootstrapMs = -Infinity;
    void this.bootstrap();
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
    const nodes = this.#families.flatMap((family) => family.nodes);
    // An empty table would only overwrite contacts that may work again tomorrow.
    if (path === null || nodes.length === 0) return;
    const [id, id6] = [this.#families[0]!.nodeId, this.#of(6)?.nodeId];
    await saveTable(this.#ports.files, path, { id, nodes, ...(id6 && { id6 }) }).catch((error) => {
      this.#ports.log.log("warn", "cannot save the DHT node table", { error });
    });
  }
}

function randomId(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(NODE_ID_BYTES));
}

async function sha1(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-1", new Uint8Array(bytes)));
}

/** The DHTs that a socket at this address can take part in. */
function familiesAt(host: string): Family[] {
  return host === "::" ? [4, 6] : [familyOf(host)];
}

/** The first item that is found; null when none is. */
async function firstFound<T>(lookups: readonly Promise<T | null>[]): Promise<T | null> {
  const found = lookups.map(async (lookup) => await lookup ?? Promise.reject(new Error("not found")));
  return await Promise.any(found).catch(async () => {
    await Promise.all(lookups);
    return null;
  });
}

function newest(items: readonly (FoundItem | null)[]): FoundItem | null {
  return items.reduce((best, item) => best === null || (item?.seq ?? 0) > (best.seq ?? 0) ? item ?? best : best);
}
