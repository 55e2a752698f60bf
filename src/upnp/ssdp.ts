/** Looking for devices in the local network: the search of SSDP (UPnP Device Architecture 1.1, section 1.3; IPv6: annex A). */
import { sleep } from "../bytes/deadline.ts";
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import type { Clock, InterfaceAddress, Logger, NetworkPort, SocketAddress, UdpPort, UdpSocket } from "../ports.ts";
import { hostInUrl, isNear, localNetworks, localNetworks6 } from "./near.ts";

/** Where searches and advertisements go over IPv4. */
export const GROUP: SocketAddress = { host: "239.255.255.250", port: 1900 };
/** The same over IPv6: groups of the link and the site, and the one in which GUPnP 1.6 is when it has another address than one of the link. */
export const GROUPS6: readonly SocketAddress[] = ["ff02::c", "ff05::c", "ff0e::c"].map((host) => {
  return { host, port: GROUP.port };
});
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

/** Whose answers are wanted. */
export interface SearchScope {
  /** Addresses whose answers find a place even when other machines have taken all. */
  readonly expected?: readonly string[];
  /** Default: over both. */
  readonly family?: 4 | 6;
}

/**
 * Searches once on every interface with a network of others, for `target` (a type of devices or services). Only answers from
 * those networks that name a description on the machine that answered. Takes 1.3 s; rejects with the signal's reason.
 */
export async function searchDevices(
  ports: SsdpPorts,
  target: string,
  signal: AbortSignal,
  { expected = [], family }: SearchScope = {},
): Promise<SsdpAnswer[]> {
  /** By machine and name, so that no machine can answer in the name of another's device. */
  const found = new Map<string, SsdpAnswer>();
  const hasRoomFor = (host: string) => {
    if (found.size >= (expected.includes(host) ? 2 : 1) * MAX_FOUND) return false;
    const inUrl = hostInUrl(host);
    return [...found.values()].filter(({ location }) => location.hostname === inUrl).length < MAX_FOUND_PER_HOST;
  };
  const networks = [
    ...family === 6 ? [] : localNetworks(ports.network),
    ...family === 4 ? [] : localNetworks6(ports.network),
  ];
  const bound = await Promise.allSettled(
    networks.map(async (own) => ({ own, socket: await searchSocket(ports, own) })),
  );
  const sockets = bound.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  if (sockets.length === 0) return [];
  try {
    const hear = (data: Uint8Array, from: SocketAddress) => {
      if (data.length > MAX_ANSWER_BYTES || !isNear(from.host, networks) || !hasRoomFor(from.host)) return;
      const answer = readAnswer(new TextDecoder().decode(data), target, from.host);
      if (answer !== null) found.set(`${from.host} ${answer.usn}`, answer);
    };
    const failed = (error: unknown) =>
      ports.log.log("error", "a fault of the engine: a device's answer was not read", faultFields(error));
    for (const { socket } of sockets) socket.onMessage(guarded(hear, failed));
    const ask = (group: SocketAddress) => {
      const host = `${hostInUrl(group.host)}:${group.port}`;
      return new TextEncoder().encode(
        `M-SEARCH * HTTP/1.1\r\nHOST: ${host}\r\nMAN: "ssdp:discover"\r\nMX: ${MAX_WAIT_SECONDS}\r\nST: ${target}\r\n\r\n`,
      );
    };
    for (const waitMs of [REPEAT_MS, SEARCH_MS - REPEAT_MS]) {
      await Promise.all(
        sockets.flatMap(({ own, socket }) =>
          (own.family === 4 ? [GROUP] : GROUPS6).map((group) => socket.send(ask(group), group))
        ),
      );
      await sleep(ports.clock, waitMs, signal);
    }
  } finally {
    for (const { socket } of sockets) socket.close();
  }
  return [...found.values()];
}

/**
 * A socket for searches in one network. Over IPv6 it has our address there: devices would reply to one of the link, from one of
 * the link, which is not that of their description.
 */
function searchSocket({ udp }: SsdpPorts, { family, host, name }: InterfaceAddress): Promise<UdpSocket> {
  return udp.bind(
    family === 4
      ? { multicastGroup: GROUP.host, multicastInterface: host }
      : { host, multicastGroup: GROUPS6[0]!.host, multicastInterface: `::%${name}` },
  );
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
    return location.protocol === "http:" && location.hostname === hostInUrl(sender) ? { usn, location } : null;
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
