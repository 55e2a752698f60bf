/** Peer addresses as trackers and nodes write them. */
import { upTo } from "../bytes/trim.ts";
import ipaddr from "ipaddr.js";
import { integerWithin } from "../bytes/bencode.ts";
import type { SocketAddress } from "../ports.ts";
import { shortText } from "./bencode.ts";

/** Most peers taken from one reply; trackers send 50–200, and a swarm connects to fewer. */
const MAX_PEERS_PER_ANSWER = 500;

/** Bytes of one compact IPv4 peer (BEP 23). */
export const COMPACT4_BYTES = 6;

/** Bytes of one compact IPv6 peer (BEP 7). */
export const COMPACT6_BYTES = 18;

/** Address ranges (as ipaddr.js names them) that no TCP peer can have. */
const UNUSABLE = new Set(["unspecified", "broadcast", "multicast"]);

/** `host` in the runtimes' notation (IPv6 shortened, IPv4 in IPv6 as IPv4); null when it is not a literal address. */
export function canonicalHost(host: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) return host;
  if (!ipaddr.IPv6.isValid(host)) return null;
  return ipaddr.process(upTo(host, "%")).toString();
}

/** True when a peer could listen there: it has a port and a unicast address. */
export function isUsable(address: SocketAddress): boolean {
  if (address.port < 1 || address.port > 65535) return false;
  const host = canonicalHost(address.host);
  return host !== null && !UNUSABLE.has(ipaddr.parse(host).range());
}

/** True for an IPv6 address of one link, which can't be dialled without its interface: Node and Bun name that after a `%`, Deno does not. */
export function isOfLink(host: string): boolean {
  return /^fe[89ab][0-9a-f]:/i.test(host);
}

/** The IPv6 range assigned to networks (IANA); addresses outside it have special uses. */
const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3") as [ipaddr.IPv6, number];

/** Well-known prefix of NAT64 (RFC 6052): networks without IPv4 reach public IPv4 addresses through it. */
const NAT64 = ipaddr.parseCIDR("64:ff9b::/96") as [ipaddr.IPv6, number];

/** IPv4-compatible (RFC 4291 §2.5.5.1) and IPv4-translated (RFC 2765) addresses. */
const IPV4_AT_END = ["::/96", "::ffff:0:0:0/96"].map((range) => ipaddr.parseCIDR(range) as [ipaddr.IPv6, number]);

/**
 * The IPv4 address contained in an IPv6 address, in any notation that a gateway may translate back: IPv4-compatible,
 * translated, NAT64, 6to4 (RFC 3056), Teredo (RFC 4380: the client's). Null when there is none.
 */
export function embeddedIpv4(host: string): string | null {
  const literal = canonicalHost(host);
  if (literal === null || !literal.includes(":")) return null;
  const address = ipaddr.IPv6.parse(literal);
  const bytes = address.toByteArray();
  if (address.range() === "6to4") return bytes.slice(2, 6).join(".");
  if (address.range() === "teredo") return bytes.slice(12).map((byte) => byte ^ 0xff).join(".");
  const special = address.range() === "unspecified" || address.range() === "loopback";
  const atEnd = address.match(NAT64) || (!special && IPV4_AT_END.some((range) => address.match(range)));
  return atEnd ? bytes.slice(12).join(".") : null;
}

/** True when a literal address is reachable from the public network, whatever this machine's subnets are (see `nearnessOf`). */
export function isPublicHost(host: string): boolean {
  const literal = canonicalHost(host);
  if (literal === null) return false;
  const address = ipaddr.parse(literal);
  if (address instanceof ipaddr.IPv4) return address.range() === "unicast";
  if (address.match(NAT64)) return isPublicHost(embeddedIpv4(literal)!);
  return address.range() === "unicast" && address.match(GLOBAL_UNICAST);
}

/** Prefix length of a public network that one party may easily own entirely. */
const NETWORK_BITS = { ipv4: 24, ipv6: 48 } as const;

/** Names the network of a public address (IPv4: /24, IPv6: /48); any other host counts as its own network. */
export function networkOf(host: string): string {
  const literal = canonicalHost(host);
  if (literal === null || !isPublicHost(literal)) return literal ?? host;
  const address = ipaddr.parse(literal);
  return address.toByteArray().slice(0, NETWORK_BITS[address.kind()] / 8).join(".");
}

/** True when `hostname` (of a URL) refers to this machine or its local network rather than the public network. */
export function isLocalName(hostname: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, "").toLowerCase().replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  return canonicalHost(name) !== null && !isPublicHost(name);
}

/** A name of a local network: without a dot, or of a domain that no server of the Internet knows (RFC 6762, 8375). */
const NEAR_NAME = /^[^.]+\.?$|\.(?:local|lan|internal|home\.arpa)\.?$/i;

/** True when `name`, which is no literal address, belongs to a local network rather than the public one. */
export function isNearName(name: string): boolean {
  return NEAR_NAME.test(name);
}

/** An address as a map key: `host:port`, with brackets around IPv6. */
export function addressKey(address: SocketAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Reads `host:port` or `[v6]:port`, with a name or an address; null when it is neither. */
export function parseHostPort(text: string): SocketAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65535) return null;
  return { host: (match[1] ?? match[2])!, port };
}

/** Peers of a compact string: 4 or 16 address bytes and a big-endian port each. An incomplete last entry is ignored. */
export function parseCompact(bytes: Uint8Array, entryBytes: typeof COMPACT4_BYTES | typeof COMPACT6_BYTES) {
  const peers: SocketAddress[] = [];
  const end = Math.min(bytes.length, MAX_PEERS_PER_ANSWER * entryBytes);
  for (let at = 0; at + entryBytes <= end; at += entryBytes) {
    const host = bytes.subarray(at, at + entryBytes - 2);
    const port = (bytes[at + entryBytes - 2]! << 8) | bytes[at + entryBytes - 1]!;
    const text = entryBytes === COMPACT4_BYTES ? host.join(".") : ipv6Text(host);
    const peer = { host: text, port };
    if (isUsable(peer)) peers.push(peer);
  }
  return peers;
}

function ipv6Text(bytes: Uint8Array): string {
  const parsed = ipaddr.fromByteArray([...bytes]);
  return ipaddr.process(parsed.toString()).toString();
}

/** A host name (RFC 1123); those that no resolver knows cost a look-up. */
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,126}\.?$/i;

/** The peers that a tracker lists. */
export interface ListedPeers {
  readonly peers: SocketAddress[];
  /** Those given by host name (BEP 3); nobody has looked them up. */
  readonly named: SocketAddress[];
}

/** The `peers` value of a tracker: compact (BEP 23) or a list of dictionaries (BEP 3). */
export function parsePeers(value: unknown): ListedPeers {
  if (value instanceof Uint8Array) return { peers: parseCompact(value, COMPACT4_BYTES), named: [] };
  const listed: ListedPeers = { peers: [], named: [] };
  if (!Array.isArray(value)) return listed;
  for (const entry of value.slice(0, MAX_PEERS_PER_ANSWER) as unknown[]) {
    if (typeof entry !== "object" || entry === null || !("ip" in entry) || !("port" in entry)) continue;
    const text = shortText(entry.ip, 253) ?? "";
    const port = integerWithin(entry.port, 1, 65535);
    if (port === null) continue;
    const host = canonicalHost(text);
    if (host === null) { if (HOST_NAME.test(text)) listed.named.push({ host: text, port }); }
    else if (isUsable({ host, port })) listed.peers.push({ host, port });
  }
  return listed;
}
