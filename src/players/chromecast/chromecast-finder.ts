/** Finds Chromecasts in the local network; it searches only when somebody asks for players. */
import type { MdnsPorts, MulticastDns } from "../mdns/multicast-dns.ts";
import { type FoundService, ServiceBrowser } from "../mdns/service-browser.ts";
import type { PlayerDevice, PlayerFinder } from "../player-device.ts";
import type { CastPorts } from "./cast-channel.ts";
import { Chromecast, type ChromecastFacts } from "./chromecast.ts";

const SERVICE = "_googlecast._tcp";
/** Longest name shown, characters. */
const MAX_NAME_CHARS = 100;
/** Port on which devices serve their icon. */
const ICON_PORT = 8008;

/** Finder of Chromecasts. */
export class ChromecastFinder implements PlayerFinder {
  readonly #ports: CastPorts;
  readonly #browser: ServiceBrowser;
  /** By id; the same object as long as the device is there, because it holds the connection. */
  #devices = new Map<string, Chromecast>();

  constructor(ports: CastPorts & MdnsPorts, dns: MulticastDns) {
    this.#ports = ports;
    this.#browser = new ServiceBrowser(ports, dns, SERVICE);
  }

  async list(): Promise<readonly PlayerDevice[]> {
    const found = (await this.#browser.list()).map(describeChromecast);
    const devices = new Map<string, Chromecast>();
    for (const facts of found) {
      const known = this.#devices.get(facts.id);
      const isSame = known?.at.host === facts.at.host && known.at.port === facts.at.port;
      // If two devices claim the same id, the first one stays.
      if (!devices.has(facts.id) || isSame) {
        devices.set(facts.id, isSame ? known : new Chromecast(this.#ports, facts));
      }
    }
    for (const [id, device] of this.#devices) if (devices.get(id) !== device) device.close();
    this.#devices = devices;
    return [...devices.values()];
  }

  close(): Promise<void> {
    this.#browser.close();
    for (const device of this.#devices.values()) device.close();
    return Promise.resolve();
  }
}

/** A device as its announcement describes it: `id`, `fn` (name for people) and `ic` (path of an icon). */
export function describeChromecast({ instance, host, port, facts }: FoundService): ChromecastFacts {
  const id = facts.get("id") ?? "";
  const name = (facts.get("fn") || instance).replace(/\p{C}/gu, " ").trim().slice(0, MAX_NAME_CHARS);
  const icon = facts.get("ic") ?? "";
  return {
    id: /^[0-9A-Za-z-]{1,64}$/.test(id) ? id : `${host}:${port}`,
    name: name || "Chromecast",
    icon: /^\/[\w./-]{1,200}$/.test(icon) ? `http://${host}:${ICON_PORT}${icon}` : null,
    at: { host, port },
  };
}
