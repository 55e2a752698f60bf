/**
 * Ids of DHT nodes that fit their address (BEP 42). Nodes that check them give others no place in their tables, so that an
 * owner of a few addresses can't choose where in the DHT it stands.
 */
import ipaddr from "ipaddr.js";
import { type Family, familyOf, NODE_ID_BYTES } from "./dht-contacts.ts";
import { ExternalAddresses } from "./external-addresses.ts";

/** The bits of an address that an id depends on (BEP 42): with IPv6, those of its /64. */
const MASKS = {
  ipv4: [0x03, 0x0f, 0x3f, 0xff],
  ipv6: [0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3f, 0x7f, 0xff],
} as const;

/** Bits of an id that follow from its address: two bytes, and those of this mask in the third. */
const THIRD_BYTE_MASK = 0xf8;

/** CRC-32C (Castagnoli), reflected. */
const CASTAGNOLI = 0x82f63b78;

/**
 * Shortest time between two changes of our id, ms. A machine with two outside addresses is seen at both in turn, and each
 * change sorts the table again and looks up the nodes near the new id.
 */
const CHANGE_EVERY_MS = 60 * 60_000;

/** A random id that fits `host`, a literal address. */
export function nodeIdFor(host: string): Uint8Array {
  const id = crypto.getRandomValues(new Uint8Array(NODE_ID_BYTES));
  const prefix = prefixFor(host, id.at(-1)!);
  id.set(prefix.subarray(0, 2));
  id[2] = prefix[2]! & THIRD_BYTE_MASK | id[2]! & ~THIRD_BYTE_MASK;
  return id;
}

/** True when the id fits the literal address. */
export function fitsAddress(id: Uint8Array, host: string): boolean {
  const prefix = prefixFor(host, id.at(-1)!);
  return id[0] === prefix[0] && id[1] === prefix[1] && ((id[2]! ^ prefix[2]!) & THIRD_BYTE_MASK) === 0;
}

/** The CRC of an address, with three bits of an id's last byte. */
function prefixFor(host: string, last: number): Uint8Array {
  const address = ipaddr.process(host);
  const bytes = address.toByteArray();
  const masked = MASKS[address.kind()].map((mask, i) => bytes[i]! & mask);
  masked[0]! |= (last & 7) << 5;
  const prefix = new Uint8Array(4);
  new DataView(prefix.buffer).setUint32(0, crc32c(masked));
  return prefix;
}

/** Few bytes, rarely: no table. */
function crc32c(bytes: readonly number[]): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ CASTAGNOLI : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** The id of our node in one DHT. It follows the address at which others see us. */
export class OwnNodeId {
  readonly #family: Family;
  readonly #nowMs: () => number;
  #value: Uint8Array;
  #changedMs = -Infinity;
  /** What nodes of the DHT say counts here alone: it must not make the engine take an address for its own. */
  #seen = new ExternalAddresses();

  /** `value`: the id of the last run, or a random one. It stays until the outside address is known. */
  constructor(family: Family, value: Uint8Array, nowMs: () => number) {
    this.#family = family;
    this.#value = value;
    this.#nowMs = nowMs;
  }

  /** The id. */
  get value(): Uint8Array {
    return this.#value;
  }

  /**
   * Notes that the node at `reporter` sees us at `host`; returns true when there is another id. It takes the word of three
   * networks that say the same since the last change.
   */
  seenAt(host: string, reporter: string): boolean {
    if (familyOf(host) !== this.#family || fitsAddress(this.#value, host)) return false;
    this.#seen.report(host, reporter);
    if (!this.#seen.has(host) || this.#nowMs() - this.#changedMs < CHANGE_EVERY_MS) return false;
    this.#value = nodeIdFor(host);
    this.#changedMs = this.#nowMs();
    this.#seen = new ExternalAddresses();
    return true;
  }
}
