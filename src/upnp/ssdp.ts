/** Looking for devices in the local network: the search of SSDP (UPnP Device Architecture 1.1, section 1.3). */
import { sleep } from "../bytes/deadline.ts";
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import type { Clock, Logger, NetworkPort, SocketAddress, UdpPort, UdpSocket } from "../ports.ts";
import { isNear, localNetworks } from "./near.ts";

/** Where searches and advertisements go. */
export const GROUP: SocketAddress = { host: "239.255.255.250", port: 1900 };
/** Devices spread their responses over this time, s; the smallest that the standard allows. */
const MAX_WAIT_SECONDS = 1;
/** Until all have answered, ms: what they wait, and what the network takes. */
const SEARCH_MS = 1300;
/** The same search again, ms: datagrams get lost. */
const REPEAT_MS = 200;
/** Devices of one search, and of one machine: bridges to other speakers announce a dozen. More voices are not listened to. */
const MAX_FOUND = 64;
const MAX_FOUND_PER_HOST = 16;
/** Most lines of a message read: real ones have a dozen. */
const MAX_LINES = 64;
/** Longest answer read, bytes: real ones have some hundred. */
const MAX_ANSWER_BYTES = 4096;

/** What a device answered. */
export interface SsdpAnswer {
  /** Unique Service Name. */
  readonly usn: string;
  /** Address of its description, on the machine that answered. */
  readonly location: URL;
}

/** What a search needs of the machine. */
export interface SsdpPorts {
  readonly udp: UdpPort;
  readonly network: NetworkPort;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Searches once on every interface with an IPv4 network, for `target` (a device type). Only answers from those networks that
 * name a description on the machine that answered. Takes 1.3 s; rejects with the signal's reason. `expected`: addresses
 * whose answers find a place even when other machines have taken all.
 */
export async function searchDevices(
  ports: SsdpPorts,
  target: string,
  signal: AbortSignal,
  expected: readonly string[] = [],
): Promise<SsdpAnswer[]> {
  /** By machine and name, so that no machine can answer in the name of another's device. */
  const found = new Map<string, SsdpAnswer>();
  const hasRoomFor = (host: string) => {
    if (found.size >= (expected.includes(host) ? 2 : 1) * MAX_FOUND) return false;
    return [...found.values()].filter(({ location }) => location.hostname === host).length < MAX_FOUND_PER_HOST;
  };
  const hosts = localNetworks(ports.network);
  const bound = await Promise.allSettled(
    hosts.map(({ host }) => ports.udp.bind({ multicastGroup: GROUP.host, multicastInterface: host })),
  );
  const sockets: UdpSocket[] = bound.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  if (sockets.length === 0) return [];
  try {
    const hear = (data: Uint8Array, from: SocketAddress) => {
      if (data.length > MAX_ANSWER_BYTES || !isNear(from.host, hosts) || !hasRoomFor(from.host)) return;
      const answer = readAnswer(new TextDecoder().decode(data), target, from.host);
      if (answer !== null) found.set(`${from.host} ${answer.usn}`, answer);
    };
    const failed = (error: unknown) =>
      ports.log.log("error", "a fault of the engine: a device's answer was not read", faultFields(error));
    for (const socket of sockets) socket.onMessage(guarded(hear, failed));
    const question = new TextEncoder().encode(
      `M-SEARCH * HTTP/1.1\r\nHOST: ${GROUP.host}:${GROUP.port}\r\nMAN: "ssdp:discover"\r\nMX: ${MAX_WAIT_SECONDS}\r\nST: ${target}\r\n\r\n`,
    );
    for (const waitMs of [REPEAT_MS, SEARCH_MS - REPEAT_MS]) {
      await Promise.all(sockets.map((socket) => socket.send(question, GROUP)));
      await sleep(ports.clock, waitMs, signal);
    }
  } finally {
    for (const socket of sockets) socket.close();
  }
  return [...found.values()];
}

/** Null for anything but an answer about `target` from the machine that it names. */
export function readAnswer(text: string, target: string, sender: string): SsdpAnswer | null {
  const { first, fields } = readFields(text);
  if (!/^HTTP\/1\.[01] 200\b/.test(first)) return null;
  const [usn, st, at] = ["usn", "st", "location"].map((name) => fields.get(name) ?? "");
  if (!usn || usn.length > 256 || st !== target) return null;
  try {
    const location = new URL(at!);
    // No device sends the engine to another machine.
    return location.protocol === "http:" && location.hostname === sender ? { usn, location } : null;
  } catch {
    return null;
  }
}

/** The first line of a message, and its fields by lower-case name; of long messages some. */
export function readFields(text: string): { readonly first: string; readonly fields: ReadonlyMap<string, string> } {
  const [first = "", ...lines] = text.split(/\r?\n/, MAX_LINES);
  const fields = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return { first, fields };
}
