/** `/webui/api/service`: section 4.3 of the HTTP API. */
import type { Hono } from "hono";
import type { RuntimeFacts } from "../ports.ts";
import { VERSION, VERSION_CODE } from "../version.ts";
import { API_CODES, ApiError, failureEnvelope, toApiError } from "./api/codes.ts";
import type { ApiParts } from "./api/parts.ts";
import type { HttpEnv, HttpParts } from "./context.ts";
import { shortened } from "./errors.ts";

/** Version info, section 2.4. */
export function versionInfo(
  runtime: RuntimeFacts,
): { version: string; code: number; platform: RuntimeFacts["platform"] } {
  return { version: VERSION, code: VERSION_CODE, platform: runtime.platform };
}

/** The log says where the damaged database lies. */
const PLAYLIST_REPLACED =
  "the database was damaged: it was set aside, and playlists, accounts and settings have what could be read of it";

/** The result of `get_status`; `notice`, our addition, says what the user should know, where there is something. */
export async function engineStatus(
  { playlist, runtime }: Pick<ApiParts, "playlist" | "runtime">,
): Promise<{ playlist_loaded: boolean; version: ReturnType<typeof versionInfo>; notice?: string }> {
  return {
    playlist_loaded: await playlist.isLoaded(),
    version: versionInfo(runtime),
    ...(playlist.wasReplaced ? { notice: PLAYLIST_REPLACED } : {}),
  };
}

/** A JavaScript name that JSONP may call, with dots at most. */
const CALLBACK = /^[A-Za-z_$][\w$]{0,63}(\.[A-Za-z_$][\w$]{0,63}){0,3}$/;

/** Adds the route. */
export function addServiceRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const resultOf = (method: string) => {
    if (method === "get_version") return versionInfo(parts.runtime);
    if (method === "get_status") return engineStatus({ playlist: parts.api.playlist, runtime: parts.runtime });
    if (method === "") throw new ApiError(API_CODES.missingParameter, "missing parameter: method");
    throw new ApiError(API_CODES.unknownMethod, `unknown method: ${shortened(method)}`);
  };
  app.get("/webui/api/service", async (c) => {
    let body: Record<string, unknown>;
    try {
      body = { result: await resultOf(c.req.query("method") ?? ""), error: null };
    } catch (error) {
      body = failureEnvelope(toApiError(error));
    }
    if (c.req.query("format") !== "jsonp") return c.json(body);
    const callback = c.req.query("callback") ?? "";
    if (!CALLBACK.test(callback)) {
      return c.json(failureEnvelope(new ApiError(API_CODES.invalidParameter, "invalid parameter: callback")));
    }
    return c.body(`/**/${callback}(${JSON.stringify(body)});`, 200, {
      "content-type": "text/javascript; charset=utf-8",
      "x-content-type-options": "nosniff",
    });
  });
}
