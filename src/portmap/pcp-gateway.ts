/** Routers that speak PCP (RFC 6887) or its predecessor NAT-PMP (RFC 6886). */
import { deadline } from "../bytes/deadline.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, Timer, UdpPort, UdpSocket } from "../ports.ts";
import {
  decodePcpMap,
  decodePmpAddress,
  decodePmpMap,
  encodePcpMap,
  encodePmpAddress,
  encodePmpMap,
  PCP_PORT,
  type PcpAnswer,
} from "./pcp-messages.ts";
import { type Gateway, LIFETIME_S, type MappedPort, type PortToMap } from "./gateway.ts";

/** Pauses between tries, and from the last try to giving up, ms. RFC 6886 section 3.1 retries for a minute, too long for us. */
const RETRY_AFTER_MS = [250, 500, 1000] as const;
/** Most datagrams read per request: a router sends one per try, and strangers may send more. */
const MAX_ANSWERS = 32;

/** What the gateways need of the machine. */
export interface PcpPorts {
  readonly udp: UdpPort;
  readonly clock: Clock;
}

/** Addresses of the router, and of this machine as the router sees it, both of one family. */
export interface PcpParties {
  readonly host: string;
  readonly client: string;
  /** Default 5351. */
  readonly port?: number;
}

/** A router that speaks PCP. */
export class PcpGateway implements Gateway {
  readonly protocol = "PCP";
  readonly host: string;
  readonly #ports: PcpPorts;
  readonly #parties: PcpParties;
  /** Proves that our mappings are ours (RFC 6887 section 11.1). */
  readonly #nonce = crypto.getRandomValues(new Uint8Array(12));

  constructor(ports: PcpPorts, parties: PcpParties) {
    this.#ports = ports;
    this.#parties = parties;
    this.host = parties.host;
  }

  async map(wanted: PortToMap, signal: AbortSignal): Promise<MappedPort> {
    return agreed(this.host, await this.#ask(wanted, wanted.port, LIFETIME_S, signal));
  }

  async unmap(wanted: PortToMap, mapped: MappedPort, signal: AbortSignal): Promise<void> {
    await this.#ask(wanted, mapped.externalPort, 0, signal);
  }

  #ask(wanted: PortToMap, externalPort: number, lifetimeS: number, signal: AbortSignal): Promise<PcpAnswer> {
    const nonce = this.#nonce;
    const request = encodePcpMap(wanted, { client: this.#parties.client, nonce, externalPort, lifetimeS });
    return ask(this.#ports, this.#parties, request, (bytes) => decodePcpMap(bytes, wanted, nonce), signal);
  }
}

/** A router that speaks NAT-PMP. */
export class PmpGateway implements Gateway {
  readonly protocol = "NAT-PMP";
  readonly host: string;
  readonly #ports: PcpPorts;
  readonly #parties: PcpParties;

  constructor(ports: PcpPorts, parties: PcpParties) {
    this.#ports = ports;
    this.#parties = parties;
    this.host = parties.host;
  }

  async map(wanted: PortToMap, signal: AbortSignal): Promise<MappedPort> {
    const answer = await this.#ask(wanted, wanted.port, LIFETIME_S, signal);
    const mapped = agreed(this.host, answer);
    const address = await ask(this.#ports, this.#parties, encodePmpAddress(), decodePmpAddress, signal);
    return { ...mapped, externalHost: address.host };
  }

  async unmap(wanted: PortToMap, _mapped: MappedPort, signal: AbortSignal): Promise<void> {
    await this.#ask(wanted, 0, 0, signal);
  }

  #ask(wanted: PortToMap, externalPort: number, lifetimeS: number, signal: AbortSignal): Promise<PcpAnswer> {
    const request = encodePmpMap(wanted, externalPort, lifetimeS);
    return ask(this.#ports, this.#parties, request, (bytes) => decodePmpMap(bytes, wanted), signal);
  }
}

/** Whether a router refused because it does not speak that protocol. */
export function isOtherVersion(error: unknown): boolean {
  return error instanceof MillraceError && error.detail?.["otherVersion"] === true;
}

function agreed(host: string, answer: PcpAnswer): MappedPort {
  const { refusal, isOtherVersion: otherVersion, lifetimeS, externalPort, externalHost } = answer;
  if (refusal !== null || externalPort === 0) {
    const reason = refusal ?? "it gives no port";
    throw new MillraceError("unavailable", `the router ${host} maps no port: ${reason}`, { detail: { otherVersion } });
  }
  return { externalPort, externalHost, lifetimeMs: 1000 * lifetimeS };
}

/** Repeats a request until `read` accepts an answer from the router. Rejects with `timeout` or the signal's reason. */
async function ask<T>(
  { udp, clock }: PcpPorts,
  { host, client, port = PCP_PORT }: PcpParties,
  request: Uint8Array,
  read: (bytes: Uint8Array) => T | null,
  signal: AbortSignal,
): Promise<T> {
  const totalMs = RETRY_AFTER_MS.reduce((sum, ms) => sum + ms, 0);
  const limit = deadline(clock, totalMs, signal, () => {
    return new MillraceError("timeout", `the router ${host} does not answer on port ${port}`);
  });
  // A router is asked at its link-local address, and may answer from another of its own: the nonce proves it (section 8.3).
  const isRouter = (sender: string) => sender === host || host.includes(":");
  let socket: UdpSocket | null = null;
  const timers: Timer[] = [];
  try {
    const opened = socket = await udp.bind({ host: client });
    return await new Promise<T>((resolve, reject) => {
      limit.signal.addEventListener("abort", () => reject(abortError(limit.signal)), { once: true });
      if (limit.signal.aborted) return reject(abortError(limit.signal));
      let answers = 0;
      opened.onMessage((data, from) => {
        if (!isRouter(from.host) || from.port !== port || ++answers > MAX_ANSWERS) return;
        const answer = read(data);
        if (answer !== null) resolve(answer);
      });
      const send = (attempt: number): void => {
        void opened.send(request, { host, port });
        const afterMs = RETRY_AFTER_MS[attempt]!;
        if (attempt + 1 < RETRY_AFTER_MS.length) timers.push(clock.setTimeout(() => send(attempt + 1), afterMs));
      };
      send(0);
    });
  } finally {
    for (const timer of timers) timer.cancel();
    limit.cancel();
    socket?.close();
  }
}
