/** Announces the engine in the local networks, so that televisions find it. */
import type { AccessToken } from "../account/access-token.ts";
import type { AccessPolicy } from "../http/address.ts";
import { DESCRIPTION_PATH, DEVICE_TYPE, mediaServerUdn, SERVICES } from "../http/media-server/services.ts";
import { SsdpAnnouncer } from "../upnp/announcer.ts";
import type { Logger, Ports, SocketAddress } from "../ports.ts";

/** What announcing needs. */
export interface AnnouncementParts {
  readonly ports: Pick<Ports, "udp" | "network" | "clock"> & { readonly log: Logger };
  readonly token: AccessToken;
  /** Who may call: nothing is announced while other machines may not. */
  readonly policy: Pick<AccessPolicy, "allows">;
  /** Whether the DLNA media server is there, and may be found. */
  readonly mediaServer: boolean;
}

/** Announces until it is closed. */
export class Announcements {
  readonly #parts: AnnouncementParts;
  #mediaServer: Promise<SsdpAnnouncer | null> | null = null;
  #isClosed = false;

  constructor(parts: AnnouncementParts) {
    this.#parts = parts;
  }

  /** HTTP clients reach the engine at `address`. Nothing is announced of one that listens on loopback alone. */
  servedAt({ host, port }: SocketAddress): void {
    const { mediaServer, ports, policy, token } = this.#parts;
    const isWildcard = host === "0.0.0.0" || host === "::";
    const isOwn = !isWildcard && ports.network.interfaces().some((own) => own.host === host && !own.loopback);
    if (!mediaServer || this.#mediaServer !== null || (!isWildcard && !isOwn)) return;
    this.#mediaServer = (async () => {
      await token.refresh();
      const udn = await mediaServerUdn(token.value);
      if (this.#isClosed) return null;
      const types = [DEVICE_TYPE, ...SERVICES.map(({ type }) => type)];
      const isOffered = () => policy.allows("intranet");
      const where = { port, path: DESCRIPTION_PATH, host: isWildcard ? null : host };
      return new SsdpAnnouncer(ports, { udn, types, ...where, isOffered });
    })();
    this.#mediaServer.catch((error) =>
      ports.log.log("warn", "televisions can't be notified of this engine", { error })
    );
  }

  /** Says goodbye. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#mediaServer?.catch(() => null))?.close();
  }
}
