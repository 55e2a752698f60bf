/** Lists the Kodis that the user named, as long as they respond. */
import * as z from "zod";
import { deadline } from "../../bytes/deadline.ts";
import { logFailure } from "../../bytes/guarded-clock.ts";
import { hasCode } from "../../errors.ts";
import type { Logger, Ports } from "../../ports.ts";
import { RenewedList } from "../renewed-list.ts";
import type { PlayerDevice, PlayerFinder } from "../player-device.ts";
import { KodiPlayer, read } from "./kodi.ts";
import { type KodiAddress, KodiRpc, readKodiAddress } from "./kodi-rpc.ts";

/** Deadline for a Kodi to report its name, ms. */
const GREET_MS = 3000;
/** Longest name shown, characters. */
const MAX_NAME_CHARS = 200;

const NAME = z.object({ "System.FriendlyName": z.string() });

/** What the finder needs of the machine. */
export type KodiPorts = Pick<Ports, "network" | "clock" | "fetch"> & { readonly log: Logger };

/** Finder of the named Kodis. */
export class KodiFinder implements PlayerFinder {
  readonly #ports: KodiPorts;
  readonly #addresses: readonly KodiAddress[];
  readonly #closing = new AbortController();
  readonly #known = new Map<string, KodiPlayer>();
  readonly #list: RenewedList<KodiPlayer>;

  /** `addresses` as `readKodiAddress` reads them; throws as it does. */
  constructor(ports: KodiPorts, addresses: readonly string[]) {
    this.#ports = ports;
    this.#addresses = addresses.map(readKodiAddress);
    this.#list = new RenewedList(ports.clock, async () => {
      const found = await Promise.all(this.#addresses.map((address) => this.#greet(address)));
      return found.filter((player) => player !== null);
    });
  }

  list(): Promise<readonly PlayerDevice[]> {
    return this.#list.list();
  }

  close(): Promise<void> {
    this.#closing.abort();
    return Promise.resolve();
  }

  /** The Kodi at `address`; null when it does not respond. */
  async #greet(address: KodiAddress): Promise<KodiPlayer | null> {
    const { clock, log, network } = this.#ports;
    const place = `${address.hostname}:${address.port}`;
    const late = deadline(clock, GREET_MS, this.#closing.signal);
    try {
      const rpc = new KodiRpc(this.#ports.fetch, address);
      const said = await rpc.call("XBMC.GetInfoLabels", { labels: ["System.FriendlyName"] }, late.signal);
      const name = read(NAME, said)["System.FriendlyName"].trim().slice(0, MAX_NAME_CHARS) || `Kodi at ${place}`;
      const [host] = await network.resolve(address.hostname.replace(/^\[|\]$/g, ""), { signal: late.signal });
      const known = this.#known.get(place);
      if (known !== undefined && known.facts.name === name && known.host === host) return known;
      const player = new KodiPlayer(rpc, clock, { place, name, host: host! });
      this.#known.set(place, player);
      return player;
    } catch (error) {
      // Only the user can correct a wrong password, so warn; a Kodi that is switched off is nothing unusual.
      const level = hasCode(error, "unavailable") ? "warn" : "debug";
      logFailure(log, level, "a Kodi does not respond as expected", error, { place });
      return null;
    } finally {
      late.cancel();
    }
  }
}
