/** Announces one service of this machine by mDNS (RFC 6762, sections 6 and 8; RFC 6763). */
import { guardedClock, logFailure } from "../../bytes/guarded-clock.ts";
import type { Clock, SocketAddress, Timer } from "../../ports.ts";
import { DNS_TYPES, type DnsMessage, type DnsName, type DnsRecord, nameKey } from "./message.ts";
import type { MdnsPorts, MulticastDns } from "./multicast-dns.ts";

/** TTL of records, s; the value of RFC 6762, section 10, for records with a host name. */
const TTL_SECONDS = 120;
/** TTL in answers to a question that does not come from port 5353, s (section 6.7). */
const LEGACY_TTL_SECONDS = 10;
/** Shortest time between two multicast answers, ms (section 6). */
const ANSWER_EVERY_MS = 1000;
/** Range of the delay before an answer, ms: several machines may have the same one (section 6). */
const MIN_DELAY_MS = 20;
const SPREAD_MS = 100;
/** Pause before the first announcement is repeated, ms (section 8.3). */
const REPEAT_MS = 1000;
/** Time between two checks for new networks, ms: laptops move. */
const LOOK_EVERY_MS = 30_000;
/** Shortest time between two answers to questions from other ports than 5353, ms: each such answer goes to one address only. */
const LEGACY_EVERY_MS = 100;
const ENUMERATION: DnsName = ["_services", "_dns-sd", "_udp", "local"];

/** The service to announce. */
export interface AnnouncedService {
  /** Name for people, unique in the network, at most 63 bytes: it is not probed for conflicts. */
  readonly instance: string;
  /** As in `_millrace._tcp`. */
  readonly type: string;
  /** First label of the host's name, unique as well. */
  readonly hostLabel: string;
  readonly port: number;
  /** Current `key=value` strings. */
  facts(): readonly string[];
}

/** Announces the service while it is open. */
export class ServiceResponder {
  readonly #dns: MulticastDns;
  readonly #clock: Clock;
  readonly #service: AnnouncedService;
  readonly #isOffered: (ownHost: string) => Promise<boolean>;
  readonly #listener = (message: DnsMessage, from: SocketAddress) => this.#hear(message, from);
  #timer: Timer | null = null;
  #look: Timer | null = null;
  #heardAt: string[] = [];
  #answeredMs = -Infinity;
  #answeredAloneMs = -Infinity;
  #closed = false;
  /** A fault costs one announcement or answer. */
  readonly #failed: (error: unknown) => void;

  /** `isOffered` is called each time with this machine's address in a network: whether the service is offered there. */
  constructor(
    dns: MulticastDns,
    { clock, log }: Pick<MdnsPorts, "clock" | "log">,
    service: AnnouncedService,
    isOffered: (ownHost: string) => Promise<boolean>,
  ) {
    this.#dns = dns;
    this.#failed = (error) => logFailure(log, "warn", "this engine was not announced as a player", error);
    this.#clock = guardedClock(clock, this.#failed);
    this.#service = service;
    this.#isOffered = isOffered;
  }

  /** Starts; the service is announced twice. */
  async open(): Promise<void> {
    await this.#dns.join(this.#listener);
    await this.#answer().catch(this.#failed);
    if (this.#closed) return;
    this.#timer = this.#clock.setTimeout(() => this.#answer(), REPEAT_MS);
    this.#lookLater();
  }

  /** Says goodbye. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#look?.cancel();
    // No goodbye for a service that was never announced.
    if (this.#answeredMs > -Infinity) await this.#dns.send((host) => this.#message(host, 0));
    this.#dns.leave(this.#listener);
  }

  #lookLater(): void {
    this.#heardAt = [...this.#dns.hosts()];
    this.#look = this.#clock.setTimeout(async () => {
      try {
        await this.#dns.send(() => null);
        if (this.#closed) return;
        if (this.#dns.hosts().some((host) => !this.#heardAt.includes(host))) this.#answer().catch(this.#failed);
      } finally {
        if (!this.#closed) this.#lookLater();
      }
    }, LOOK_EVERY_MS);
  }

  #hear({ id, isResponse, questions, records }: DnsMessage, from: SocketAddress): void {
    const asked = questions.filter(({ name, type }) => this.#answers(nameKey(name), type));
    if (isResponse || asked.length === 0 || this.#closed) return;
    const nowMs = this.#clock.monotonic();
    if (from.port !== 5353) {
      if (nowMs - this.#answeredAloneMs < LEGACY_EVERY_MS) return;
      this.#answeredAloneMs = nowMs;
      const alone = (host: string) => ({ ...this.#message(host, LEGACY_TTL_SECONDS, false), id, questions: asked });
      return void this.#send(alone, from).catch(this.#failed);
    }
    const isKnown = records.some((record) =>
      record.type === "PTR" && nameKey(record.target) === nameKey(this.#instance) &&
      record.ttlSeconds >= TTL_SECONDS / 2
    );
    if (isKnown || this.#timer !== null) return;
    const restMs = Math.max(0, this.#answeredMs + ANSWER_EVERY_MS - nowMs);
    const delayMs = restMs + MIN_DELAY_MS + Math.random() * SPREAD_MS;
    this.#timer = this.#clock.setTimeout(() => this.#answer(), delayMs);
  }

  get #type(): DnsName {
    return [...this.#service.type.split("."), "local"];
  }

  get #instance(): DnsName {
    return [this.#service.instance, ...this.#type];
  }

  get #host(): DnsName {
    return [this.#service.hostLabel, "local"];
  }

  #answers(key: string, type: number): boolean {
    const is = (name: DnsName, ...types: number[]) =>
      key === nameKey(name) && (type === DNS_TYPES.ANY || types.includes(type));
    return is(this.#type, DNS_TYPES.PTR) || is(ENUMERATION, DNS_TYPES.PTR) || is(this.#host, DNS_TYPES.A) ||
      is(this.#instance, DNS_TYPES.SRV, DNS_TYPES.TXT);
  }

  async #answer(): Promise<void> {
    this.#timer = null;
    if (this.#closed) return;
    if (await this.#send((host) => this.#message(host, TTL_SECONDS))) this.#answeredMs = this.#clock.monotonic();
  }

  /** Sends to the networks in which the service is offered; false when there is none. */
  async #send(messageFor: (ownHost: string) => DnsMessage, to?: SocketAddress): Promise<boolean> {
    const offered = new Set<string>();
    for (const host of this.#dns.hosts()) if (await this.#isOffered(host)) offered.add(host);
    if (offered.size === 0 || this.#closed) return false;
    await this.#dns.send((host) => offered.has(host) ? messageFor(host) : null, to);
    return true;
  }

  #message(address: string, ttlSeconds: number, isUnique = true): DnsMessage {
    const { port } = this.#service;
    const [type, instance, host] = [this.#type, this.#instance, this.#host];
    const encoder = new TextEncoder();
    const records: DnsRecord[] = [
      { type: "PTR", name: type, ttlSeconds, isUnique: false, target: instance },
      { type: "SRV", name: instance, ttlSeconds, isUnique, port, target: host },
      {
        type: "TXT",
        name: instance,
        ttlSeconds,
        isUnique,
        strings: this.#service.facts().map((fact) => encoder.encode(fact)),
      },
      { type: "A", name: host, ttlSeconds, isUnique, address },
      { type: "PTR", name: ENUMERATION, ttlSeconds, isUnique: false, target: type },
    ];
    return { id: 0, isResponse: true, questions: [], records };
  }
}
