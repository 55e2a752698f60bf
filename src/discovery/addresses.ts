/** Peer addresses as trackers and nodes write them. */
import ipaddr from "ipaddr.js";
import { integerWithin } from "../bytes/bencode.ts";
import type { SocketAddress } from "../ports.ts";
import { shortText } from "./bencode.ts";

/** Most peers taken from one answer; trackers send 50–200, and a swarm connects to fewer. */
const MAX_PEERS_PER_ANSWER = 500;

/** Bytes of one compact IPv4 peer (BEP 23). */
export const COMPACT4_BYTES = 6;

/** Bytes of one compact IPv6 peer (BEP 7). */
export const COMPACT6_BYTES = 18;

/** Address ranges (as ipaddr.js names them) that no TCP peer can have. */
const UNUSABLE = new Set(["unspecified", "broadcast", "multicast"]);

/** `host` as the runtimes write it (IPv6 shortened, IPv4 in IPv6 as IPv4); null when it is not a literal address. */
export function canonicalHost(host: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) return host;
  if (!ipaddr.IPv6.isValid(host)) return null;
  return ipaddr.process(host.replace(/%.*$/, "")).toString();
}

/** Whether a peer could listen there: a port, and an address that is neither unspecified nor for many. */
export function isUsable(address: SocketAddress): boolean {
  if (address.port < 1 || address.port > 65535) return false;
  const host = canonicalHost(address.host);
  return host !== null && !UNUSABLE.has(ipaddr.parse(host).range());
}

/** Whether a literal address can be reached from the public network. */
export function isPublicHost(host: string): boolean {
  const literal = canonicalHost(host);
  return literal !== null && ipaddr.parse(literal).range() === "unicast";
}

/** Whether `hostname` (of a URL) names this machine or its surroundings rather than the public network. */
export function isLocalName(hostname: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  const host = canonicalHost(name);
  return host !== null && ipaddr.parse(host).range() !== "unicast";
}

/** One key an address: `host:port`, with brackets around IPv6. */
export function addressKey(address: SocketAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Reads `host:port` or `[v6]:port`, a name or an address; null when it is neither. */
export function parseHostPort(text: string): SocketAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65535) return null;
  return { host: (match[1] ?? match[2])!, port };
}

/** Peers of a compact string: 4 or 16 address bytes and a big-endian port each. A broken rest is ignored. */
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

/** The `peers` value of a tracker: compact (BEP 23) or a list of dictionaries (BEP 3). Names instead of addresses are left out. */
export function parsePeers(value: unknown): SocketAddress[] {
  if (value instanceof Uint8Array) return parseCompact(value, COMPACT4_BYTES);
  if (!Array.isArray(value)) return [];
  const peers: SocketAddress[] = [];
  for (const entry of value.slice(0, MAX_PEERS_PER_ANSWER) as unknown[]) {
    if (typeof entry !== "object" || entry === null || !("ip" in entry) || !("port" in entry)) continue;
    const host = canonicalHost(shortText(entry.ip, 64) ?? "");
    const port = integerWithin(entry.port, 1, 65535);
    if (host !== null && port !== null && isUsable({ host, port })) peers.push({ host, port });
  }
  return peers;
}
