/** Addresses as SOCKS5 writes them (RFC 1928, section 5): a type, the host, the port. */
import ipaddr from "ipaddr.js";
import { canonicalHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { SocketAddress } from "../ports.ts";

const TYPE = { ipv4: 1, name: 3, ipv6: 4 } as const;

/** Longest name, bytes: its length has one. */
const MAX_NAME_BYTES = 255;

/** `address` with its type in front. Throws `invalid_argument` for a name that is too long. */
export function encodeAddress({ host, port }: SocketAddress): Uint8Array {
  const tail = [port >> 8, port & 255];
  const literal = canonicalHost(host);
  if (literal !== null) {
    const parsed = ipaddr.parse(literal);
    return Uint8Array.of(TYPE[parsed.kind()], ...parsed.toByteArray(), ...tail);
  }
  const name = new TextEncoder().encode(host);
  if (name.length === 0 || name.length > MAX_NAME_BYTES) {
    throw new MillraceError("invalid_argument", "that is no name of a host");
  }
  return Uint8Array.of(TYPE.name, name.length, ...name, ...tail);
}

/** The host of `type` in `bytes`, which has its length: a literal address, or a name. */
export function hostOf(type: number, bytes: Uint8Array): string {
  if (type === TYPE.name) return new TextDecoder().decode(bytes);
  return ipaddr.process(ipaddr.fromByteArray([...bytes]).toString()).toString();
}

/** What a datagram from a proxy says of its sender, and where its content begins; null when it is damaged or a fragment. */
export function decodeDatagram(bytes: Uint8Array): { readonly from: SocketAddress; readonly contentAt: number } | null {
  const [, , fragment, type] = bytes;
  if (bytes.length < 5 || fragment !== 0) return null;
  const isName = type === TYPE.name;
  const length = isName ? bytes[4]! : type === TYPE.ipv4 ? 4 : type === TYPE.ipv6 ? 16 : null;
  if (length === null) return null;
  const at = isName ? 5 : 4;
  const contentAt = at + length + 2;
  if (bytes.length < contentAt) return null;
  const port = bytes[contentAt - 2]! * 256 + bytes[contentAt - 1]!;
  return { from: { host: hostOf(type!, bytes.subarray(at, at + length)), port }, contentAt };
}
