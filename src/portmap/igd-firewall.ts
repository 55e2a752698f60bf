/**
 * Routers whose IPv6 firewall opens ports by UPnP: Internet Gateway Device 2, service WANIPv6FirewallControl. Most of them do so
 * only for the address that asks, and that is the one that the system chooses towards the router.
 */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { type ServiceAddress, servicesOf } from "../upnp/services.ts";
import { callAction } from "../upnp/soap.ts";
import { searchDevices } from "../upnp/ssdp.ts";
import { readXml } from "../upnp/xml.ts";
import { type Gateway, LIFETIME_S, type MappedPort, type PortToMap } from "./gateway.ts";
import { type IgdPorts, servicesAt, worthAsking } from "./igd-gateway.ts";

/** There is no other version. */
const SERVICE = "urn:schemas-upnp-org:service:WANIPv6FirewallControl:1";
/** Deadline of each request, ms: routers are slow. */
const REQUEST_MS = 3000;
/** Protocol numbers (IANA). */
const NUMBERS = { tcp: 6, udp: 17 } as const;

/** A router's firewall, for one address of this machine. */
export class IgdFirewall implements Gateway {
  readonly protocol = "UPnP";
  readonly host: string;
  readonly #fetch: typeof fetch;
  readonly #clock: Clock;
  readonly #service: ServiceAddress;
  readonly #client: string;
  /** The router's numbers of our pinholes, by protocol and port. */
  readonly #ids = new Map<string, string>();

  /** `client`: our address that is opened. */
  constructor(ports: Pick<IgdPorts, "fetch" | "clock">, service: ServiceAddress, client: string) {
    this.#fetch = ports.fetch;
    this.#clock = ports.clock;
    this.#service = service;
    this.#client = client;
    this.host = service.controlUrl.hostname.replace(/^\[|\]$/g, "");
  }

  /** Opens the port for everybody; what is open already, stays so for longer. */
  async map({ protocol, port }: PortToMap, signal: AbortSignal): Promise<MappedPort> {
    const said = await this.#call("AddPinhole", {
      RemoteHost: "",
      RemotePort: "0",
      InternalClient: this.#client,
      InternalPort: String(port),
      Protocol: String(NUMBERS[protocol]),
      LeaseTime: String(LIFETIME_S),
    }, signal);
    this.#ids.set(`${protocol} ${port}`, said("UniqueID"));
    return { externalPort: port, externalHost: this.#client, lifetimeMs: 1000 * LIFETIME_S };
  }

  async unmap({ protocol, port }: PortToMap, _mapped: MappedPort, signal: AbortSignal): Promise<void> {
    const key = `${protocol} ${port}`;
    const id = this.#ids.get(key);
    if (id === undefined) return;
    this.#ids.delete(key);
    await this.#call("DeletePinhole", { UniqueID: id }, signal);
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

/** The firewalls that answer in this machine's networks. Takes some seconds; rejects with the signal's reason. */
export async function findFirewalls(ports: IgdPorts, signal: AbortSignal): Promise<readonly ServiceAddress[]> {
  const answers = await searchDevices(ports, SERVICE, signal, { family: 6 });
  const locations = new Map(answers.map(({ location }) => [location.href, location]));
  const found = worthAsking([...locations.values()], []).map((at) => servicesAt(ports, at, firewallsOf, signal));
  return (await Promise.all(found)).flat();
}

/** The firewall that a description at `location` lists. Throws `protocol_violation` for anything but XML. */
function firewallsOf(text: string, location: URL): readonly ServiceAddress[] {
  return servicesOf(readXml(text), location).services.filter(({ type }) => type === SERVICE).slice(0, 1);
}
