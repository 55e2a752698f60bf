/** The fronts that are devices of the local network. Their clients find them at paths of their own. */
import { addHdHomeRunRoutes } from "./hdhomerun/routes.ts";
import { HDHOMERUN_PATHS } from "./hdhomerun/paths.ts";
import { addMediaServerRoutes } from "../media-server/routes.ts";
import type { Front } from "./front.ts";

/** The library's channels as those of a tuner. */
export const HDHOMERUN: Front = {
  name: "hdhomerun",
  rootPaths: HDHOMERUN_PATHS,
  access: "network",
  open: ({ parts }) => (app) => addHdHomeRunRoutes(app, parts),
};

/** The library as a DLNA media server. */
export const DLNA: Front = {
  name: "dlna",
  rootPaths: ["/dlna/*"],
  access: "network",
  open: ({ parts }) => (app) => addMediaServerRoutes(app, parts),
};
