/** The whole HTTP surface as one Hono application. */
import { Hono } from "hono";
import { addAccountRoutes } from "./account-routes.ts";
import { addApiRoutes } from "./api-routes.ts";
import { addCastRoutes } from "./cast-routes.ts";
import type { HttpEnv, HttpParts } from "./context.ts";
import { addControlRoutes } from "./control-routes.ts";
import { addDeviceRoutes } from "./device-routes.ts";
import { addFailures } from "./failures.ts";
import type { Fronts } from "./fronts/serve.ts";
import { addGuard, addPageGuard } from "./guard.ts";
import { addPagePlayerRoutes } from "./page-player-routes.ts";
import { addOperatingRoutes } from "./operating-routes.ts";
import { addRequestLog } from "./request-log.ts";
import { addRecordingRoutes } from "./recording-routes.ts";
import { addServiceRoutes } from "./service-routes.ts";
import { addStartRoutes } from "./start-routes.ts";
import { addStreamRoutes } from "./stream-routes.ts";
import { addWebuiRoutes } from "./webui-routes.ts";

/** Routes come after the checks, so that none escapes them. */
export function createApp(parts: HttpParts, fronts: Fronts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  addRequestLog(app, parts);
  addGuard(app, parts);
  addPageGuard(app, parts);
  addStartRoutes(app, parts);
  addStreamRoutes(app, parts);
  addControlRoutes(app, parts);
  addRecordingRoutes(app, parts);
  fronts.addTo(app);
  addServiceRoutes(app, parts);
  addApiRoutes(app, parts);
  addAccountRoutes(app, parts);
  addDeviceRoutes(app, parts);
  addPagePlayerRoutes(app, parts);
  addCastRoutes(app, parts);
  addWebuiRoutes(app);
  addOperatingRoutes(app, parts);
  addFailures(app, parts);
  return app;
}
