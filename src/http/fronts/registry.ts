/** All fronts. A new one is a folder beside this file, a name in `front-names.ts`, and a line here. */
import type { Front } from "./front.ts";
import { DLNA, HDHOMERUN } from "./devices.ts";
import { QBITTORRENT } from "./qbittorrent/front.ts";
import { STREMIO } from "./stremio/front.ts";
import { STREMIO_SERVER } from "./stremio-server/front.ts";
import { TORRSERVER } from "./torrserver/front.ts";
import { TORZNAB } from "./torznab/front.ts";
import { WEBDAV } from "./webdav/front.ts";
import { XTREAM } from "./xtream/front.ts";

/** In the order in which they are served. */
export const FRONTS: readonly Front[] = [
  HDHOMERUN,
  DLNA,
  TORRSERVER,
  WEBDAV,
  XTREAM,
  STREMIO,
  STREMIO_SERVER,
  TORZNAB,
  QBITTORRENT,
];
