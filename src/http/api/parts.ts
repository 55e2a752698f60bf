/** Parts of the engine that API methods use. */
import type { AccessToken } from "../../account/access-token.ts";
import type { SettingsStore } from "../../account/settings.ts";
import type { MetainfoFinder } from "../../content/metainfo.ts";
import type { ResolveContext } from "../../content/resolve.ts";
import type { Playlist } from "../../playlist/items.ts";
import type { Clock, Logger, RuntimeFacts } from "../../ports.ts";
import type { AccessPolicy } from "../address.ts";
import type { PictureCache } from "./picture.ts";

/** See the module. */
export interface ApiParts {
  readonly token: AccessToken;
  readonly policy: AccessPolicy;
  readonly settings: SettingsStore;
  readonly content: MetainfoFinder;
  readonly playlist: Playlist;
  readonly pictures: PictureCache;
  /** GETs an address that a caller gave, within B27. Rejects as `guardedFetch`. */
  readonly fetchBytes: (url: string, maxBytes: number, context: ResolveContext) => Promise<Uint8Array>;
  readonly runtime: RuntimeFacts;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether peers, DHT nodes or trackers answer. */
  readonly isConnected: () => boolean;
}
