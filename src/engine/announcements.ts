/** Announces the engine in the local networks, so that televisions and programs find it. */
import type { AccessToken } from "../account/access-token.ts";
import type { AccessPolicy } from "../http/address.ts";
import { deviceId } from "../http/fronts/hdhomerun/device.ts";
import { TunerControl, type TunerControlParts } from "../http/fronts/hdhomerun/control.ts";
import { TunerDiscovery } from "../http/fronts/hdhomerun/discovery.ts";
import { DESCRIPTION_PATH, DEVICE_TYPE, mediaServerUdn, SERVICES } from "../http/media-server/services.ts";
import { SsdpAnnouncer } from "../upnp/announcer.ts";
import type { Logger, Ports, SocketAddress } from "../ports.ts";

/** What announcing needs. */
export interface AnnouncementParts {
  readonly ports: Pick<Ports, "tcp" | "udp" | "network" | "clock"> & { readonly log: Logger };
  readonly token: AccessToken;
  /** The access policy: nothing is announced while other machines may not call. */
  readonly policy: Pick<AccessPolicy, "allows">;
  /** Whether the DLNA media server is there, and may be found. */
  readonly mediaServer: boolean;
  /** The same of the tuner; null: it is not there. */
  readonly tuner: Pick<TunerControlParts, "lineup" | "ask"> | null;
}

/** Announces until it is closed. */
export class Announcements {
  readonly #parts: AnnouncementParts;
  readonly #made: Promise<{ close(): Promise<void> } | null>[] = [];
  #isClosed = false;

  constructor(parts: AnnouncementParts) {
    this.#parts = parts;
  }

  /** HTTP clients reach the engine at `address`. Nothing is announced of one that listens on loopback alone. */
  servedAt({ host, port }: SocketAddress): void {
    const { mediaServer, tuner, ports, policy, token } = this.#parts;
    const isWildcard = host === "0.0.0.0" || host === "::";
    const isOwn = !isWildcard && ports.network.interfaces().some((own) => own.host === host && !own.loopback);
    if (this.#made.length > 0 || (!isWildcard && !isOwn)) return;
    const isOffered = () => policy.allows("intranet");
    const served = { port, host: isWildcard ? null : host };
    if (mediaServer) {
      this.#make("televisions", async () => {
        const udn = await mediaServerUdn(token.value);
        const types = [DEVICE_TYPE, ...SERVICES.map(({ type }) => type)];
        return () => new SsdpAnnouncer(ports, { udn, types, host, port, path: DESCRIPTION_PATH, isOffered });
      });
    }
    if (tuner !== null) {
      this.#make("programs", async () => {
        const id = await deviceId(token);
        return () => new TunerDiscovery({ ...ports, id, served, isOffered });
      });
      this.#make("programs", () => Promise.resolve(() => new TunerControl({ ...ports, ...tuner, served, isOffered })));
    }
  }

  #make(whom: string, prepare: () => Promise<() => { close(): Promise<void> }>): void {
    const making = (async () => {
      await this.#parts.token.refresh();
      const make = await prepare();
      return this.#isClosed ? null : make();
    })();
    making.catch((error) => this.#parts.ports.log.log("warn", `${whom} can't be notified of this engine`, { error }));
    this.#made.push(making);
  }

  /** Says goodbye. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#made.map(async (made) => await (await made.catch(() => null))?.close()));
  }
}
