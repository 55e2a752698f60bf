/** IP endpoints as they appear in `ut_pex` and `yourip`. */
import type { SocketAddress } from "../ports.ts";

/** `host:port`, IPv6 in brackets, as a SocketAddress; null when it is malformed or the port is 0. */
export function parseEndpoint(text: string): SocketAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const port = Number(match[3]);
  if (port === 0 || port > 65535) return null;
  return { host: (match[1] ?? match[2])!, port };
}

/** The inverse of `parseEndpoint`. */
export function formatEndpoint(address: SocketAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** The 4 or 16 bytes of a literal address (an IPv4-mapped IPv6 address gives 4); null for anything else. */
export function addressBytes(host: string): Uint8Array | null {
  if (!host.includes(":")) {
    const parts = host.split(".");
    if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) return null;
    return Uint8Array.from(parts, Number);
  }
  // The URL parser knows every spelling of an IPv6 address and returns the canonical one: at most one "::".
  let canonical: string;
  try {
    canonical = new URL(`http://[${host.split("%")[0]}]`).hostname.slice(1, -1);
  } catch {
    return null;
  }
  const [head = "", tail] = canonical.split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const groups = [...before, ...new Array<string>(8 - before.length - after.length).fill("0"), ...after];
  const bytes = new Uint8Array(16);
  groups.forEach((group, i) => {
    const value = parseInt(group, 16);
    bytes[2 * i] = value >> 8;
    bytes[2 * i + 1] = value & 0xff;
  });
  const mapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  return mapped ? bytes.slice(12) : bytes;
}

/** The literal address of 4 or 16 bytes; null for another length. */
export function addressText(bytes: Uint8Array): string | null {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return null;
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i]! << 8) | bytes[i + 1]!).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
