/** The whole HTTP surface as one Hono application. */
import { Hono } from "hono";
import { API_CODES, ApiError } from "./api/codes.ts";
import { failure } from "./api/dispatch.ts";
import { addAccountRoutes } from "./account-routes.ts";
import { addApiRoutes, isApiPath } from "./api-routes.ts";
import type { HttpEnv, HttpParts } from "./context.ts";
import { addControlRoutes } from "./control-routes.ts";
import { publicError } from "./errors.ts";
import { addServiceRoutes } from "./service-routes.ts";
import { addStartRoutes } from "./start-routes.ts";
import { addStreamRoutes } from "./stream-routes.ts";

/** Routes behind the address rule and the Host check (B24), which nothing escapes. */
export function createApp(parts: HttpParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  const text = (message: string, status: number) =>
    new Response(`${message}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
  app.use(async (c, next) => {
    if (!parts.policy.allowsHostHeader(c.req.header("host") ?? new URL(c.req.url).host)) {
      return text("misdirected request: this Host is not served here; see --allowed-host", 421);
    }
    const clientHost = parts.policy.clientHost(c.req.raw, c.env.info);
    const addressClass = parts.policy.classify(clientHost);
    if (!parts.policy.allows(addressClass)) {
      const why = "access from this address is not allowed";
      return isApiPath(c.req.path) ? failure(new ApiError(API_CODES.accessDenied, why, 403)) : text(why, 403);
    }
    c.set("clientHost", clientHost);
    c.set("addressClass", addressClass);
    await next();
  });
  addStartRoutes(app, parts);
  addStreamRoutes(app, parts);
  addControlRoutes(app, parts);
  addServiceRoutes(app, parts);
  addApiRoutes(app, parts);
  addAccountRoutes(app, parts);
  app.notFound(() => text("not found", 404));
  app.onError((error) => {
    const told = publicError(error);
    parts.log.log(told.status >= 500 ? "error" : "debug", "a request failed", {
      status: told.status,
      error: String(error),
    });
    return text(told.message, told.status === 499 ? 503 : told.status);
  });
  return app;
}
