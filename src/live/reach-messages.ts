/**
 * The messages of `live1` by which members report which of them can be connected to. Big-endian, first byte the type.
 */
import { MillraceError } from "../errors.ts";
import type { SocketAddress } from "../ports.ts";
import type { Reach } from "../swarm/neighbours/reachability.ts";
import { addressBytes, addressText } from "../wire/address.ts";

/** First byte of REACH and PEERS. */
const TYPE = { reach: 6, peers: 7 } as const;

const STATES: readonly Reach[] = ["unknown", "open", "closed"];

/** Addresses in one PEERS: as many as a newcomer needs at first. */
export const MAX_TOLD_PEERS = 16;

/** What a member says about its own port, or about others that can be connected to. */
export type ReachMessage =
  /** REACH: `state u8 | ask u8`. `asks`: connect to the port of my handshake, to see whether that works. */
  | { readonly type: "reach"; readonly state: Reach; readonly asks: boolean }
  /** PEERS: `n u8`, then `n` times `length u8 | address | port u16`. */
  | { readonly type: "peers"; readonly addresses: readonly SocketAddress[] };

/** Encodes a message. Leaves out addresses that are no literal ones, and those beyond `MAX_TOLD_PEERS`. */
export function encodeReachMessage(message: ReachMessage): Uint8Array<ArrayBuffer> {
  if (message.type === "reach") {
    return Uint8Array.of(TYPE.reach, STATES.indexOf(message.state), message.asks ? 1 : 0);
  }
  const entries = message.addresses.flatMap(({ host, port }) => {
    const address = addressBytes(host);
    return address === null ? [] : [[address.length, ...address, port >> 8, port & 255]];
  });
  const told = entries.slice(0, MAX_TOLD_PEERS);
  return Uint8Array.from([TYPE.peers, told.length, ...told.flat()]);
}

/** Reads a message; null when it is of another type. Throws `protocol_violation` when it is malformed. */
export function decodeReachMessage(bytes: Uint8Array): ReachMessage | null {
  if (bytes[0] === TYPE.reach) {
    if (bytes.length !== 3) throw violation();
    return { type: "reach", state: STATES[bytes[1]!] ?? "unknown", asks: bytes[2] === 1 };
  }
  if (bytes[0] !== TYPE.peers) return null;
  const count = bytes[1] ?? 255;
  if (count > MAX_TOLD_PEERS) throw violation();
  const addresses: SocketAddress[] = [];
  let at = 2;
  for (let i = 0; i < count; i++) {
    const length = bytes[at] ?? 0;
    const end = at + 1 + length + 2;
    if ((length !== 4 && length !== 16) || end > bytes.length) throw violation();
    const host = addressText(bytes.subarray(at + 1, at + 1 + length));
    const port = bytes[end - 2]! << 8 | bytes[end - 1]!;
    if (host !== null && port > 0) addresses.push({ host, port });
    at = end;
  }
  if (at !== bytes.length) throw violation();
  return { type: "peers", addresses };
}

function violation(): MillraceError {
  return new MillraceError("protocol_violation", "a live1 message about addresses is malformed");
}
