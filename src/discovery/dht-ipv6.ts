/**
 * What bittorrent-dht lacks for a node of the IPv6 DHT (BEP 32): it reads and writes IPv4 addresses alone. Everything else (its
 * table, transactions, tokens, stored items) works with any address. Only its pinned version has these members.
 */
import { equalBytes, toHex } from "../bytes/hex.ts";
import type { SocketAddress } from "../ports.ts";
import { addressKey } from "./addresses.ts";
import { encodePeer, namedNodes } from "./dht-contacts.ts";
import type { Asked, LibraryContact, LibraryReply } from "./dht-library.ts";

/** Queries of one lookup that are under way at once; the library has 16 over all lookups. */
const AT_ONCE = 8;

/** Queries of one lookup. Some dozens are enough; nodes that name ever nearer ones must not lead it on. */
const MAX_ASKED = 200;

/** Makes `dht`, a node of the library with a socket of IPv6, speak of IPv6 addresses. */
// deno-lint-ignore no-explicit-any -- the library ships no types
export function speakIpv6(dht: any): void {
  const { _rpc: rpc, _peers: peers } = dht;
  dht._addPeer = (peer: SocketAddress, infohash: Uint8Array) => peers.add(toHex(infohash), encodePeer(peer));
  rpc.closest = (
    target: Uint8Array,
    message: object,
    visit: ((reply: LibraryReply, from: SocketAddress) => boolean | void) | null,
    done: (error: null, replies: number) => void,
  ) => new Lookup(rpc, target, message, visit, (replies) => done(null, replies));
}

/** Asks the nodes nearest to a target, and nearer ones that they name, until all of the nearest have been asked. */
class Lookup {
  // deno-lint-ignore no-explicit-any -- the library ships no types
  readonly #rpc: any;
  readonly #target: Uint8Array;
  readonly #message: object;
  readonly #visit: ((reply: LibraryReply, from: SocketAddress) => boolean | void) | null;
  readonly #done: (replies: number) => void;
  /** Nearest first; those that failed are left out. */
  #known: LibraryContact[];
  readonly #asked = new Set<string>();
  #underWay = 0;
  #replies = 0;
  #isStopped = false;

  constructor(
    // deno-lint-ignore no-explicit-any -- the library ships no types
    rpc: any,
    target: Uint8Array,
    message: object,
    visit: ((reply: LibraryReply, from: SocketAddress) => boolean | void) | null,
    done: (replies: number) => void,
  ) {
    this.#rpc = rpc;
    this.#target = target;
    this.#message = message;
    this.#visit = visit;
    this.#done = done;
    this.#known = rpc.nodes.closest(target, rpc.k);
    this.#goOn();
  }

  #goOn(): void {
    if (this.#rpc.destroyed) return;
    for (const node of this.#known) {
      if (this.#isStopped || this.#underWay >= AT_ONCE || this.#asked.size >= MAX_ASKED) break;
      const key = addressKey(node);
      if (this.#asked.has(key)) continue;
      this.#asked.add(key);
      this.#underWay++;
      this.#rpc.query(node, this.#message, (...arrived: Parameters<Asked>) => this.#arrived(node, ...arrived));
    }
    if (this.#underWay === 0) queueMicrotask(() => this.#done(this.#replies));
  }

  #arrived(node: LibraryContact, error: Parameters<Asked>[0], reply: LibraryReply | null, from: SocketAddress): void {
    this.#underWay--;
    if (error !== null || reply === null) {
      this.#known = this.#known.filter((other) => other !== node);
      if (error?.code === "ETIMEDOUT" || error?.code === "EUNEXPECTEDNODE") this.#rpc.nodes.remove(node.id);
    } else {
      this.#replies++;
      this.#learn(namedNodes(reply.r, 6));
      if (this.#visit?.(reply, from) === false) this.#isStopped = true;
    }
    this.#goOn();
  }

  #learn(named: readonly LibraryContact[]): void {
    const ids = new Set(this.#known.map(({ id }) => toHex(id)));
    for (const node of named) {
      if (ids.has(toHex(node.id)) || this.#asked.has(addressKey(node)) || equalBytes(node.id, this.#rpc.id)) continue;
      ids.add(toHex(node.id));
      this.#known.push(node);
    }
    this.#known.sort((a, b) => byDistance(a.id, b.id, this.#target));
    this.#known.splice(this.#rpc.k);
  }
}

/** Negative when `a` is nearer to `target` than `b` is. */
function byDistance(a: Uint8Array, b: Uint8Array, target: Uint8Array): number {
  const n = target.findIndex((_, n) => a[n] !== b[n]);
  return n < 0 ? 0 : (a[n]! ^ target[n]!) - (b[n]! ^ target[n]!);
}
