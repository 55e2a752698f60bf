/** Finds services of one type in the local network (RFC 6763): it searches when somebody asks, and remembers results for a while. */
import { sleep } from "../../bytes/deadline.ts";
import { guarded, logFailure } from "../../bytes/guarded-clock.ts";
import type { SocketAddress, Timer } from "../../ports.ts";
import { DNS_TYPES, type DnsMessage, type DnsName, type DnsQuestion, type DnsRecord, nameKey } from "./message.ts";
import type { MdnsPorts, MulticastDns } from "./multicast-dns.ts";

/** Pause before a question is repeated, ms: datagrams get lost. */
const REPEAT_MS = 250;
/** Time for devices to answer, ms: they wait up to 120 ms (RFC 6762, section 6), and radio networks deliver late. */
const SEARCH_MS = 1200;
/** After this long the search is repeated in the background, ms: a caller that controls a player must not wait for it. */
const RENEW_MS = 20_000;
/** Longest time a service is remembered, whatever its TTL, ms: one that vanishes leaves the list within a minute. */
const KEEP_MS = 45_000;
/** The sockets are closed when nobody has asked for this long, ms. */
const IDLE_MS = 60_000;
/** Most services remembered in all, and of one machine: a machine that announces more is ignored. */
const MAX_SERVICES = 64;
const MAX_SERVICES_PER_HOST = 8;
/** Most keys read of a service's description, and the longest value, characters. */
const MAX_KEYS = 32;

/** A service in reach. */
export interface FoundService {
  /** Name that it gives itself: text for people. */
  readonly instance: string;
  /** The machine that announced it, which also counts as its address: no announcement can send the engine to another machine. */
  readonly host: string;
  readonly port: number;
  /** Its description, by lower-case key (RFC 6763, section 6). */
  readonly facts: ReadonlyMap<string, string>;
}

interface Entry {
  readonly name: DnsName;
  readonly host: string;
  expiresMs: number;
  port: number | null;
  facts: ReadonlyMap<string, string> | null;
}

/** Searches for one type. */
export class ServiceBrowser {
  readonly #ports: MdnsPorts;
  readonly #dns: MulticastDns;
  readonly #type: DnsName;
  readonly #closing = new AbortController();
  /** By machine and name, so that no machine can say anything about another's services. */
  readonly #entries = new Map<string, Entry>();
  readonly #listener = (message: DnsMessage, from: SocketAddress) => this.#hear(message, from);
  #searchedAtMs = -Infinity;
  /** The search that callers of `list` have to wait for. */
  #awaited: Promise<void> = Promise.resolve();
  #idle: Timer | null = null;

  /** `type` as in `_googlecast._tcp`. */
  constructor(ports: MdnsPorts, dns: MulticastDns, type: string) {
    this.#ports = ports;
    this.#dns = dns;
    this.#type = [...type.split("."), "local"];
  }

  /** Services in reach: returned at once if somebody asked within the last 45 s, else after a search of 1.2 s. */
  async list(): Promise<readonly FoundService[]> {
    if (this.#closing.signal.aborted) return [];
    const { clock } = this.#ports;
    const nowMs = clock.monotonic();
    const ageMs = nowMs - this.#searchedAtMs;
    if (ageMs >= RENEW_MS) {
      this.#searchedAtMs = nowMs;
      const over = this.#search();
      if (ageMs >= KEEP_MS) this.#awaited = over;
    }
    this.#idle?.cancel();
    this.#idle = clock.setTimeout(guarded(() => this.#rest(), (error) => this.#failed(error)), IDLE_MS);
    await this.#awaited;
    this.#forget();
    return [...this.#entries.values()].flatMap(({ name, host, port, facts }) =>
      port === null || facts === null ? [] : [{ instance: name[0]!, host, port, facts }]
    );
  }

  /** Ends the search. */
  close(): void {
    this.#closing.abort();
    this.#rest();
  }

  #rest(): void {
    this.#idle?.cancel();
    this.#dns.leave(this.#listener);
    this.#entries.clear();
    this.#searchedAtMs = -Infinity;
  }

  async #search(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#closing;
    try {
      await this.#dns.join(this.#listener);
      for (const waitMs of [REPEAT_MS, SEARCH_MS - REPEAT_MS]) {
        const questions = this.#questions();
        await this.#dns.send(() => ({ id: 0, isResponse: false, questions, records: [] }));
        await sleep(clock, waitMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const type = this.#type[0];
    logFailure(this.#ports.log, "debug", "services could not be searched for", error, { type });
  }

  /** The question for all services, and questions for the missing records of incompletely known ones. */
  #questions(): DnsQuestion[] {
    const half = [...this.#entries.values()].filter(({ port, facts }) => port === null || facts === null);
    return [
      { name: this.#type, type: DNS_TYPES.PTR },
      ...half.slice(0, MAX_SERVICES_PER_HOST).map(({ name }) => ({ name, type: DNS_TYPES.ANY })),
    ];
  }

  #hear({ isResponse, records }: DnsMessage, { host }: SocketAddress): void {
    if (!isResponse) return;
    this.#forget();
    const type = nameKey(this.#type);
    for (const record of records) {
      if (record.type === "PTR" && nameKey(record.name) === type) this.#hearOfInstance(record, host);
    }
    for (const record of records) {
      const entry = this.#entries.get(keyOf(host, record.name));
      if (entry === undefined) continue;
      if (record.type === "SRV") entry.port = record.ttlSeconds > 0 && record.port > 0 ? record.port : null;
      else if (record.type === "TXT") entry.facts = readFacts(record.strings);
    }
  }

  #hearOfInstance({ target, ttlSeconds }: DnsRecord & { readonly type: "PTR" }, host: string): void {
    if (target.length !== this.#type.length + 1 || nameKey(target.slice(1)) !== nameKey(this.#type)) return;
    const key = keyOf(host, target);
    const known = this.#entries.get(key);
    // A TTL of 0 is a goodbye (RFC 6762, section 10.1).
    if (ttlSeconds === 0) return void this.#entries.delete(key);
    const expiresMs = this.#ports.clock.monotonic() + Math.min(1000 * ttlSeconds, KEEP_MS);
    if (known !== undefined) known.expiresMs = expiresMs;
    else if (this.#hasRoomFor(host)) {
      this.#entries.set(key, { name: target, host, expiresMs, port: null, facts: null });
    }
  }

  #hasRoomFor(host: string): boolean {
    if (this.#entries.size >= MAX_SERVICES) return false;
    return [...this.#entries.values()].filter((entry) => entry.host === host).length < MAX_SERVICES_PER_HOST;
  }

  #forget(): void {
    const nowMs = this.#ports.clock.monotonic();
    for (const [key, { expiresMs }] of this.#entries) if (expiresMs <= nowMs) this.#entries.delete(key);
  }
}

function keyOf(host: string, name: DnsName): string {
  return `${host}\0${nameKey(name)}`;
}

/** `key=value` strings (RFC 6763, section 6.4): the first of a key counts. */
function readFacts(strings: readonly Uint8Array[]): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  for (const string of strings.slice(0, MAX_KEYS)) {
    const text = new TextDecoder().decode(string);
    const equals = text.indexOf("=");
    const key = (equals < 0 ? text : text.slice(0, equals)).toLowerCase();
    if (key !== "" && !facts.has(key)) facts.set(key, equals < 0 ? "" : text.slice(equals + 1));
  }
  return facts;
}
