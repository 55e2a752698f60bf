/** Peer addresses as map keys and as text. */
import type { SocketAddress } from "../../ports.ts";

/** `host:port`, with brackets around IPv6. */
export function addressKey(address: SocketAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Reads `host:port` or `[v6]:port`; null when it is neither or the port is not 1–65535. */
export function parseAddress(text: string): SocketAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const port = Number(match[3]);
  if (port < 1 || port > 65535) return null;
  return { host: (match[1] ?? match[2])!, port };
}

/** The form of an address by which a machine is counted: IPv4 (unwrapped when mapped into IPv6), or IPv6 in lower case. */
export function hostKey(host: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host);
  return mapped === null ? host.toLowerCase() : mapped[1]!;
}

/** Whether two peer ids are the same 20 bytes. */
export function samePeerId(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
