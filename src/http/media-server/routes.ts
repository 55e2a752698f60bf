/**
 * The DLNA media server (`--front dlna`): televisions of the local network browse and search the library, and play from it.
 * UPnP AV: MediaServer:1 with ContentDirectory:1 and ConnectionManager:1.
 */
import type { Hono } from "hono";
import { Allowances } from "../../bytes/allowance.ts";
import { deadline } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import { readInTurn } from "../../upnp/xml.ts";
import { hostName } from "../address.ts";
import type { HttpContext, HttpEnv, HttpParts } from "../context.ts";
import { playbackFailure } from "../errors.ts";
import { text } from "../guard.ts";
import { readBody } from "../request-body.ts";
import { logOf } from "../request-log.ts";
import { perform } from "./actions.ts";
import { MediaLibrary } from "./library.ts";
import { mediaResponse } from "./media.ts";
import { DESCRIPTION_PATH, deviceDescription, mediaServerUdn, serviceDescription, SERVICES } from "./services.ts";
import { MAX_CALL_BYTES, readCall, soapFault, soapResult, UpnpError } from "./soap.ts";

/** Actions per second and machine, and how many may accumulate: reading a list of 100,000 items takes 500 pages. */
const ACTIONS_PER_SECOND = 20;
const ACTIONS_AT_ONCE = 200;
/** Machines whose actions are counted. */
const MAX_CALLERS = 256;
/** Deadline of one action, ms: control points wait 30 s. */
const ACTION_MS = 15_000;

const XML = { "content-type": 'text/xml; charset="utf-8"' };

/** Adds the routes. */
export function addMediaServerRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.get(DESCRIPTION_PATH, async (c) => {
    const { token } = parts.api;
    await token.refresh();
    const host = hostName(new URL(c.get("caller").ownUrl).host) ?? "";
    return c.body(deviceDescription(host, await mediaServerUdn(token.value)), 200, XML);
  });
  const actions = new Allowances({
    perSecond: ACTIONS_PER_SECOND,
    most: ACTIONS_AT_ONCE,
    limit: MAX_CALLERS,
    nowMs: () => parts.clock.monotonic(),
  });
  for (const service of SERVICES) {
    app.get(`/dlna/${service.name}.xml`, (c) => c.body(serviceDescription(service), 200, XML));
    app.post(`/dlna/control/${service.name}`, async (c) => {
      const holder = c.get("caller").holder;
      if (!actions.take(holder.name)) return text("too many calls: ask again in a second", 503);
      const hold = parts.admission.body(holder);
      const leave = parts.admission.enter(holder);
      const late = deadline(parts.clock, ACTION_MS, c.req.raw.signal);
      try {
        const tooLarge = () => new MillraceError("too_large", `a call is at most ${MAX_CALL_BYTES} bytes`);
        const body = await readBody(c.req.raw, parts.clock, MAX_CALL_BYTES, hold, tooLarge);
        const call = await readInTurn(() => readCall(new TextDecoder().decode(body)), late.signal);
        const library = new MediaLibrary(parts, c.get("caller").ownUrl);
        return soapResult(service.type, call.action, await perform(service, call, library, late.signal));
      } catch (error) {
        return failure(c, parts, error);
      } finally {
        late.cancel();
        leave();
        hold.release();
      }
    });
  }
  app.get("/dlna/media/:name", async (c) => {
    try {
      return await mediaResponse(c, parts);
    } catch (error) {
      logOf(c, parts).log("debug", "a television can't be given a stream", { error });
      return playbackFailure(error);
    }
  });
}

function failure(c: HttpContext, parts: HttpParts, error: unknown): Response {
  if (error instanceof UpnpError) return soapFault(error);
  if (error instanceof MillraceError && error.code === "too_large") return playbackFailure(error);
  logOf(c, parts).log("debug", "an action of the media server failed", { error });
  return soapFault(new UpnpError(501, error instanceof MillraceError ? error.message : "Action Failed"));
}
