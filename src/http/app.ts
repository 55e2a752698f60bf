/** The whole HTTP surface as one Hono application. */
import { Hono } from "hono";
import { addAccountRoutes } from "./account-routes.ts";
import { addApiRoutes } from "./api-routes.ts";
import { addCastRoutes } from "./cast-routes.ts";
import type { HttpEnv, HttpParts } from "./context.ts";
import { addControlRoutes } from "./control-routes.ts";
import { publicError } from "./errors.ts";
import { addDeviceRoutes } from "./device-routes.ts";
import { addHdHomeRunRoutes } from "./hdhomerun.ts";
import { addGuard, addPageGuard, text } from "./guard.ts";
import { addMediaServerRoutes } from "./media-server/routes.ts";
import { addPagePlayerRoutes } from "./page-player-routes.ts";
import { addOperatingRoutes } from "./operating-routes.ts";
import { addRequestLog, logOf } from "./request-log.ts";
import { addServiceRoutes } from "./service-routes.ts";
import { addStartRoutes } from "./start-routes.ts";
import { addStreamRoutes } from "./stream-routes.ts";
import { addWebuiRoutes } from "./webui-routes.ts";

/** Routes come after the checks, so that none escapes them. */
export function createApp(parts: HttpParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  addRequestLog(app, parts);
  addGuard(app, parts);
  addPageGuard(app, parts);
  addStartRoutes(app, parts);
  addStreamRoutes(app, parts);
  addControlRoutes(app, parts);
  if (parts.fronts.includes("hdhomerun")) addHdHomeRunRoutes(app, parts);
  if (parts.fronts.includes("dlna")) addMediaServerRoutes(app, parts);
  addServiceRoutes(app, parts);
  addApiRoutes(app, parts);
  addAccountRoutes(app, parts);
  addDeviceRoutes(app, parts);
  addPagePlayerRoutes(app, parts);
  addCastRoutes(app, parts);
  addWebuiRoutes(app);
  addOperatingRoutes(app, parts);
  app.notFound(() => text("not found", 404));
  app.onError((error, c) => {
    const told = publicError(error);
    // 502, 503 and 504 are the state of the world, or of a flood: at level "error" it would fill the log.
    const isOurs = told.status === 500 || told.status === 507;
    logOf(c, parts).log(isOurs ? "error" : "debug", "a request failed", {
      status: told.status,
      error,
    });
    return text(told.message, told.status === 499 ? 503 : told.status);
  });
  return app;
}
