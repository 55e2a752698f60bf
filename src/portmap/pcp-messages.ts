/** Messages of PCP (RFC 6887) and NAT-PMP (RFC 6886): UDP to port 5351 of a router, big-endian. */
import ipaddr from "ipaddr.js";
import { canonicalHost } from "../discovery/addresses.ts";
import type { PortToMap } from "./gateway.ts";

/** Port on which routers listen. */
export const PCP_PORT = 5351;

/** Longest message, bytes (RFC 6887 section 7). */
export const MAX_PCP_BYTES = 1100;

const PCP_VERSION = 2;
const PCP_MAP = 1;
/** Bit that is set in the opcode of an answer, in both protocols. */
const ANSWER = 0x80;
const PCP_HEADER_BYTES = 24;
const PCP_MAP_BYTES = 36;
const NONCE_BYTES = 12;
/** Numbers of the protocols (IANA). */
const PROTOCOL = { tcp: 6, udp: 17 } as const;
/** Opcodes of NAT-PMP. */
const PMP_ADDRESS = 0;
const PMP_MAP = { udp: 1, tcp: 2 } as const;

/** Why a router refused (RFC 6887 section 7.4). */
const PCP_REFUSALS = [
  "",
  "it speaks another version",
  "it does not allow that",
  "it could not read the request",
  "it does not support the request",
  "it does not support an option",
  "it could not read an option",
  "its own connection is down",
  "it has no resources left",
  "it does not support the protocol",
  "this machine has too many ports already",
  "it cannot give that port",
  "there is another router in between",
  "too many peers",
] as const;

/** The same for NAT-PMP (RFC 6886 section 3.5). */
const PMP_REFUSALS = [
  "",
  "it speaks another version",
  "it does not allow that",
  "its own connection is down",
  "it has no resources left",
  "it does not support the request",
] as const;

/** A router's answer. `refusal` is the reason in words, null when it agreed. */
export interface PcpAnswer {
  readonly refusal: string | null;
  /** Whether the router does not speak this protocol, so that another may work. */
  readonly isOtherVersion: boolean;
  readonly lifetimeS: number;
  readonly externalPort: number;
  readonly externalHost: string | null;
}

/** A MAP request of PCP; `lifetimeS` 0 removes the mapping. `client`: our address as the router sees it. */
export function encodePcpMap(
  { protocol, port }: PortToMap,
  facts: {
    readonly client: string;
    readonly nonce: Uint8Array;
    readonly externalPort: number;
    readonly lifetimeS: number;
  },
): Uint8Array {
  const bytes = new Uint8Array(PCP_HEADER_BYTES + PCP_MAP_BYTES);
  const view = new DataView(bytes.buffer);
  bytes[0] = PCP_VERSION;
  bytes[1] = PCP_MAP;
  view.setUint32(4, facts.lifetimeS);
  bytes.set(addressBytes(facts.client), 8);
  bytes.set(facts.nonce.subarray(0, NONCE_BYTES), 24);
  bytes[36] = PROTOCOL[protocol];
  view.setUint16(40, port);
  view.setUint16(42, facts.externalPort);
  bytes.set(addressBytes(ipaddr.IPv6.isValid(facts.client) ? "::" : "0.0.0.0"), 44);
  return bytes;
}

/** Reads the answer to a PCP MAP request; null for anything else. */
export function decodePcpMap(bytes: Uint8Array, { protocol, port }: PortToMap, nonce: Uint8Array): PcpAnswer | null {
  if (bytes.length > MAX_PCP_BYTES || bytes.length < 4 || (bytes[1]! & ANSWER) === 0) return null;
  // A router that speaks only NAT-PMP answers with its own version (RFC 6886 section 3.5).
  if (bytes[0] !== PCP_VERSION) return refused(PCP_REFUSALS[1], true);
  if (bytes.length < PCP_HEADER_BYTES || bytes[1] !== (ANSWER | PCP_MAP)) return null;
  const result = bytes[3]!;
  if (result === 1) return refused(PCP_REFUSALS[1], true);
  if (bytes.length < PCP_HEADER_BYTES + PCP_MAP_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let i = 0; i < NONCE_BYTES; i++) if (bytes[24 + i] !== nonce[i]) return null;
  if (bytes[36] !== PROTOCOL[protocol] || view.getUint16(40) !== port) return null;
  if (result !== 0) return refused(PCP_REFUSALS[result] ?? `it refuses (${result})`, false);
  return {
    refusal: null,
    isOtherVersion: false,
    lifetimeS: view.getUint32(4),
    externalPort: view.getUint16(42),
    externalHost: addressText(bytes.subarray(44, 60)),
  };
}

/** A NAT-PMP request for the router's address. */
export function encodePmpAddress(): Uint8Array {
  return Uint8Array.of(0, PMP_ADDRESS);
}

/** Reads the answer to it; null for anything else. */
export function decodePmpAddress(
  bytes: Uint8Array,
): { readonly refusal: string | null; readonly host: string | null } | null {
  const result = pmpResult(bytes, PMP_ADDRESS);
  if (result === null) return null;
  if (result !== 0) return { refusal: pmpRefusal(result), host: null };
  return bytes.length < 12 ? null : { refusal: null, host: ipv4Text(bytes.subarray(8, 12)) };
}

/** A NAT-PMP mapping request; `lifetimeS` 0 removes the mapping. */
export function encodePmpMap({ protocol, port }: PortToMap, externalPort: number, lifetimeS: number): Uint8Array {
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  bytes[1] = PMP_MAP[protocol];
  view.setUint16(4, port);
  view.setUint16(6, externalPort);
  view.setUint32(8, lifetimeS);
  return bytes;
}

/** Reads the answer to it; null for anything else. */
export function decodePmpMap(bytes: Uint8Array, { protocol, port }: PortToMap): PcpAnswer | null {
  const result = pmpResult(bytes, PMP_MAP[protocol]);
  if (result === null) return null;
  if (result !== 0) return refused(pmpRefusal(result), result === 1);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 16 || view.getUint16(8) !== port) return null;
  return {
    refusal: null,
    isOtherVersion: false,
    lifetimeS: view.getUint32(12),
    externalPort: view.getUint16(10),
    externalHost: null,
  };
}

function pmpResult(bytes: Uint8Array, opcode: number): number | null {
  if (bytes.length < 8 || bytes.length > MAX_PCP_BYTES || bytes[0] !== 0 || bytes[1] !== (ANSWER | opcode)) return null;
  return bytes[2]! << 8 | bytes[3]!;
}

function pmpRefusal(result: number): string {
  return PMP_REFUSALS[result] ?? `it refuses (${result})`;
}

function refused(refusal: string, isOtherVersion: boolean): PcpAnswer {
  return { refusal, isOtherVersion, lifetimeS: 0, externalPort: 0, externalHost: null };
}

/** The bytes of a literal address; of an IPv4 one, those of ::ffff:0:0/96 (RFC 6887 section 5). */
function addressBytes(host: string): Uint8Array {
  const address = ipaddr.parse(host);
  return Uint8Array.from((address instanceof ipaddr.IPv4 ? address.toIPv4MappedAddress() : address).toByteArray());
}

/** The literal address in 16 bytes; null for 0.0.0.0 and ::, which mean that the router does not know it. */
function addressText(bytes: Uint8Array): string | null {
  const host = canonicalHost(ipaddr.fromByteArray([...bytes]).toString());
  return host === "::" || host === "0.0.0.0" ? null : host;
}

/** The address as text; null for 0.0.0.0, which means that the router does not know it. */
function ipv4Text(bytes: Uint8Array): string | null {
  return bytes.every((byte) => byte === 0) ? null : bytes.join(".");
}
