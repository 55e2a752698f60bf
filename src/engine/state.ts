/** Applies saved settings at the start, and summarises whether the network responds. */
import type { SettingsStore } from "../account/settings.ts";
import type { Store, StoreLocation } from "../database/store.ts";
import type { Discovery } from "../discovery/types.ts";
import { MillraceError } from "../errors.ts";
import type { AccessPolicy } from "../http/address.ts";
import type { SwarmStatus } from "../swarm/types.ts";

/** Whether anything on the network responds: a peer, a DHT node or a tracker. */
export function isConnected(
  swarms: readonly { status(): Pick<SwarmStatus, "peers" | "sources"> }[],
  discovery: Discovery,
): boolean {
  return discovery.dhtAnswers?.() === true || swarms.some((swarm) => {
    const { peers, sources } = swarm.status();
    return peers > 0 ||
      sources.some((source) =>
        source.kind === "tracker" && source.lastError === null && (source.nextAnnounceMs !== null || source.peers > 0)
      );
  });
}

/** Applies the access settings of earlier runs. When they cannot be read, the error names the database for the user. */
export async function applySettings(
  settings: SettingsStore,
  policy: AccessPolicy,
  store: Store,
  location: StoreLocation,
): Promise<void> {
  try {
    const { allow_intranet, allow_internet } = await settings.load();
    if (store.wasReplaced && allow_intranet === undefined) {
      // A refusal may be lost with the database, so nobody else is let in until the user allows it again.
      await settings.set("allow_intranet", false);
      policy.setAllowed("intranet", false);
    }
    if (allow_intranet !== undefined) policy.setAllowed("intranet", allow_intranet);
    if (allow_internet !== undefined) policy.setAllowed("internet", allow_internet);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    const place = location.kind === "file" ? location.path : "--database-url";
    throw new MillraceError(error.code, `${place}: ${error.message}`, { cause: error });
  }
}
