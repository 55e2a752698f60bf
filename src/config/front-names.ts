/** The names of the interfaces of other servers and devices that the engine can show: see the page on fronts. */
export const FRONT_NAMES = [
  "hdhomerun",
  "dlna",
  "torrserver",
  "webdav",
  "xtream",
  "stremio",
  "stremio-server",
  "torznab",
  "qbittorrent",
] as const;

/** What `--front` turns on. */
export type FrontName = (typeof FRONT_NAMES)[number];
