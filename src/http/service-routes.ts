/** `/webui/api/service`: section 4.3 of the HTTP API. */
import type { Hono } from "hono";
import type { RuntimeFacts } from "../ports.ts";
import { VERSION, VERSION_CODE } from "../version.ts";
import type { HttpEnv, HttpParts } from "./context.ts";
import { shortened } from "./errors.ts";

/** Version info, section 2.4. */
export function versionInfo(
  runtime: RuntimeFacts,
): { version: string; code: number; platform: RuntimeFacts["platform"] } {
  return { version: VERSION, code: VERSION_CODE, platform: runtime.platform };
}

/** A JavaScript name that JSONP may call, with dots at most. */
const CALLBACK = /^[A-Za-z_$][\w$]{0,63}(\.[A-Za-z_$][\w$]{0,63}){0,3}$/;

/** Adds the route. */
export function addServiceRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.get("/webui/api/service", (c) => {
    const method = c.req.query("method");
    const body = method === "get_version"
      ? { result: versionInfo(parts.runtime), error: null }
      : method === undefined || method === ""
      ? { result: null, error: { message: "missing parameter: method", code: 2 } }
      : { result: null, error: { message: `unknown method: ${shortened(method)}`, code: 1 } };
    if (c.req.query("format") !== "jsonp") return c.json(body);
    const callback = c.req.query("callback") ?? "";
    if (!CALLBACK.test(callback)) {
      return c.json({ result: null, error: { message: "invalid parameter: callback", code: 3 } });
    }
    return c.body(`/**/${callback}(${JSON.stringify(body)});`, 200, {
      "content-type": "text/javascript; charset=utf-8",
      "x-content-type-options": "nosniff",
    });
  });
}
