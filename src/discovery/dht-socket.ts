/**
 * The datagram socket that the DHT library expects (the part of node's `dgram` that it calls), over our UDP port. Every
 * datagram is checked before the library decodes it: replies must match a query of ours, queries are rate-limited, and
 * nobody may name addresses nearer than itself. Errors that the library throws on hostile fields are caught here.
 */
import { scanBencode } from "../bytes/bencode.ts";
import { concatBytes } from "../bytes/hex.ts";
import type { SocketAddress, UdpSocket } from "../ports.ts";
import { addressKey, isOfLink } from "./addresses.ts";
import { decodePeers, encodePeer, type Family, familyOf } from "./dht-contacts.ts";
import { type NearnessOf, type QueryRates, withoutNearer } from "./dht-guard.ts";

/** Longest message read. KRPC messages fit into one Ethernet frame; some nodes reply with a little more. */
const MAX_DATAGRAM_BYTES = 4_096;

/** Longest query: a `put` of 1000 bytes (BEP 44) and its fields. Bounded because we keep what a query stores. */
const MAX_QUERY_BYTES = 1_500;

/** Longest reply sent. The sender of a query may be forged, so a victim must not get much traffic from us. */
const MAX_ANSWER_BYTES = 1_300;

/** The deepest KRPC message (BEP 44 `v` in `r`) needs few levels; the values of 200 peers need the most values. */
const LIMITS = { maxDepth: 16, maxValues: 1_000 } as const;

/** Addresses from which replies are awaited, and queries per address; the library has 16 under way, for 2 s each. */
const MAX_ASKED = 1_024;
const MAX_ASKED_OF_ONE = 64;

type Listener = (...args: unknown[]) => void;

/** Dependencies of the socket besides its UDP port. */
export interface DhtSocketContext {
  readonly nearness: NearnessOf;
  readonly rates: QueryRates;
  /** The node at `reporter` sees us at `host` (BEP 42). */
  seenAt(host: string, reporter: string): void;
}

/** A socket as the DHT library uses it. */
export class DhtSocket {
  readonly #socket: UdpSocket;
  readonly #family: Family;
  readonly #context: DhtSocketContext;
  readonly #listeners = new Map<string, Listener[]>();
  /** Unanswered queries: the transactions per address; the oldest is dropped first. */
  readonly #asked = new Map<string, Set<string>>();
  /** True while listeners get a reply to a query of ours, which proves the sender's address. */
  isAnswer = false;
  /** True while listeners get a query of a node that replies to none (BEP 43). */
  isReadOnly = false;
  #closed = false;

  /** Datagrams of the other family are left to another one at the same port (BEP 32: there are two DHTs). */
  constructor(socket: UdpSocket, family: Family, context: DhtSocketContext) {
    this.#socket = socket;
    this.#family = family;
    this.#context = context;
    socket.onMessage((data, from) => this.#receive(data, from));
  }

  on(event: string, listener: Listener): this {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  address(): { address: string; family: string; port: number } {
    return { address: this.#socket.address.host, family: `IPv${this.#family}`, port: this.#socket.address.port };
  }

  /** Only reports that the socket is bound: our UDP port already is. */
  bind(): void {
    queueMicrotask(() => {
      if (!this.#closed) this.#emit("listening");
    });
  }

  send(
    data: Uint8Array,
    offset: number,
    length: number,
    port: number,
    host: string,
    sent: (error?: Error) => void,
  ): void {
    if (this.#closed) return;
    // The library may reuse its buffer before the port sends.
    let datagram: Uint8Array = data.slice(offset, offset + length);
    const { type, transaction } = frameOf(datagram);
    if (type === QUERY) {
      this.#note(addressKey({ host, port }), transaction);
    } else {
      datagram = withAddress(datagram, { host, port });
      if (datagram.length > MAX_ANSWER_BYTES) return sent();
    }
    this.#socket.send(datagram, { host, port }).then(() => sent(), (error) => sent(error));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
    queueMicrotask(() => this.#emit("close"));
  }

  #receive(data: Uint8Array, from: SocketAddress): void {
    if (this.#closed || data.length > MAX_DATAGRAM_BYTES || from.port === 0) return;
    // Nobody else can use an address of one link.
    if (familyOf(from.host) !== this.#family || isOfLink(from.host)) return;
    const key = addressKey(from);
    // A host that we did not ask can only send queries; above the rate limit its datagrams are not even read.
    const mayAnswer = this.#asked.has(key);
    if (!mayAnswer && !this.#mayAsk(data, from)) return;
    try {
      const { type, transaction, isReadOnly, ourAddress } = frameOf(data);
      this.isReadOnly = isReadOnly;
      this.isAnswer = type !== QUERY && this.#answered(key, transaction);
      if (!this.isAnswer && (type !== QUERY || (mayAnswer && !this.#mayAsk(data, from)))) return;
      const clean = this.isAnswer ? withoutNearer(data, from, this.#context.nearness) : data;
      this.#emit("message", clean, { address: from.host, port: from.port, size: clean.length });
      if (!this.isAnswer || ourAddress === null) return;
      for (const { host } of decodePeers([ourAddress], this.#family)) this.#context.seenAt(host, from.host);
    } catch {
      // Not KRPC, or a field of a type that the library does not expect (it calls methods on it): drop the datagram.
    } finally {
      this.isAnswer = false;
    }
  }

  #mayAsk(data: Uint8Array, from: SocketAddress): boolean {
    return data.length <= MAX_QUERY_BYTES && this.#context.rates.allows(from.host);
  }

  #note(key: string, transaction: string): void {
    const transactions = this.#asked.get(key) ?? new Set();
    this.#asked.delete(key);
    if (this.#asked.size >= MAX_ASKED) this.#asked.delete(this.#asked.keys().next().value!);
    this.#asked.set(key, transactions);
    if (transactions.size < MAX_ASKED_OF_ONE) transactions.add(transaction);
  }

  #answered(key: string, transaction: string): boolean {
    const transactions = this.#asked.get(key);
    if (!transactions?.delete(transaction)) return false;
    if (transactions.size === 0) this.#asked.delete(key);
    return true;
  }

  #emit(event: string, ...args: unknown[]): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(...args);
  }
}

/** KRPC `y` of a query (BEP 5). */
const QUERY = "q";

/** Ends the length of a byte string. */
const COLON = 0x3a;

/** The beginning of an encoded reply (BEP 5): its dictionary has `r` before all other keys of ours. */
const REPLY_START = new TextEncoder().encode("d1:r");

/** What is read of a KRPC message before the library gets it. */
interface Frame {
  /** `y` and `t`, as Latin-1. */
  readonly type: string;
  readonly transaction: string;
  /** Whether `ro` is set (BEP 43). */
  readonly isReadOnly: boolean;
  /** `ip`: our address and port as the sender sees them (BEP 42). */
  readonly ourAddress: Uint8Array | null;
}

/** Reads a message. Throws `protocol_violation` for anything that is not a bencoded dictionary. */
function frameOf(data: Uint8Array): Frame {
  const { spans } = scanBencode(data, LIMITS);
  const bytes = (key: string) => {
    const span = spans.get(key);
    return span === undefined ? null : data.subarray(span.start, Math.min(span.end, span.start + 64));
  };
  const text = (key: string) => String.fromCharCode(...bytes(key) ?? []);
  const ip = bytes("ip");
  const ourAddress = ip === null ? null : ip.subarray(ip.indexOf(COLON) + 1);
  return { type: text("y").slice(2), transaction: text("t"), isReadOnly: text("ro") === "i1e", ourAddress };
}

/** A reply that tells the other end its address (BEP 42). Other messages stay as they are. */
function withAddress(datagram: Uint8Array, to: SocketAddress): Uint8Array {
  if (!REPLY_START.every((byte, i) => datagram[i] === byte)) return datagram;
  const address = encodePeer(to);
  const field = new TextEncoder().encode(`d2:ip${address.length}:`);
  return concatBytes([field, address, datagram.subarray(1)]);
}
