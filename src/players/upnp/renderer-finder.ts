/** Finds DLNA renderers in the local network; it searches only when somebody asks for players. */
import { deadline } from "../../bytes/deadline.ts";
import { logFailure } from "../../bytes/guarded-clock.ts";
import type { Logger, Ports } from "../../ports.ts";
import { RenewedList } from "../renewed-list.ts";
import type { PlayerDevice, PlayerFinder } from "../player-device.ts";
import { describeRenderer } from "./description.ts";
import { DlnaRenderer } from "./renderer.ts";
import { searchDevices } from "../../upnp/ssdp.ts";

const TARGET = "urn:schemas-upnp-org:device:MediaRenderer:1";
/** Deadline for a device's description, ms. */
const DESCRIBE_MS = 3000;

/** What the finder needs of the machine. */
export type RendererPorts = Pick<Ports, "udp" | "network" | "clock" | "fetch"> & { readonly log: Logger };

/** Finder of DLNA renderers. */
export class RendererFinder implements PlayerFinder {
  readonly #ports: RendererPorts;
  readonly #closing = new AbortController();
  /**
   * By machine and USN; the same object as long as the device is there, because it remembers which types the device accepts.
   */
  #renderers = new Map<string, DlnaRenderer>();
  readonly #list: RenewedList<DlnaRenderer>;

  constructor(ports: RendererPorts) {
    this.#ports = ports;
    this.#list = new RenewedList(ports.clock, () => this.#search());
  }

  list(): Promise<readonly PlayerDevice[]> {
    return this.#list.list();
  }

  close(): Promise<void> {
    this.#closing.abort();
    return Promise.resolve();
  }

  async #search(): Promise<DlnaRenderer[] | null> {
    const { clock, log } = this.#ports;
    const { signal } = this.#closing;
    try {
      const before = this.#renderers;
      const expected = [...before.values()].map(({ host }) => host);
      const answers = await searchDevices(this.#ports, TARGET, signal, { expected });
      const found = await Promise.all(answers.map(async ({ usn, location }) => {
        const key = `${location.hostname} ${usn}`;
        const known = before.get(key);
        if (known !== undefined) return [key, known] as const;
        const late = deadline(clock, DESCRIBE_MS, signal);
        try {
          const description = await describeRenderer(this.#ports.fetch, location, late.signal);
          return [key, new DlnaRenderer(this.#ports, description)] as const;
        } catch (error) {
          logFailure(log, "debug", "a renderer did not describe itself", error, { location: location.href });
          return null;
        } finally {
          late.cancel();
        }
      }));
      // A renderer that is found over both families is used over IPv4: the engine's HTTP port may listen on that alone.
      const rank = (key: string) => (before.has(key) ? 2 : 0) + (key.startsWith("[") ? 0 : 1);
      const entries = found.filter((entry) => entry !== null).sort(([a], [b]) => rank(b) - rank(a));
      this.#renderers = new Map(entries);
      // Of two machines that claim one name the one that was there before keeps it: the engine would play on the other.
      const byId = Map.groupBy(this.#renderers.values(), ({ facts }) => facts.id);
      return [...byId.values()].map(([first]) => first!);
    } catch (error) {
      if (!signal.aborted) logFailure(log, "debug", "renderers could not be searched for", error);
      return null;
    }
  }
}
