/** Limits what strangers may make our DHT node do: replies, places in its table, addresses that it contacts. */
import { Allowance, Allowances } from "../bytes/allowance.ts";
import { type BencodeDictionary, decodeBencode, encodeBencode, isDictionary } from "../bytes/bencode.ts";
import type { SocketAddress } from "../ports.ts";
import { COMPACT4_BYTES, networkOf } from "./addresses.ts";
import type { Nearness } from "./nearness.ts";

/** Queries per address that get a reply, per second and at once. A lookup asks us once or twice. */
const HOST_QUERIES_PER_S = 10;
const HOST_QUERIES_AT_ONCE = 50;

/** Replies in total: some 5 % of a processor. A node of the public DHT gets some dozens of queries per second. */
const QUERIES_PER_S = 200;
const QUERIES_AT_ONCE = 200;

/** Addresses whose rate is remembered. */
const MAX_HOSTS = 2_048;

/** Addresses for which we remember whether they are this machine's. */
const MAX_REMEMBERED = 256;

/** Nodes of one network (/24) in the table: an owner of one network must not fill it (libtorrent: one per bucket). */
const MAX_NODES_PER_NETWORK = 4;

/** In `nodes` (BEP 5): bytes of a node's id, which precedes its address, and of a whole node. */
const ID_BYTES = 20;
const NODE_BYTES = ID_BYTES + COMPACT4_BYTES;

/** Nearest first: a node may name no address that is nearer than itself. */
const ORDER: readonly Nearness[] = ["own", "private", "neighbour", "public"];

const DICTIONARY = { maxDepth: 16, maxValues: 1_000 } as const;

/** Returns how near an address is; see `Surroundings`. */
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
    return (this.#hosts.take(host) || this.#isOwn(host)) && this.#all.take(1, this.#nowMs);
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

/** Decides which nodes get a place in the table: one per address, a few per network. */
export class TablePlaces {
  readonly #nearness: NearnessOf;
  /** Each node's address by its id in hex, and the number of nodes per address and network. */
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
    const network = networkOf(host);
    return network === host ? [[host, 1]] : [[host, 1], [`net ${network}`, MAX_NODES_PER_NETWORK]];
  }
}

/** Removes from a datagram all nodes and peers that are nearer than its sender; returns the same bytes if there are none. */
export function withoutNearer(data: Uint8Array, from: SocketAddress, nearness: NearnessOf): Uint8Array {
  const message = decodeBencode(data, DICTIONARY);
  const answer = isDictionary(message) ? message["r"] : null;
  if (!isDictionary(message) || !isDictionary(answer)) return data;
  const least = ORDER.indexOf(nearness(from.host) ?? "public");
  const isFine = (address: Uint8Array) => ORDER.indexOf(nearness(address.subarray(0, 4).join(".")) ?? "own") >= least;
  const nodes = answer["nodes"] instanceof Uint8Array ? entries(answer["nodes"], NODE_BYTES) : [];
  const fineNodes = nodes.filter((node) => isFine(node.subarray(ID_BYTES)));
  const values = Array.isArray(answer["values"]) ? answer["values"] as unknown[] : [];
  const fineValues = values.filter((value) => !(value instanceof Uint8Array) || isFine(value));
  if (fineNodes.length === nodes.length && fineValues.length === values.length) return data;
  const clean: Record<string, unknown> = { ...answer };
  if (fineNodes.length < nodes.length) clean["nodes"] = joined(fineNodes);
  if (fineValues.length < values.length) clean["values"] = fineValues;
  return encodeBencode({ ...message as BencodeDictionary, r: clean } as never);
}

function entries(bytes: Uint8Array, size: number): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let at = 0; at + size <= bytes.length; at += size) all.push(bytes.subarray(at, at + size));
  return all;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.length * NODE_BYTES);
  parts.forEach((part, i) => whole.set(part, i * NODE_BYTES));
  return whole;
}
