/** Local service discovery messages (BEP 14). */
import { fromHex, toHex } from "../bytes/hex.ts";

/** Longest message read; BEP 14 requires less than 1400 bytes, so that it fits into one frame. */
const MAX_LSD_BYTES = 1_400;

/** Infohashes per message: each line takes 52 bytes. */
export const MAX_LSD_INFOHASHES = 20;

/** A search. */
export interface LsdMessage {
  /** TCP port of the sender's peer. */
  readonly port: number;
  readonly infohashes: readonly Uint8Array[];
  /** Lets the sender recognise its own messages. */
  readonly cookie: string | null;
}

/** The datagram; `host` is the multicast group with its port. */
export function encodeLsd(host: string, message: LsdMessage): Uint8Array {
  const hashes = message.infohashes.slice(0, MAX_LSD_INFOHASHES).map((hash) => `Infohash: ${toHex(hash)}\r\n`);
  const cookie = message.cookie === null ? "" : `cookie: ${message.cookie}\r\n`;
  const text = `BT-SEARCH * HTTP/1.1\r\nHost: ${host}\r\nPort: ${message.port}\r\n${hashes.join("")}${cookie}\r\n\r\n`;
  return new TextEncoder().encode(text);
}

/** Reads a datagram; null when it is not a search, has no port or names no infohash. Unknown headers are ignored. */
export function decodeLsd(datagram: Uint8Array): LsdMessage | null {
  if (datagram.length > MAX_LSD_BYTES) return null;
  const [first, ...lines] = new TextDecoder().decode(datagram).split(/\r?\n/);
  if (first === undefined || !/^BT-SEARCH \* HTTP\/1\.\d$/i.test(first)) return null;
  let port = 0;
  let cookie: string | null = null;
  const infohashes: Uint8Array[] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) continue;
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === "port" && /^\d{1,5}$/.test(value)) port = Number(value);
    else if (name === "cookie") cookie = value;
    else if (name === "infohash" && /^[0-9a-f]{40}$/i.test(value) && infohashes.length < MAX_LSD_INFOHASHES) {
      infohashes.push(fromHex(value));
    }
  }
  return port >= 1 && port <= 65535 && infohashes.length > 0 ? { port, infohashes, cookie } : null;
}
