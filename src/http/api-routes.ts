/**
 * `/server/api` and `/service/api`, where the parameter `method` names the method or, for clients made from
 * `/openapi.json`, the path does; the OpenAPI document; and the lists made from the playlist.
 */
import type { Hono } from "hono";
import { createDispatch } from "./api/dispatch.ts";
import { PictureCache } from "./api/picture.ts";
import { searchForClients } from "./api/methods/search.ts";
import { METHODS } from "./api/registry.ts";
import { openApiParts } from "./openapi/document.ts";
import { addPlaylistRoutes } from "./playlist-routes.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";

const PATHS: readonly string[] = ["/server/api", "/service/api"];

/** Whether refusals on `path` use the API's envelope. */
export function isApiPath(path: string): boolean {
  return PATHS.some((base) => path === base || path.startsWith(`${base}/`)) || path === "/search";
}

/** Adds the routes. A HEAD calls nothing, because methods have effects. */
export function addApiRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const apiParts = { ...parts, ...parts.api, pictures: new PictureCache(parts.clock) };
  const dispatch = createDispatch(METHODS, apiParts, parts.admission);
  const handle = (c: HttpContext) => {
    if (c.req.raw.method === "HEAD") return c.body(null, 200, { "content-type": "application/json; charset=utf-8" });
    return dispatch(c.req.raw, c.get("caller"), c.req.param("method"));
  };
  // Clients that join paths by a slash leave one at the end.
  for (const path of PATHS.flatMap((path) => [path, `${path}/`, `${path}/:method`])) {
    app.on(["GET", "POST"], path, handle);
    app.all(path, (c) => c.text("method not allowed\n", 405, { allow: "GET, HEAD, POST" }));
  }
  addPlaylistRoutes(app, parts, createDispatch([searchForClients()], apiParts, parts.admission));
  app.get("/openapi.json", (c) => {
    const parts = openApiParts(c.get("caller").ownUrl);
    return c.body(ReadableStream.from(parts), 200, {
      "content-type": "application/json",
      "content-length": String(parts.reduce((sum, { length }) => sum + length, 0)),
    });
  });
}
