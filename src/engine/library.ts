/** The library: items, lists, checks, and where viewers stopped. */
import { loadSecretBox } from "../account/secret-box.ts";
import { basicAuthorization } from "../bytes/basic-authorization.ts";
import { guardedOpen } from "../content/fetch-guard.ts";
import type { Store } from "../database/store.ts";
import type { ApiParts } from "../http/api/parts.ts";
import { Positions } from "../playback/positions.ts";
import { TrackChoices } from "../playback/track-choices.ts";
import { createProbe } from "../playback/probe.ts";
import { Catalogue } from "../playlist/catalogue.ts";
import { Channels } from "../playlist/channel.ts";
import { ItemChecks } from "../playlist/checks.ts";
import { Playlist } from "../playlist/items.ts";
import { Guide } from "../playlist/guide/guide.ts";
import type { OpenUrl } from "../playlist/external/external-playlist.ts";
import { Lists } from "../playlist/lists.ts";
import type { ContentParts } from "./content.ts";
import type { Ground } from "./ground.ts";
import type { SwarmParts } from "./swarms.ts";

/** The parts of the library that the method API uses. */
export type LibraryParts = Pick<
  ApiParts,
  "playlist" | "channels" | "catalogue" | "lists" | "guide" | "checks" | "positions" | "trackChoices"
>;

/** Opens the library in `store`. Its lists are read once `lists.start()` is called. */
export function openLibrary(
  { ports, options, stateDir, closing }: Ground,
  store: Store,
  { resolver, analyzer, channels: { accounts } }: ContentParts,
  { manager, broadcasts }: SwarmParts,
): LibraryParts {
  const { clock, log, files } = ports;
  const open: OpenUrl = (url, { credentials, headers = {}, ...options }, signal) => {
    const authorization = credentials
      ? { authorization: basicAuthorization(credentials.login, credentials.password) }
      : {};
    return guardedOpen(ports, url, { ...options, headers: { ...headers, ...authorization } }, signal);
  };
  const guide = new Guide({ store, clock, log, open, spent: ports.spent });
  closing.push(() => guide.close());
  const lists = new Lists({
    store,
    files,
    stateDir,
    clock,
    log,
    sealer: loadSecretBox(files, stateDir),
    open,
    onChanged: () => void guide.wake(),
  });
  closing.push(() => lists.close());
  const probe = createProbe({ clock, resolver, analyzer, swarms: manager, live: broadcasts, accounts });
  return {
    playlist: new Playlist(store, clock),
    channels: new Channels(store, options.channelOrder),
    catalogue: new Catalogue(store),
    lists,
    guide,
    checks: new ItemChecks({ store, clock, log, tasks: lists.tasks, probe }),
    positions: new Positions(store, clock),
    trackChoices: new TrackChoices(store, clock),
  };
}
