/** Limits what strangers may make our DHT node do: replies, places in its table, addresses that it contacts. */
import { Allowance, Allowances } from "../bytes/allowance.ts";
import { type BencodeDictionary, decodeBencode, encodeBencode, isDictionary } from "../bytes/bencode.ts";
import { concatBytes } from "../bytes/hex.ts";
import { machineKey } from "../bytes/machine-key.ts";
import type { SocketAddress } from "../ports.ts";
import { networkOf } from "./addresses.ts";
import { decodePeers, type Family, NODE_ID_BYTES, nodeEntries, WIRE } from "./dht-contacts.ts";
import type { Nearness } from "./nearness.ts";

/** Queries per machine that get a reply, per second and at once. A lookup asks us once or twice. */
const HOST_QUERIES_PER_S = 10;
const HOST_QUERIES_AT_ONCE = 50;

/** Replies in total: some 5 % of a processor. A node of the public DHT gets some dozens of queries per second. */
const QUERIES_PER_S = 200;
const QUERIES_AT_ONCE = 200;

/** Machines whose rate is remembered. */
const MAX_HOSTS = 2_048;

/** Addresses for which we remember whether they are this machine's. */
const MAX_REMEMBERED = 256;

/** Nodes of one network (/24, with IPv6 /48) in the table: an owner of one network must not fill it (libtorrent: one per bucket). */
const MAX_NODES_PER_NETWORK = 4;

/** Nearest first: a node may name no address that is nearer than itself. */
const ORDER: readonly Nearness[] = ["own", "private", "neighbour", "public"];

const DICTIONARY = { maxDepth: 16, maxValues: 1_000 } as const;

/** Returns how near an address is; see `NetworkSurroundings`. */
export type NearnessOf = (host: string) => Nearness | null;

/** Decides which queries get a reply. */
export class QueryRates {
  readonly #nowMs: () => number;
  readonly #nearness: NearnessOf;
  readonly #hosts: Allowances;
  readonly #all: Allowance;
  readonly #own = new Map<string, boolean>();

  constructor(nowMs: () => number, nearness: NearnessOf) {
    this.#nowMs = nowMs;
    this.#nearness = nearness;
    this.#hosts = new Allowances({
      perSecond: HOST_QUERIES_PER_S,
      most: HOST_QUERIES_AT_ONCE,
      limit: MAX_HOSTS,
      nowMs,
    });
    this.#all = new Allowance(QUERIES_PER_S, QUERIES_AT_ONCE, nowMs());
  }

  /** True when this host's query gets a reply. Programs on this machine count only towards the total. */
  allows(host: string): boolean {
    return (this.#hosts.take(machineKey(host)) || this.#isOwn(host)) && this.#all.take(1, this.#nowMs);
  }

  /** Cached, because a flood asks about the same few hosts again and again. */
  #isOwn(host: string): boolean {
    let isOwn = this.#own.get(host);
    if (isOwn === undefined) {
      if (this.#own.size >= MAX_REMEMBERED) this.#own.clear();
      this.#own.set(host, isOwn = this.#nearness(host) === "own");
    }
    return isOwn;
  }
}

/** Decides which nodes get a place in the table: one per machine, a few per network. */
export class TablePlaces {
  readonly #nearness: NearnessOf;
  /** Each node's address by its id in hex, and the number of nodes per machine and network. */
  readonly #hosts = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(nearness: NearnessOf) {
    this.#nearness = nearness;
  }

  /** True when a node with this id may enter, or stay with the address known for it. */
  allows(id: string, host: string): boolean {
    if (this.#hosts.has(id)) return this.#hosts.get(id) === host;
    return this.#keys(host).every(([key, most]) => (this.#counts.get(key) ?? 0) < most);
  }

  /** A node entered. */
  entered(id: string, host: string): void {
    if (this.#hosts.has(id)) return;
    this.#hosts.set(id, host);
    for (const [key] of this.#keys(host)) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** A node left. */
  left(id: string): void {
    const host = this.#hosts.get(id);
    if (host === undefined) return;
    this.#hosts.delete(id);
    for (const [key] of this.#keys(host)) {
      const count = this.#counts.get(key)! - 1;
      if (count === 0) this.#counts.delete(key);
      else this.#counts.set(key, count);
    }
  }

  /** Keys by which a node is counted, each with its limit. Nodes on this machine are the user's own: they have no limit. */
  #keys(host: string): [key: string, most: number][] {
    if (this.#nearness(host) === "own") return [];
    const [machine, network] = [machineKey(host), networkOf(host)];
    return network === host ? [[machine, 1]] : [[machine, 1], [`net ${network}`, MAX_NODES_PER_NETWORK]];
  }
}

/** Removes from a datagram all nodes and peers that are nearer than its sender, and malformed addresses; returns the same bytes if there are none. */
export function withoutNearer(data: Uint8Array, from: SocketAddress, nearness: NearnessOf): Uint8Array {
  const message = decodeBencode(data, DICTIONARY);
  const answer = isDictionary(message) ? message["r"] : null;
  if (!isDictionary(message) || !isDictionary(answer)) return data;
  const least = ORDER.indexOf(nearness(from.host) ?? "public");
  const isFine = (address: unknown, family: Family) =>
    decodePeers([address], family).some(({ host }) => ORDER.indexOf(nearness(host) ?? "own") >= least);
  const clean: Record<string, unknown> = { ...answer };
  for (const family of [4, 6] as const) {
    const { field } = WIRE[family];
    const nodes = answer[field];
    if (!(nodes instanceof Uint8Array)) continue;
    const entries = nodeEntries(nodes, family);
    const fine = entries.filter((entry) => isFine(entry.subarray(NODE_ID_BYTES), family));
    if (fine.length < entries.length) clean[field] = concatBytes(fine);
  }
  const values = Array.isArray(answer["values"]) ? answer["values"] as unknown[] : [];
  const fine = values.filter((value) => isFine(value, 4) || isFine(value, 6));
  if (fine.length < values.length) clean["values"] = fine;
  if (Object.entries(clean).every(([key, value]) => answer[key] === value)) return data;
  return encodeBencode({ ...message as BencodeDictionary, r: clean } as never);
}
