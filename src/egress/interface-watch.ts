/** The interface that all of the swarm side is bound to: which addresses it has now, and when it comes and goes. */
import { canonicalHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, Logger, NetworkPort, Timer } from "../ports.ts";

/** Time between two looks at the machine's interfaces, ms: reading them takes 0.1 ms. */
const LOOK_EVERY_MS = 500;

/** What it needs. */
export interface InterfaceParts {
  readonly network: Pick<NetworkPort, "interfaces">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Its addresses, at most one of each family. */
export interface BoundAddresses {
  readonly ipv4: string | null;
  readonly ipv6: string | null;
}

/** An interface by its name or by an address, watched until closed. */
export class InterfaceWatch {
  readonly #parts: InterfaceParts;
  /** As `--interface` takes it. */
  readonly name: string;
  readonly #listeners = new Set<() => void>();
  #timer: Timer | null = null;
  /** Those that count. */
  #last: BoundAddresses;
  /** Those of the look before. */
  #seen: BoundAddresses;
  #isClosed = false;
  /** A listener wants to be called once more. */
  #isWanted = false;

  constructor(parts: InterfaceParts, name: string) {
    this.#parts = parts;
    this.name = name;
    this.#last = this.#seen = this.#present();
    if (!this.isHere) this.#parts.log.log("warn", this.trouble!);
    this.#sleep();
  }

  /**
   * The addresses that it has at this moment. One that came back counts from the second look on: programs for VPNs give the
   * address first and the route to it afterwards.
   */
  addresses(): BoundAddresses {
    const { ipv4, ipv6 } = this.#present();
    return { ipv4: ipv4 === this.#last.ipv4 ? ipv4 : null, ipv6: ipv6 === this.#last.ipv6 ? ipv6 : null };
  }

  /** Link-local addresses reach nobody outside. */
  #present(): BoundAddresses {
    const literal = canonicalHost(this.name);
    const own = this.#parts.network.interfaces().filter(({ name, host }) =>
      literal === null ? name === this.name && !/^(?:fe[89ab]|169\.254\.)/i.test(host) : canonicalHost(host) === literal
    );
    const first = (wanted: 4 | 6) => own.find(({ family }) => family === wanted)?.host ?? null;
    return { ipv4: first(4), ipv6: first(6) };
  }

  /** Whether it has an address. */
  get isHere(): boolean {
    const { ipv4, ipv6 } = this.addresses();
    return ipv4 !== null || ipv6 !== null;
  }

  /** Whether `host` is one of its addresses now. */
  has(host: string): boolean {
    const { ipv4, ipv6 } = this.addresses();
    return host === ipv4 || host === ipv6;
  }

  /** Why nothing is sent now; null while it is there. */
  get trouble(): string | null {
    return this.isHere ? null : `the interface ${this.name} of --interface is away: nothing is sent until it is back`;
  }

  /** Its address for targets like `host`, a literal address. Throws `unavailable` when it has none of that family. */
  addressFor(host: string): string {
    const { ipv4, ipv6 } = this.addresses();
    const address = host.includes(":") ? ipv6 : ipv4;
    if (address !== null) return address;
    const why = this.trouble ?? `the interface ${this.name} has no address of the family of ${host}`;
    throw new MillraceError("unavailable", why);
  }

  /** Calls `listener` when its addresses have changed; returns a function that stops that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listeners at the next look, too: one could not do what the change asked for. */
  again(): void {
    this.#isWanted = true;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#listeners.clear();
  }

  #sleep(): void {
    if (!this.#isClosed) this.#timer = this.#parts.clock.setTimeout(() => this.#look(), LOOK_EVERY_MS);
  }

  #look(): void {
    const present = this.#present();
    const settled = (now: string | null, before: string | null) => now === before ? now : null;
    const now = { ipv4: settled(present.ipv4, this.#seen.ipv4), ipv6: settled(present.ipv6, this.#seen.ipv6) };
    this.#seen = present;
    const { ipv4, ipv6 } = this.#last;
    const hasChanged = now.ipv4 !== ipv4 || now.ipv6 !== ipv6;
    this.#last = now;
    const { trouble } = this;
    if (hasChanged) {
      this.#parts.log.log(trouble === null ? "info" : "warn", trouble ?? `the interface ${this.name} is there`, {
        ...now,
      });
    }
    if (hasChanged || this.#isWanted) {
      this.#isWanted = false;
      for (const listener of [...this.#listeners]) listener();
    }
    this.#sleep();
  }
}
