/** Keeps ports of this machine open at the router: finds it, maps the ports, renews the mappings and removes them at the end. */
import { deadline } from "../bytes/deadline.ts";
import { logFailure } from "../bytes/guarded-clock.ts";
import { isPublicHost } from "../discovery/addresses.ts";
import { hasCode } from "../errors.ts";
import type { Logger, Timer } from "../ports.ts";
import { localNetworks } from "../upnp/near.ts";
import { clientFor, findIgds, type IgdPorts } from "./igd-gateway.ts";
import { isOtherVersion, PcpGateway, PmpGateway } from "./pcp-gateway.ts";
import {
  CLOSE_MS,
  type Gateway,
  type MappedPort,
  type MappingProtocol,
  type PortToMap,
  renewalMs,
  RETRY_MS,
} from "./gateway.ts";

/** Most networks of this machine whose router is asked. */
const MAX_ROUTERS = 4;

/** State of the mappings. */
export type MappingState =
  | { readonly kind: "searching" }
  /** There is no router to ask: all networks of this machine are public, or there is none. */
  | { readonly kind: "unneeded" }
  | {
    readonly kind: "mapped";
    readonly protocol: MappingProtocol;
    readonly router: string;
    readonly externalHost: string | null;
    /** External port for TCP. */
    readonly externalPort: number;
    /** False when the router's own address is not public, so that another router stands before it. */
    readonly isPublic: boolean;
  }
  | { readonly kind: "failed"; readonly reason: string };

/** What the mapper needs of the machine. */
export type PortMapperPorts = IgdPorts & { readonly log: Logger };

interface Held {
  readonly wanted: PortToMap;
  readonly mapped: MappedPort;
}

/** The mappings of one engine. Runs until `close`. */
export class PortMapper {
  readonly #ports: PortMapperPorts;
  readonly #wanted: readonly PortToMap[];
  readonly #changed: (state: MappingState) => void;
  readonly #ending = new AbortController();
  #state: MappingState = { kind: "searching" };
  #gateway: Gateway | null = null;
  #held: readonly Held[] = [];
  #timer: Timer | null = null;
  #running: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  /** Maps the ports `wanted`, the first of which must succeed, and calls `changed` with each new state. */
  constructor(ports: PortMapperPorts, wanted: readonly PortToMap[], changed: (state: MappingState) => void = () => {}) {
    this.#ports = ports;
    this.#wanted = wanted;
    this.#changed = changed;
  }

  /** Current state of the mappings. */
  get state(): MappingState {
    return this.#state;
  }

  /** Starts mapping. Resolves when the first attempt is over; never rejects. */
  start(): Promise<void> {
    return this.#running = this.#round();
  }

  /** Removes the mappings. Resolves within 1.5 s. */
  close(): Promise<void> {
    return this.#closing ??= this.#shutDown();
  }

  async #shutDown(): Promise<void> {
    this.#ending.abort();
    this.#timer?.cancel();
    await this.#running;
    const gateway = this.#gateway;
    if (gateway === null) return;
    const limit = deadline(this.#ports.clock, CLOSE_MS);
    const held = this.#held;
    this.#held = [];
    await Promise.all(held.map(({ wanted, mapped }) => {
      return gateway.unmap(wanted, mapped, limit.signal).catch((error) => {
        this.#ports.log.log("info", "a port stays open at the router until its time is over", { error: String(error) });
      });
    }));
    limit.cancel();
  }

  async #round(): Promise<void> {
    const { clock, log } = this.#ports;
    const { signal } = this.#ending;
    let nextMs = RETRY_MS;
    try {
      nextMs = await this.#renew(signal) ?? await this.#search(signal) ?? RETRY_MS;
    } catch (error) {
      if (!signal.aborted) logFailure(log, "warn", "asking routers for a port failed", error);
    }
    if (signal.aborted) return;
    this.#timer = clock.setTimeout(() => void (this.#running = this.#round()), nextMs);
  }

  /** Renews at the router that has our mappings. Returns the time until the next renewal, ms; null when there is no such router or it refuses. */
  async #renew(signal: AbortSignal): Promise<number | null> {
    if (this.#gateway === null) return null;
    try {
      return await this.#take(this.#gateway, signal);
    } catch {
      this.#gateway = null;
      this.#held = [];
      return null;
    }
  }

  async #search(signal: AbortSignal): Promise<number | null> {
    const routers = await this.#routers();
    if (routers.length === 0) {
      this.#become({ kind: "unneeded" });
      return null;
    }
    const reasons: string[] = [];
    // Begin the slow UPnP search now; the search itself does not map anything.
    const igds = findIgds(this.#ports, routers, signal);
    igds.catch(() => {});
    const attempt = async (gateway: Gateway): Promise<number | null> => {
      try {
        return await this.#take(gateway, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (!hasCode(error, "timeout") && !isOtherVersion(error)) reasons.push(messageOf(error));
        return null;
      }
    };
    for (const host of routers) {
      const client = clientFor(this.#ports.network, host);
      if (client === null) continue;
      const parties = { host, client };
      for (const gateway of [new PcpGateway(this.#ports, parties), new PmpGateway(this.#ports, parties)]) {
        const nextMs = await attempt(gateway);
        if (nextMs !== null) return nextMs;
      }
    }
    for (const gateway of await igds) {
      const nextMs = await attempt(gateway);
      if (nextMs !== null) return nextMs;
    }
    const reason = reasons[0] ?? `no router speaks PCP, NAT-PMP or UPnP (asked ${routers.join(", ")})`;
    this.#become({ kind: "failed", reason });
    return null;
  }

  /** Maps all ports at a router. The first must succeed; the others only improve reachability. */
  async #take(gateway: Gateway, signal: AbortSignal): Promise<number> {
    const held: Held[] = [];
    for (const [i, wanted] of this.#wanted.entries()) {
      try {
        held.push({ wanted, mapped: await gateway.map(wanted, signal) });
      } catch (error) {
        if (i === 0 || signal.aborted) throw error;
        this.#ports.log.log("info", "the router maps only some ports", { wanted, error: messageOf(error) });
      } finally {
        // Mappings made before an abort must be removed, too.
        this.#gateway = held.length > 0 ? gateway : this.#gateway;
        if (held.length > 0) this.#held = held;
      }
    }
    const { externalHost, externalPort } = held[0]!.mapped;
    const isPublic = externalHost === null || isPublicHost(externalHost);
    const { protocol, host: router } = gateway;
    this.#become({ kind: "mapped", protocol, router, externalHost, externalPort, isPublic });
    return renewalMs(Math.min(...held.map(({ mapped }) => mapped.lifetimeMs)));
  }

  /** Addresses of the routers of our private IPv4 networks: those the system knows, else the first address of each network. */
  async #routers(): Promise<readonly string[]> {
    const { network } = this.#ports;
    const own = localNetworks(network).filter(({ host, prefixLength }) => !isPublicHost(host) && prefixLength <= 30);
    const told = (await network.gateways?.(4) ?? []).filter((host) =>
      clientFor(network, host) !== null && !isPublicHost(host)
    );
    const guessed = own.map(({ host, prefixLength }) => firstAddress(host, prefixLength));
    const routers = told.length > 0 ? told : guessed.filter((host) => !own.some((one) => one.host === host));
    return [...new Set(routers)].slice(0, MAX_ROUTERS);
  }

  #become(state: MappingState): void {
    if (JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    if (this.#ending.signal.aborted) return;
    const level = state.kind === "unneeded" ? "debug" : "info";
    this.#ports.log.log(level, `port mapping: ${describeMapping(state)}`);
    this.#changed(state);
  }
}

/** The state as a sentence. */
export function describeMapping(state: MappingState): string {
  switch (state.kind) {
    case "searching":
      return "routers are being asked";
    case "unneeded":
      return "this machine has no private network with a router";
    case "failed":
      return state.reason;
    case "mapped": {
      const { protocol, router, externalHost, externalPort, isPublic } = state;
      const text = `the router ${router} passes port ${externalPort} of ${
        externalHost ?? "its address"
      } on to us (${protocol})`;
      return isPublic ? text : `${text}, but that address is not public: another router stands before it`;
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** First host address of an IPv4 network, which most home routers have. */
function firstAddress(host: string, prefixLength: number): string {
  const value = host.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - prefixLength);
  const first = Math.floor(value / size) * size + 1;
  return [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join(".");
}
