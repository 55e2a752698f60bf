/**
 * Has the router's firewall let peers in to the IPv6 addresses of this machine: nothing is translated there, but most routers
 * pass nothing on that was not asked for. By PCP (RFC 6887), from each public address, at the router of its interface; where
 * nobody speaks that, by UPnP.
 */
import { deadline } from "../bytes/deadline.ts";
import { logFailure } from "../bytes/guarded-clock.ts";
import { isPublicHost } from "../discovery/addresses.ts";
import { hasCode } from "../errors.ts";
import type { Logger, Timer } from "../ports.ts";
import type { ServiceAddress } from "../upnp/services.ts";
import { CLOSE_MS, type Gateway, type MappedPort, type PortToMap, renewalMs, RETRY_MS } from "./gateway.ts";
import { findFirewalls, IgdFirewall } from "./igd-firewall.ts";
import type { IgdPorts } from "./igd-gateway.ts";
import { PcpGateway } from "./pcp-gateway.ts";

/**
 * Most addresses that are opened: a machine has one that lasts and, with privacy extensions (RFC 8981), one of each day that is
 * still in use.
 */
const MAX_ADDRESSES = 8;

/** What the pinholes need of the machine. */
export type PinholePorts = IgdPorts & { readonly log: Logger };

/** State of the firewall. */
export type PinholeState =
  | { readonly kind: "searching" }
  /** This machine has no public IPv6 address, or no router that it knows or that answers. */
  | { readonly kind: "unneeded" }
  /** Strangers reach our port at these addresses. */
  | {
    readonly kind: "open";
    readonly protocol: Gateway["protocol"];
    readonly router: string;
    readonly hosts: readonly string[];
  }
  | { readonly kind: "failed"; readonly reason: string };

/** An address of ours that is opened. */
interface Pinhole {
  readonly gateway: Gateway;
  held: readonly { readonly wanted: PortToMap; readonly mapped: MappedPort }[];
}

/** The pinholes of one engine. Runs until `close`. */
export class Pinholes {
  readonly #ports: PinholePorts;
  readonly #wanted: readonly PortToMap[];
  readonly #only: string | null;
  readonly #ending = new AbortController();
  /** By our address. */
  readonly #pinholes = new Map<string, Pinhole>();
  #state: PinholeState = { kind: "searching" };
  #timer: Timer | null = null;
  #running: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  /** Opens the ports `wanted`, the first of which must succeed, at the address `only`; null: at all of this machine. */
  constructor(ports: PinholePorts, wanted: readonly PortToMap[], only: string | null) {
    this.#ports = ports;
    this.#wanted = wanted;
    this.#only = only;
  }

  /** Whether strangers get in now. */
  get state(): PinholeState {
    return this.#state;
  }

  /** Begins. Resolves when the first attempt is over; never rejects. */
  start(): Promise<void> {
    return this.#running = this.#round();
  }

  /** Closes the pinholes. Resolves within 1.5 s. */
  close(): Promise<void> {
    return this.#closing ??= this.#shutDown();
  }

  async #shutDown(): Promise<void> {
    this.#ending.abort();
    this.#timer?.cancel();
    await this.#running;
    const limit = deadline(this.#ports.clock, CLOSE_MS);
    const all = [...this.#pinholes.values()].flatMap(({ gateway, held }) => held.map((one) => ({ gateway, ...one })));
    this.#pinholes.clear();
    await Promise.all(
      all.map(({ gateway, wanted, mapped }) =>
        gateway.unmap(wanted, mapped, limit.signal).catch((error) => {
          this.#ports.log.log("info", "a port stays open in the firewall until its time is over", {
            error: String(error),
          });
        })
      ),
    );
    limit.cancel();
  }

  async #round(): Promise<void> {
    const { signal } = this.#ending;
    let nextMs = RETRY_MS;
    try {
      nextMs = await this.#open(signal);
    } catch (error) {
      if (!signal.aborted) logFailure(this.#ports.log, "warn", "asking the firewall for a port failed", error);
    }
    if (signal.aborted) return;
    this.#timer = this.#ports.clock.setTimeout(() => void (this.#running = this.#round()), nextMs);
  }

  /** Opens or renews every address; returns the time until the next round, ms. */
  async #open(signal: AbortSignal): Promise<number> {
    const clients = await this.#clients();
    for (const host of this.#pinholes.keys()) if (!clients.has(host)) this.#pinholes.delete(host);
    const reasons: string[] = [];
    let leastMs = Infinity;
    let firewalls: readonly ServiceAddress[] | null = null;
    for (const [client, router] of clients) {
      const before = this.#pinholes.get(client)?.gateway;
      const isStill = before?.protocol === "UPnP" || before?.host === router;
      const byPcp = router === null ? [] : [new PcpGateway(this.#ports, { host: router, client })];
      let opened = await this.#openBy(isStill ? [before!] : byPcp, client, reasons, signal);
      if (opened === null) {
        firewalls ??= await findFirewalls(this.#ports, signal);
        const found = firewalls.map((service) => new IgdFirewall(this.#ports, service, client));
        opened = await this.#openBy(found, client, reasons, signal);
      }
      if (opened === null) this.#pinholes.delete(client);
      else leastMs = Math.min(leastMs, opened);
    }
    this.#become(this.#stateOf([...clients.values()].find((router) => router !== null) ?? null, reasons));
    return leastMs === Infinity ? RETRY_MS : renewalMs(leastMs);
  }

  #stateOf(router: string | null, reasons: readonly string[]): PinholeState {
    const first = this.#pinholes.values().next().value;
    if (first !== undefined) {
      const { protocol, host } = first.gateway;
      return { kind: "open", protocol, router: host, hosts: [...this.#pinholes.keys()] };
    }
    if (reasons.length > 0) return { kind: "failed", reason: reasons[0]! };
    if (router === null) return { kind: "unneeded" };
    return { kind: "failed", reason: `the router ${router} speaks neither PCP nor UPnP for IPv6` };
  }

  /** Opens the ports of one address at the first router that does so; returns how long they stay open, ms, or null. */
  async #openBy(
    gateways: readonly Gateway[],
    client: string,
    reasons: string[],
    signal: AbortSignal,
  ): Promise<number | null> {
    for (const gateway of gateways) {
      try {
        return await this.#openAt(client, gateway, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (!hasCode(error, "timeout")) reasons.push(error instanceof Error ? error.message : String(error));
      }
    }
    return null;
  }

  /** Opens the ports of one address; returns how long they stay open, ms. */
  async #openAt(client: string, gateway: Gateway, signal: AbortSignal): Promise<number> {
    const before = this.#pinholes.get(client);
    const pinhole: Pinhole = before?.gateway === gateway ? before : { gateway, held: [] };
    const held: { wanted: PortToMap; mapped: MappedPort }[] = [];
    for (const [i, wanted] of this.#wanted.entries()) {
      try {
        held.push({ wanted, mapped: await pinhole.gateway.map(wanted, signal) });
      } catch (error) {
        if (i === 0 || signal.aborted) throw error;
        this.#ports.log.log("info", "the firewall opens only some ports", { wanted, error: String(error) });
      } finally {
        // What was opened before an abort is closed, too.
        if (held.length > 0) {
          pinhole.held = held;
          this.#pinholes.set(client, pinhole);
        }
      }
    }
    return Math.min(...held.map(({ mapped }) => mapped.lifetimeMs));
  }

  /** Our public IPv6 addresses, and the router of the interface of each; null: the system knows none. */
  async #clients(): Promise<ReadonlyMap<string, string | null>> {
    const { network } = this.#ports;
    const routers = await network.gateways?.(6) ?? [];
    const found = new Map<string, string | null>();
    for (const { name, host, family } of network.interfaces()) {
      const router = routers.find((each) => each.endsWith(`%${name}`)) ?? null;
      if (family !== 6 || !isPublicHost(host) || found.size >= MAX_ADDRESSES) continue;
      if (this.#only === null || this.#only === host) found.set(host, router);
    }
    return found;
  }

  #become(state: PinholeState): void {
    if (JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    if (this.#ending.signal.aborted) return;
    this.#ports.log.log(state.kind === "open" ? "info" : "debug", `IPv6 firewall: ${describePinholes(state)}`);
  }
}

/** The state as a sentence. */
export function describePinholes(state: PinholeState): string {
  switch (state.kind) {
    case "searching":
      return "the router is being asked";
    case "unneeded":
      return "this machine has no public IPv6 address behind a router that it knows";
    case "failed":
      return state.reason;
    case "open":
      return `the router ${state.router} lets peers in to ${state.hosts.join(", ")} (${state.protocol})`;
  }
}
