/** What is wrong with a proxy, for people. */
import type { MillraceError } from "../errors.ts";
import type { Logger } from "../ports.ts";

/** Remembers the last trouble, and logs each change. */
export class ProxyHealth {
  readonly #log: Logger;
  #trouble: string | null = null;
  #udpTrouble: string | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Why nothing goes through the proxy; null while it works, or before the first attempt. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Why no datagram goes through it: no DHT, no UDP trackers. */
  get udpTrouble(): string | null {
    return this.#udpTrouble;
  }

  works(): void {
    if (this.#trouble !== null) this.#log.log("info", "the proxy works again");
    this.#trouble = null;
  }

  /** The proxy itself failed, not the way from there to a target. */
  fails({ message }: MillraceError): void {
    if (this.#trouble !== message) this.#log.log("warn", "nothing is sent beside the proxy", { reason: message });
    this.#trouble = message;
  }

  udpWorks(): void {
    this.#udpTrouble = null;
  }

  udpFails({ message }: Error): void {
    if (this.#udpTrouble !== message) {
      this.#log.log("warn", "no DHT and no UDP trackers through the proxy", { reason: message });
    }
    this.#udpTrouble = message;
  }
}
