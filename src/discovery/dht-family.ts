/** Our node in one of the two DHTs: bittorrent-dht's, with what it lacks for IPv6, and bounds where it has none. */
import DHT from "bittorrent-dht";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { SocketAddress, UdpSocket } from "../ports.ts";
import { decodePeers, type Family } from "./dht-contacts.ts";
import { type NearnessOf, type QueryRates, TablePlaces } from "./dht-guard.ts";
import { speakIpv6 } from "./dht-ipv6.ts";
import { OwnNodeId } from "./dht-node-id.ts";
import {
  ANSWERED_NODES,
  ANSWERED_PEERS,
  LIBRARY_LIMITS,
  type LibraryContact,
  type LibraryReply,
  type LibrarySender,
} from "./dht-library.ts";
import { answerSamples } from "./dht-samples.ts";
import { DhtSocket } from "./dht-socket.ts";
import { nameNodes, type OtherFamily } from "./dht-want.ts";

/** Receives a peer and the literal address of the node that reported it. */
export type PeerReport = (peer: SocketAddress, node: string) => void;

/** An item (BEP 44), decoded; mutable ones have numbers that grow. */
export interface FoundItem {
  readonly v?: unknown;
  readonly seq?: number;
}

/** Dependencies of a family. */
export interface DhtFamilyContext extends OtherFamily {
  /** Its datagrams, and possibly those of the other one. */
  readonly socket: UdpSocket;
  /** The id that it begins with. */
  readonly nodeId: Uint8Array;
  /** Monotonic ms. */
  nowMs(): number;
  readonly nearness: NearnessOf;
  /** Of both together. */
  readonly rates: QueryRates;
  /** Whether there is a node of ours in the other DHT. */
  readonly both: boolean;
  /** Queries a node that asked us: its address may be forged. */
  tryNode(address: SocketAddress): void;
  /** A node entered the table. */
  onNode(): void;
  /** Our id is another: those who refused the old one may take it. */
  onMoved(): void;
  /** The library failed. */
  failed(error: unknown): void;
}

/** A node of one DHT. */
export class DhtFamily {
  readonly family: Family;
  // deno-lint-ignore no-explicit-any -- the library ships no types
  readonly #dht: any;
  readonly #id: OwnNodeId;

  constructor(family: Family, context: DhtFamilyContext) {
    this.family = family;
    this.#id = new OwnNodeId(family, context.nodeId, () => context.nowMs());
    const seenAt = (host: string, reporter: string) => {
      if (!this.#id.seenAt(host, reporter)) return;
      this.#move();
      context.onMoved();
    };
    const socket = new DhtSocket(context.socket, family, { ...context, seenAt });
    // The library gets no bootstrap list: it would resolve names itself and fall back to public nodes of its own.
    this.#dht = new DHT({ ...LIBRARY_LIMITS, bootstrap: false, socket, nodeId: context.nodeId });
    this.#restrain(socket, new TablePlaces(context.nearness), context);
    if (family === 6) speakIpv6(this.#dht);
    answerSamples(this.#dht, () => context.nowMs());
    nameNodes(this.#dht, family, context.both, context);
    this.#dht.on("error", context.failed);
    this.#dht.on("warning", () => {}); // damaged or late datagrams: everyday on the open network
    this.#dht.on("node", () => context.onNode());
    this.#dht.listen();
  }

  /** Our id in this DHT. */
  get nodeId(): Uint8Array {
    return this.#id.value;
  }

  /** Nodes in the table. */
  get nodeCount(): number {
    return this.#dht.nodes.count();
  }

  /** The table; `seen`: Unix ms of its last reply. */
  get nodes(): (LibraryContact & { readonly seen?: number })[] {
    return this.#dht.nodes.toArray();
  }

  /** The nodes of the table nearest to `target`, as many as a reply has. */
  nearest(target: Uint8Array): LibraryContact[] {
    return this.#dht.nodes.closest(target);
  }

  /** Tries a node, which enters the table when it replies; one with an id enters at once. */
  add(node: SocketAddress & Partial<LibraryContact>): void {
    this.#dht.addNode({ ...node });
  }

  /** Looks up the nodes around our own id: every one that replies enters the table. */
  fill(): void {
    this.#dht.lookup(this.#dht.nodeId, () => {});
  }

  /** Looks up a swarm; resolves with how many nodes replied. Reports peers until `isOver`. */
  async lookup(infohash: Uint8Array, report: PeerReport, isOver: () => boolean): Promise<number> {
    // As the class of bytes that the library uses: it keeps what a lookup found under the hexadecimal digits that this one writes.
    const target = this.#dht.nodeId.constructor.from(infohash);
    const query = { q: "get_peers", a: { id: this.#dht.nodeId, info_hash: target } };
    // Peers announced to us proved their address with a token that was sent there.
    for (const peer of decodePeers(this.#dht._peers.get(toHex(infohash), 100), this.family)) report(peer, peer.host);
    const visit = ({ r }: LibraryReply & { r?: { values?: unknown } }, { address, host }: LibrarySender) => {
      if (isOver()) return false;
      for (const peer of decodePeers(r?.values, this.family)) report(peer, address ?? host ?? peer.host);
      return true;
    };
    return await new Promise((resolve, reject) => {
      const done = (cause: Error | null, count: number) => cause ? reject(failedLookup(cause)) : resolve(count);
      this.#dht._closest(target, query, visit, done);
    });
  }

  /** Announces us to the nodes that the last lookup found. */
  async announce(infohash: Uint8Array, port: number): Promise<void> {
    // Nodes that do not accept the announce have left since the lookup: the next round finds others.
    await new Promise<void>((resolve) => this.#dht.announce(infohash, port, () => resolve()));
  }

  /** Looks up an item (BEP 44); null when nobody has it. */
  async get(target: Uint8Array, options: object): Promise<FoundItem | null> {
    return await new Promise((resolve, reject) => {
      const done = (error: unknown, value: FoundItem | null) => error ? reject(error) : resolve(value);
      this.#dht.get(target, options, done);
    });
  }

  /** Stores an immutable item (BEP 44). Rejects with `unavailable` when no node accepted it. */
  async put(value: unknown): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#dht.put({ v: value }, (error: unknown) => error ? reject(notStored(error)) : resolve());
    });
  }

  /** Ends it, with the socket. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#dht.destroy(() => resolve()));
  }

  /** Takes the new id: sorts the table around it, and looks up the nodes near it. */
  #move(): void {
    const { nodes, _rpc: rpc } = this.#dht;
    const known: LibraryContact[] = nodes.toArray();
    for (const { id } of known) nodes.remove(id);
    nodes.root = { contacts: [], dontSplit: false, left: null, right: null };
    this.#dht.nodeId = rpc.id = nodes.localNodeId = rpc.id.constructor.from(this.#id.value);
    for (const node of known) nodes.add(node);
    this.fill();
  }

  /** Bounds what the library leaves unbounded. Only its pinned version has these members. */
  #restrain(socket: DhtSocket, places: TablePlaces, context: DhtFamilyContext): void {
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
      else if (!socket.isReadOnly) context.tryNode(node);
    };
  }
}

function failedLookup(cause: Error): MillraceError {
  return new MillraceError("unavailable", `the lookup failed: ${cause.message}`, { cause });
}

function notStored(cause: unknown): MillraceError {
  return new MillraceError("unavailable", "no DHT node accepted the item", { cause });
}
