/** Saying in the local networks that a device is here: SSDP's advertisement and its answers to searches (UPnP Device Architecture 1.0, section 1; for IPv6, 1.1, annex A). */
import { Allowance, Allowances } from "../bytes/allowance.ts";
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import type { InterfaceAddress, SocketAddress, Timer, UdpSocket } from "../ports.ts";
import { VERSION } from "../version.ts";
import { hostInUrl, isNear, localNetworks, localNetworks6 } from "./near.ts";
import { GROUP, GROUPS6, readFields, type SsdpPorts } from "./ssdp.ts";

/** How long control points believe an advertisement, s: the least that the standard advises. */
const MAX_AGE_S = 1800;
/** Advertised again after this, ms: datagrams get lost, so several times before it is out of date. */
const REPEAT_MS = 600_000;
/** Time between two checks of the interfaces of this machine, ms: laptops move. */
const LOOK_EVERY_MS = 60_000;
/** Longest delay of an answer, ms; searches that allow more are answered within this, too. */
const MAX_DELAY_MS = 3000;
/** Answers that wait for their time, and those for one machine. One search has at most as many as there are targets: five. */
const MAX_WAITING = 256;
const MAX_WAITING_PER_HOST = 32;
/** Longest search read, bytes: real ones have some hundred. */
const MAX_SEARCH_BYTES = 2048;
/** Searches of one machine that are answered, per second, and saved up: control points repeat theirs two or three times. */
const SEARCHES_PER_SECOND = 5;
const SEARCHES_AT_ONCE = 20;
/** Machines whose searches are counted. */
const MAX_SENDERS = 256;
/** The same for all machines together: a sender may use any address of its network. */
const ALL_SEARCHES_PER_SECOND = 50;
const ALL_SEARCHES_AT_ONCE = 100;

/** The device that is announced. */
export interface AnnouncedDevice {
  /** Unique Device Name, `uuid:…`. */
  readonly udn: string;
  /** Types of the device and of its services, `urn:…`. */
  readonly types: readonly string[];
  /** Where its description is, on each address of this machine. */
  readonly port: number;
  readonly path: string;
  /** Where it listens: one address of this machine; "0.0.0.0": all of IPv4; "::": all. */
  readonly host: string;
  /** Whether others may use it now; asked once a minute, and at each search. */
  readonly isOffered: () => boolean;
}

/** A network in which the device is announced. */
interface Place {
  readonly network: InterfaceAddress;
  readonly socket: UdpSocket;
  /** -Infinity: nobody believes that it is here. */
  announcedAtMs: number;
}

/** Announces a device until it is closed. */
export class SsdpAnnouncer {
  readonly #ports: SsdpPorts;
  readonly #device: AnnouncedDevice;
  /** By this machine's address. */
  readonly #places = new Map<string, Place>();
  /** And the machines that they are for. */
  readonly #waiting = new Map<Timer, string>();
  readonly #searches: Allowances;
  readonly #all: Allowance;
  #timer: Timer | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** A fault costs one announcement or answer. */
  readonly #failed = (error: unknown) =>
    this.#ports.log.log("error", "a fault of the engine: the device was not announced", faultFields(error));

  constructor(ports: SsdpPorts, device: AnnouncedDevice) {
    this.#ports = ports;
    this.#device = device;
    this.#searches = new Allowances({
      perSecond: SEARCHES_PER_SECOND,
      most: SEARCHES_AT_ONCE,
      limit: MAX_SENDERS,
      nowMs: () => ports.clock.monotonic(),
    });
    this.#all = new Allowance(ALL_SEARCHES_PER_SECOND, ALL_SEARCHES_AT_ONCE, ports.clock.monotonic());
    this.#look();
  }

  /** Says goodbye; resolves when that is sent. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const timer of this.#waiting.keys()) timer.cancel();
    await this.#looking;
    await Promise.all([...this.#places.values()].map(async (place) => {
      if (place.announcedAtMs !== -Infinity) await this.#notify(place, "ssdp:byebye");
      place.socket.close();
    }));
  }

  /** Opens sockets on new interfaces, closes those of interfaces that are gone, and advertises where it is time to. */
  #look(): void {
    this.#looking = this.#visit().catch(this.#failed).then(() => {
      if (!this.#isClosed) this.#timer = this.#ports.clock.setTimeout(() => this.#look(), LOOK_EVERY_MS);
    });
  }

  async #visit(): Promise<void> {
    const { clock } = this.#ports;
    const networks = this.#networks();
    for (const [own, { socket }] of this.#places) {
      if (networks.some((other) => other.host === own)) continue;
      socket.close();
      this.#places.delete(own);
    }
    for (const own of networks) {
      const place = this.#places.get(own.host) ?? await this.#open(own);
      const nowMs = clock.monotonic();
      if (place === null || this.#isClosed) continue;
      if (!this.#device.isOffered()) {
        if (place.announcedAtMs !== -Infinity) await this.#notify(place, "ssdp:byebye");
        place.announcedAtMs = -Infinity;
      } else if (nowMs - place.announcedAtMs >= REPEAT_MS) {
        place.announcedAtMs = nowMs;
        await this.#notify(place, "ssdp:alive");
      }
    }
  }

  /** The networks in which the device listens. */
  #networks(): readonly InterfaceAddress[] {
    const { network } = this.#ports;
    const { host } = this.#device;
    if (host === "0.0.0.0") return localNetworks(network);
    if (host === "::") return [...localNetworks(network), ...localNetworks6(network)];
    return network.interfaces().filter((own) => own.host === host && !own.loopback);
  }

  /** Null where the port is taken by a program that does not share it. */
  async #open(network: InterfaceAddress): Promise<Place | null> {
    const groups = network.family === 4
      ? { multicastGroup: GROUP.host, multicastInterface: network.host }
      : { host: "::", multicastGroup: GROUPS6.map(({ host }) => host), multicastInterface: `::%${network.name}` };
    const socket = await this.#ports.udp.bind({ port: GROUP.port, ...groups }).catch((error) => {
      this.#ports.log.log("debug", "televisions can't be notified of this engine", { network: network.host, error });
      return null;
    });
    if (socket === null) return null;
    const place = { network, socket, announcedAtMs: -Infinity };
    this.#places.set(network.host, place);
    const hear = (data: Uint8Array, from: SocketAddress) => {
      // Each socket hears the searches of all networks.
      if (data.length > MAX_SEARCH_BYTES || !isNear(from.host, [network])) return;
      const search = readSearch(new TextDecoder().decode(data));
      if (search === null || !this.#mayAsk(from.host) || !this.#device.isOffered()) return;
      this.#answer(place, search, from);
    };
    socket.onMessage(guarded(hear, this.#failed));
    return place;
  }

  #mayAsk(host: string): boolean {
    return this.#searches.take(host) && this.#all.take(1, () => this.#ports.clock.monotonic());
  }

  #answer(place: Place, { target, maxWaitMs }: SsdpSearch, to: SocketAddress): void {
    const wanted = this.#targets().filter(([name]) => target === "ssdp:all" || target === name);
    for (const [name, usn] of wanted) {
      if (!this.#hasRoomFor(to.host)) return;
      // All devices that a search finds would answer at the same moment.
      const send = () => {
        this.#waiting.delete(timer);
        const fields = [["ST", name], ["EXT", ""], ["USN", usn], ...this.#facts(place)] as const;
        return this.#send(place, to, "HTTP/1.1 200 OK", fields);
      };
      const delayMs = Math.random() * Math.min(maxWaitMs, MAX_DELAY_MS);
      const timer: Timer = this.#ports.clock.setTimeout(guarded(send, this.#failed), delayMs);
      this.#waiting.set(timer, to.host);
    }
  }

  #hasRoomFor(host: string): boolean {
    if (this.#waiting.size >= MAX_WAITING) return false;
    return [...this.#waiting.values()].filter((other) => other === host).length < MAX_WAITING_PER_HOST;
  }

  async #notify(place: Place, kind: "ssdp:alive" | "ssdp:byebye"): Promise<void> {
    const facts = kind === "ssdp:alive" ? this.#facts(place) : [];
    for (const group of place.network.family === 4 ? [GROUP] : GROUPS6) {
      const host = `${hostInUrl(group.host)}:${group.port}`;
      for (const [name, usn] of this.#targets()) {
        const fields = [["HOST", host], ["NT", name], ["NTS", kind], ["USN", usn], ...facts] as const;
        await this.#send(place, group, "NOTIFY * HTTP/1.1", fields);
      }
    }
  }

  #send(place: Place, to: SocketAddress, first: string, fields: readonly (readonly [string, string])[]): Promise<void> {
    const lines = [first, ...fields.map(([name, value]) => `${name}: ${value}`), "", ""];
    return place.socket.send(new TextEncoder().encode(lines.join("\r\n")), to);
  }

  #facts(place: Place): (readonly [string, string])[] {
    return [
      ["CACHE-CONTROL", `max-age=${MAX_AGE_S}`],
      ["SERVER", PRODUCT],
      ["LOCATION", `http://${hostInUrl(place.network.host)}:${this.#device.port}${this.#device.path}`],
    ];
  }

  /** What the device can be searched by, each with its Unique Service Name. */
  #targets(): (readonly [target: string, usn: string])[] {
    const { udn, types } = this.#device;
    return [[udn, udn], ...["upnp:rootdevice", ...types].map((type) => [type, `${udn}::${type}`] as const)];
  }
}

/** This program, as UPnP wants to have it: system, version of UPnP, product. */
export const PRODUCT = `POSIX UPnP/1.0 DLNADOC/1.50 millrace/${VERSION}`;

/** A search of a control point. */
export interface SsdpSearch {
  readonly target: string;
  /** The searcher waits at least this long for answers, ms. */
  readonly maxWaitMs: number;
}

/** Null for anything but a search that wants to be answered (section 1.2.2). */
export function readSearch(text: string): SsdpSearch | null {
  const { first, fields } = readFields(text);
  if (!/^M-SEARCH \* HTTP\/1\.[01]$/.test(first)) return null;
  const target = fields.get("st") ?? "";
  const seconds = fields.get("mx") ?? "";
  if (fields.get("man") !== '"ssdp:discover"' || target === "" || !/^\d{1,4}$/.test(seconds)) return null;
  return { target, maxWaitMs: Number(seconds) * 1000 };
}
