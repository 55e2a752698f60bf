/** Parts of the engine that API methods use. */
import type { AccessToken } from "../../account/access-token.ts";
import type { SignIn } from "../../account/sign-in.ts";
import type { SettingsStore } from "../../account/settings.ts";
import type { Analyzer } from "../../content/analysis/analyzer.ts";
import type { MediaFinder } from "../../content/media-files.ts";
import type { MetainfoFinder } from "../../content/metainfo.ts";
import type { ResolveContext } from "../../content/resolve.ts";
import type { Channels } from "../../playlist/channel.ts";
import type { Playlist } from "../../playlist/items.ts";
import type { Lists } from "../../playlist/lists.ts";
import type { Sessions } from "../../playback/sessions.ts";
import type { Players } from "../../players/players.ts";
import type { Clock, Logger, RuntimeFacts } from "../../ports.ts";
import type { AccessPolicy } from "../address.ts";
import type { PictureCache } from "./picture.ts";

/** What the handlers of methods work with. */
export interface ApiParts {
  readonly token: AccessToken;
  readonly policy: AccessPolicy;
  readonly settings: SettingsStore;
  readonly signIn: SignIn;
  readonly sessions: Pick<Sessions, "start" | "stop">;
  readonly players: Players;
  readonly content: MetainfoFinder;
  readonly analyzer: Analyzer;
  readonly media: MediaFinder;
  readonly playlist: Playlist;
  readonly channels: Channels;
  readonly lists: Lists;
  /** Whether callers elsewhere may name private addresses. */
  readonly allowPrivateFetch: boolean;
  readonly pictures: PictureCache;
  /** GETs an address that a caller gave, within the rules for such addresses. Rejects as `guardedFetch`. */
  readonly fetchBytes: (url: string, maxBytes: number, context: ResolveContext) => Promise<Uint8Array>;
  readonly runtime: RuntimeFacts;
  readonly clock: Clock;
  readonly log: Logger;
  /** Fires when the engine ends: nothing that a call waits for outlives it. */
  readonly closing: AbortSignal;
  /** Whether peers, DHT nodes or trackers answer. */
  readonly isConnected: () => boolean;
}
