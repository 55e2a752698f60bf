/** Finds other engines in the local network that can play streams of this one. */
import type { MdnsPorts, MulticastDns } from "../mdns/multicast-dns.ts";
import { type FoundService, ServiceBrowser } from "../mdns/service-browser.ts";
import type { PlayerDevice, PlayerFinder } from "../player-device.ts";
import { CAST_KEY } from "./cast-identity.ts";
import { type CastSelf, type EngineFacts, EnginePlayer } from "./engine-player.ts";

/** The type of service that engines announce. */
export const ENGINE_SERVICE = "_millrace._tcp";
/** Longest name shown, characters. */
const MAX_NAME_CHARS = 100;

/** Engines in reach, this one left out. */
export class EngineFinder implements PlayerFinder {
  readonly #self: CastSelf;
  readonly #browser: ServiceBrowser;
  /** By key; the same object as long as the engine is there. */
  #engines = new Map<string, EnginePlayer>();

  constructor(ports: MdnsPorts, dns: MulticastDns, self: CastSelf) {
    this.#self = self;
    this.#browser = new ServiceBrowser(ports, dns, ENGINE_SERVICE);
  }

  async list(): Promise<readonly PlayerDevice[]> {
    const engines = new Map<string, EnginePlayer>();
    for (const service of await this.#browser.list()) {
      const facts = describeEngine(service);
      if (facts === null || facts.key === this.#self.identity.key || engines.has(facts.key)) continue;
      const known = this.#engines.get(facts.key);
      const isSame = known?.at.host === facts.at.host && known.at.port === facts.at.port &&
        known.output === facts.output;
      engines.set(facts.key, isSame ? known : new EnginePlayer(this.#self, facts));
    }
    this.#engines = engines;
    return [...engines.values()];
  }

  close(): Promise<void> {
    this.#browser.close();
    return Promise.resolve();
  }
}

/** An engine as its announcement describes it: `key`, `name` and `out`; null without a key. */
export function describeEngine({ instance, host, port, facts }: FoundService): EngineFacts | null {
  const key = facts.get("key") ?? "";
  if (!CAST_KEY.test(key)) return null;
  const name = (facts.get("name") || instance).replace(/\p{C}/gu, " ").trim().slice(0, MAX_NAME_CHARS);
  return { key, name: name || "Engine", at: { host, port }, output: facts.get("out") === "hls" ? "hls" : "file" };
}
