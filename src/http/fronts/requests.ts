/** What the routes of all fronts share: bodies in JSON, errors as statuses, starts of sessions. */
import type { Hono } from "hono";
import type * as z from "zod";
import { nextTurn } from "../../bytes/turn.ts";
import { MillraceError } from "../../errors.ts";
import type { StreamSelector } from "../../content/selector.ts";
import type { StartRequest } from "../../playback/start-request.ts";
import type { HttpContext, HttpEnv, HttpParts } from "../context.ts";
import { publicError } from "../errors.ts";
import { text } from "../guard.ts";
import { readBody } from "../request-body.ts";
import { logOf } from "../request-log.ts";
import { startRequest } from "../start-request.ts";

/** Largest body of JSON, bytes, as in the API: it carries text. */
const MAX_JSON_BYTES = 1024 * 1024;
/** A body of this size is parsed in a millisecond. */
const SMALL_BYTES = 64 * 1024;

/** Adds a route. It takes a place among the calls at once; its errors become a status and a line. */
export function addRoute(
  app: Hono<HttpEnv>,
  parts: HttpParts,
  methods: string | readonly string[],
  path: string,
  handle: (c: HttpContext) => Promise<Response> | Response,
): void {
  app.on([methods].flat(), path, async (c) => {
    try {
      const leave = parts.admission.enter(c.get("caller").holder);
      try {
        return await handle(c);
      } finally {
        leave();
      }
    } catch (error) {
      const { status, message } = publicError(error);
      logOf(c, parts).log(status === 500 ? "error" : "debug", "a front could not answer", { path, error });
      return text(message, status === 499 ? 503 : status);
    }
  });
}

/** The JSON of a body, under whatever content type. Throws `invalid_argument` where it is of another form, and `too_large`. */
export async function jsonBody<T>(
  c: HttpContext,
  parts: HttpParts,
  schema: z.ZodType<T>,
  maxBytes: number = MAX_JSON_BYTES,
): Promise<T> {
  const hold = parts.admission.body(c.get("caller").holder);
  try {
    const tooLarge = () => new MillraceError("too_large", `the body has more than ${maxBytes} bytes`);
    const bytes = await readBody(c.req.raw, parts.clock, maxBytes, hold, tooLarge);
    // Many that arrive at once would add up to one long task.
    if (bytes.length > SMALL_BYTES) await nextTurn();
    const read = schema.safeParse(parsed(new TextDecoder().decode(bytes)));
    if (read.success) return read.data;
    throw new MillraceError("invalid_argument", "the body is no JSON of the expected form");
  } finally {
    hold.release();
  }
}

/** Most parts of a form: real ones have some ten. */
const MAX_FORM_PARTS = 1000;
/** Largest form that carries no file, bytes: links of 50 torrents. */
const MAX_TEXT_FORM_BYTES = 1024 * 1024;

/**
 * Reads a form, whose bytes count as held until `use` is through with it. Throws `invalid_argument`
 * where the body is none, and `too_large`.
 */
export async function withForm<T>(
  c: HttpContext,
  parts: HttpParts,
  maxBytes: number,
  use: (form: FormData) => Promise<T>,
): Promise<T> {
  const hold = parts.admission.body(c.get("caller").holder);
  try {
    const contentType = c.req.header("content-type") ?? "";
    const most = /^multipart\//i.test(contentType) ? maxBytes : Math.min(maxBytes, MAX_TEXT_FORM_BYTES);
    const tooLarge = () => new MillraceError("too_large", `the form has more than ${most} bytes`);
    const bytes = await readBody(c.req.raw, parts.clock, most, hold, tooLarge);
    if (bytes.length > SMALL_BYTES) await nextTurn();
    return await use(await formOf(bytes, contentType));
  } finally {
    hold.release();
  }
}

async function formOf(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<FormData> {
  try {
    if (dashedLines(bytes) > MAX_FORM_PARTS) throw new Error("too many parts");
    return await new Response(bytes, { headers: { "content-type": contentType } }).formData();
  } catch {
    throw new MillraceError("invalid_argument", "a form is expected");
  }
}

/** Lines that begin like one between two parts: each part costs far more than the few bytes that it may have. */
function dashedLines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) {
    if (bytes[at + 1] === 0x2d && bytes[at + 2] === 0x2d) count++;
  }
  return count;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** The start of a session that reads a file as it is, as the caller of `c` would start it. */
export function fileRequest(
  c: HttpContext,
  parts: HttpParts,
  selector: StreamSelector,
  fileIndex: number | undefined,
  mayNamePrivate: boolean,
  signal: AbortSignal = c.req.raw.signal,
): StartRequest {
  const facts = { selector, output: "file", mayNamePrivate, signal } as const;
  return { ...startRequest(c, parts, {}, facts), fileIndex };
}
