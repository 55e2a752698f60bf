/** All methods of the JSON API. */
import type { Method } from "./method.ts";
import { ACCOUNT_METHODS } from "./methods/account.ts";
import { ACCESS_METHODS } from "./methods/access.ts";
import { ANALYZE_METHODS } from "./methods/analyze.ts";
import { CONTENT_METHODS } from "./methods/content.ts";
import { DEFERRED_METHODS } from "./methods/deferred.ts";
import { EXTERNAL_METHODS } from "./methods/external.ts";
import { ICON_METHODS } from "./methods/icons.ts";
import { IMPORT_METHODS } from "./methods/imports.ts";
import { LIST_METHODS } from "./methods/lists.ts";
import { PLAYER_METHODS } from "./methods/players.ts";
import { PLAYLIST_METHODS } from "./methods/playlist.ts";
import { SEARCH_METHODS } from "./methods/search.ts";
import { STATUS_METHODS } from "./methods/status.ts";

/** In the order of section 4.4. */
export const METHODS: readonly Method[] = [
  ...ACCESS_METHODS,
  ...STATUS_METHODS,
  ...ACCOUNT_METHODS,
  ...PLAYER_METHODS,
  ...CONTENT_METHODS,
  ...ANALYZE_METHODS,
  ...DEFERRED_METHODS,
  ...ICON_METHODS,
  ...LIST_METHODS,
  ...PLAYLIST_METHODS,
  ...IMPORT_METHODS,
  ...EXTERNAL_METHODS,
  ...SEARCH_METHODS,
];
