/** Routers that map ports by UPnP: Internet Gateway Device 1 and 2, services WANIPConnection and WANPPPConnection. */
import { deadline } from "../bytes/deadline.ts";
import { canonicalHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, NetworkPort } from "../ports.ts";
import { askDevice } from "../upnp/http.ts";
import { isNear, localNetworks } from "../upnp/near.ts";
import { type ServiceAddress, servicesOf } from "../upnp/services.ts";
import { callAction, upnpErrorOf } from "../upnp/soap.ts";
import { searchDevices, type SsdpPorts } from "../upnp/ssdp.ts";
import { readInTurn, readXml } from "../upnp/xml.ts";
import { type Gateway, LIFETIME_S, type MappedPort, type PortToMap } from "./gateway.ts";

/** Devices of version 2 answer a search for version 1 (UPnP Device Architecture 1.1, 1.3.2), but some do not. */
const TARGETS = [1, 2].map((version) => `urn:schemas-upnp-org:device:InternetGatewayDevice:${version}`);
const SERVICE = /^urn:schemas-upnp-org:service:WAN(?:IP|PPP)Connection:\d{1,2}$/;
/**
 * Most descriptions read of one machine: routers of both versions have one for each. Besides those of the routers that the
 * system knows, this many are read: a network has one or two routers; more are pretenders.
 */
const MAX_DEVICES_PER_HOST = 2;
const MAX_OTHER_DEVICES = 4;
/** Most connections of one device that are tried. */
const MAX_SERVICES = 4;
/** Deadline of each request, ms: routers are slow. */
const REQUEST_MS = 3000;
/** Errors of AddPortMapping: the router makes only permanent mappings; another machine has the port. */
const PERMANENT_ONLY = 725;
const CONFLICT = 718;
/** How many other external ports are tried when ours is taken. */
const OTHER_PORTS = 2;
/** Name of the mapping in the router's list. */
const DESCRIPTION = "millrace";

/** What the search needs of the machine. */
export type IgdPorts = SsdpPorts & { readonly fetch: typeof fetch };

/** A router's connection to the internet. */
export class IgdGateway implements Gateway {
  readonly protocol = "UPnP";
  readonly host: string;
  readonly #fetch: typeof fetch;
  readonly #clock: Clock;
  readonly #service: ServiceAddress;
  readonly #client: string;
  readonly #random: () => number;
  /** The external port that each of our ports got before. */
  readonly #external = new Map<string, number>();

  /** `client`: this machine's address in the router's network. */
  constructor(
    ports: { readonly fetch: typeof fetch; readonly clock: Clock },
    service: ServiceAddress,
    client: string,
    random: () => number = Math.random,
  ) {
    this.#fetch = ports.fetch;
    this.#clock = ports.clock;
    this.#service = service;
    this.#client = client;
    this.#random = random;
    this.host = service.controlUrl.hostname;
  }

  async map(wanted: PortToMap, signal: AbortSignal): Promise<MappedPort> {
    const { protocol, port } = wanted;
    const key = `${protocol} ${port}`;
    const candidates = [this.#external.get(key) ?? port];
    for (let i = 0; i < OTHER_PORTS; i++) candidates.push(20_000 + Math.floor(40_000 * this.#random()));
    let refusal: unknown = null;
    for (const externalPort of candidates) {
      try {
        const lifetimeMs = await this.#add(wanted, externalPort, signal);
        this.#external.set(key, externalPort);
        return { externalPort, externalHost: await this.#address(signal), lifetimeMs };
      } catch (error) {
        refusal = error;
        if (upnpErrorOf(error) !== CONFLICT) break;
      }
    }
    throw refusal;
  }

  async unmap({ protocol }: PortToMap, { externalPort }: MappedPort, signal: AbortSignal): Promise<void> {
    await this.#call("DeletePortMapping", {
      NewRemoteHost: "",
      NewExternalPort: String(externalPort),
      NewProtocol: protocol.toUpperCase(),
    }, signal);
  }

  /** Adds a mapping; returns its lifetime, ms. */
  async #add({ protocol, port }: PortToMap, externalPort: number, signal: AbortSignal): Promise<number> {
    for (const seconds of [LIFETIME_S, 0]) {
      try {
        await this.#call("AddPortMapping", {
          NewRemoteHost: "",
          NewExternalPort: String(externalPort),
          NewProtocol: protocol.toUpperCase(),
          NewInternalPort: String(port),
          NewInternalClient: this.#client,
          NewEnabled: "1",
          NewPortMappingDescription: DESCRIPTION,
          NewLeaseDuration: String(seconds),
        }, signal);
        return seconds === 0 ? Infinity : 1000 * seconds;
      } catch (error) {
        if (seconds === 0 || upnpErrorOf(error) !== PERMANENT_ONLY) throw error;
      }
    }
    throw new MillraceError("internal", "unreachable");
  }

  async #address(signal: AbortSignal): Promise<string | null> {
    try {
      const said = await this.#call("GetExternalIPAddress", {}, signal);
      const host = canonicalHost(said("NewExternalIPAddress"));
      return host === "0.0.0.0" ? null : host;
    } catch (error) {
      if (signal.aborted) throw error;
      return null;
    }
  }

  async #call(action: string, args: Readonly<Record<string, string>>, signal: AbortSignal) {
    const limit = deadline(this.#clock, REQUEST_MS, signal, () => {
      return new MillraceError("timeout", `the router ${this.host} does not answer ${action}`);
    });
    try {
      return await callAction(this.#fetch, this.#service, action, args, limit.signal);
    } finally {
      limit.cancel();
    }
  }
}

/**
 * The connections of the routers in this machine's networks, first those of `routers`: addresses that the system knows.
 * Takes some seconds; rejects with the signal's reason.
 */
export async function findIgds(
  ports: IgdPorts,
  routers: readonly string[],
  signal: AbortSignal,
): Promise<IgdGateway[]> {
  const scope = { expected: routers, family: 4 } as const;
  const answers = (await Promise.all(TARGETS.map((target) => searchDevices(ports, target, signal, scope)))).flat();
  const locations = new Map(answers.map(({ location }) => [location.href, location]));
  const found = await Promise.all(
    worthAsking([...locations.values()], routers).map(async (location) => {
      const client = clientFor(ports.network, location.hostname);
      if (client === null) return [];
      const services = await servicesAt(ports, location, connectionsOf, signal);
      return services.map((service) => new IgdGateway(ports, service, client));
    }),
  );
  return found.flat();
}

/** What `pick` takes of the description at `location`; nothing of a device without a proper one. Rejects with the signal's reason. */
export async function servicesAt(
  ports: Pick<IgdPorts, "fetch" | "clock">,
  location: URL,
  pick: (text: string, location: URL) => readonly ServiceAddress[],
  signal: AbortSignal,
): Promise<readonly ServiceAddress[]> {
  const limit = deadline(ports.clock, REQUEST_MS, signal);
  try {
    const { status, text } = await askDevice(ports.fetch, location, {}, limit.signal);
    return status === 200 ? await readInTurn(() => pick(text, location), limit.signal) : [];
  } catch (error) {
    if (signal.aborted) throw error;
    if (!(error instanceof MillraceError)) throw error;
    return [];
  } finally {
    limit.cancel();
  }
}

/** Those of the known routers first, then some of others. */
export function worthAsking(locations: readonly URL[], routers: readonly string[]): URL[] {
  const few = [...Map.groupBy(locations, ({ hostname }) => hostname).values()]
    .flatMap((ofHost) => ofHost.slice(0, MAX_DEVICES_PER_HOST));
  const isKnown = ({ hostname }: URL) => routers.includes(hostname);
  return [...few.filter(isKnown), ...few.filter((location) => !isKnown(location)).slice(0, MAX_OTHER_DEVICES)];
}

/** The connections that a description at `location` lists. Throws `protocol_violation` for anything but XML. */
export function connectionsOf(text: string, location: URL): readonly ServiceAddress[] {
  const { services } = servicesOf(readXml(text), location);
  return services.filter(({ type }) => SERVICE.test(type)).slice(0, MAX_SERVICES);
}

/** This machine's address in the network that `host` is in; null when there is none. */
export function clientFor(network: Pick<NetworkPort, "interfaces">, host: string): string | null {
  return localNetworks(network).find((own) => isNear(host, [own]))?.host ?? null;
}
