/**
 * Where other engines send their streams, and where pages of this engine read them. The JSON API stays closed to other
 * engines: their signed commands say what they may do.
 */
import type { Hono } from "hono";
import { COMMAND_PATH, HELLO_PATH, MAX_CAST_BYTES, SIGNATURE_FIELD } from "../players/engines/cast-command.ts";
import type { CastReceiver } from "../players/engines/cast-receiver.ts";
import { plainHost } from "../upnp/near.ts";
import { MillraceError } from "../errors.ts";
import { hostField } from "./address.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { playbackFailure, publicError } from "./errors.ts";
import { text } from "./guard.ts";
import { readBody } from "./request-body.ts";

/** Adds the routes, unless this engine accepts nothing from others. No page of any origin may use them. */
export function addCastRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const { cast } = parts.api;
  if (cast === null) return;
  const forEngines = (path: string, handle: (c: HttpContext, body: string, to: CastReceiver) => Promise<object>) =>
    app.post(path, async (c) => {
      const isPage = c.get("caller").page.relation !== "none";
      if (isPage || !/^application\/json\b/.test(c.req.header("content-type") ?? "")) {
        return text("this is for other engines", 403);
      }
      const hold = parts.admission.body(c.get("caller").holder);
      try {
        const bytes = await readBody(c.req.raw, parts.clock, MAX_CAST_BYTES, hold, tooLarge);
        return c.json(await handle(c, new TextDecoder().decode(bytes), cast.receiver));
      } catch (error) {
        const { status, message } = publicError(error);
        const code = error instanceof MillraceError ? error.code : "internal";
        return Response.json({ error: { code, message } }, { status: status === 499 ? 503 : status });
      } finally {
        hold.release();
      }
    });
  const hostOf = (c: HttpContext) => plainHost(c.get("caller").clientHost);
  const forPages = (path: string, type: string, read: (c: HttpContext, id: string) => Promise<BodyInit>) =>
    app.get(`/cast/media/:id/${path}`, async (c) => {
      if (c.get("caller").page.relation === "foreign") {
        return text("this is for the engine's own page", 403);
      }
      try {
        const body = await read(c, c.req.param("id") ?? "");
        return new Response(body, { headers: { "content-type": type, "cache-control": "no-store" } });
      } catch (error) {
        return playbackFailure(error);
      }
    });
  const { relay } = cast.receiver;
  forPages("index.m3u8", "application/vnd.apple.mpegurl", (c, id) => relay.playlist(id, c.req.raw.signal));
  forPages("segment", "video/mp2t", (c, id) => relay.segment(id, c.req.query("of") ?? "", c.req.raw.signal));
  forEngines(HELLO_PATH, (c, body, receiver) => receiver.hello(hostOf(c), hostField(c.req.raw), body));
  forEngines(COMMAND_PATH, async (c, body, receiver) => {
    const signature = c.req.header(SIGNATURE_FIELD) ?? "";
    return { status: await receiver.command(hostOf(c), body, signature, c.req.raw.signal) };
  });
}

function tooLarge(): MillraceError {
  return new MillraceError("too_large", `a request of an engine has at most ${MAX_CAST_BYTES} bytes`);
}
