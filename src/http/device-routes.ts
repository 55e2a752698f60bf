/**
 * `/webui/sign-in`: the page of another device signs in by an account's password and gets a token of its own. Not by `sign_in`:
 * that method needs the token already, and says who uses the engine, not who may.
 */
import type { Hono } from "hono";
import * as z from "zod";
import { MillraceError } from "../errors.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { publicError } from "./errors.ts";
import { readBody } from "./request-body.ts";

/** Largest body, bytes: an address and a password, each as long as `sign_in` takes. */
const MAX_SIGN_IN_BYTES = 16 * 1024;
const SIGN_IN = z.object({ email: z.string().min(1).max(1024), password: z.string().min(1).max(8192) });

/** Adds the route. Pages of other origins may not try passwords. */
export function addDeviceRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.post("/webui/sign-in", async (c) => {
    const { page, holder, clientHost } = c.get("caller");
    if (page.relation !== "same") return answer(403, { error: "this is for the engine's own page" });
    const hold = parts.admission.body(holder);
    try {
      const leave = parts.admission.enter(holder);
      try {
        const read = SIGN_IN.safeParse(await body(c, parts, hold));
        if (!read.success) return answer(400, { error: "email and password are expected" });
        const { email, password } = read.data;
        const outcome = await parts.api.signIn.verify(email, password, clientHost, c.req.raw.signal);
        if (outcome.kind === "limited") {
          const seconds = Math.ceil(outcome.waitMs / 1000);
          const error = `too many attempts; try again in ${seconds} s`;
          return answer(429, { error }, { "retry-after": String(seconds) });
        }
        const device = outcome.kind === "verified"
          ? await parts.api.devices.add(outcome.account, deviceName(c.req.header("user-agent") ?? ""))
          : null;
        return device === null ? answer(401, { error: "auth_error" }) : answer(200, device);
      } finally {
        leave();
      }
    } catch (error) {
      const { status, message } = publicError(error);
      return answer(status === 499 ? 503 : status, { error: message });
    } finally {
      hold.release();
    }
  });
}

async function body(c: HttpContext, parts: HttpParts, hold: ReturnType<HttpParts["admission"]["body"]>) {
  const tooLarge = () => new MillraceError("too_large", `the request has more than ${MAX_SIGN_IN_BYTES} bytes`);
  const bytes = await readBody(c.req.raw, parts.clock, MAX_SIGN_IN_BYTES, hold, tooLarge);
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

function answer(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(value, {
    status,
    headers: {
      ...{ "cache-control": "no-store", "cross-origin-resource-policy": "same-origin" },
      "x-content-type-options": "nosniff",
      ...headers,
    },
  });
}

/** Browsers by a word of theirs; those that also claim to be others come first. */
const BROWSERS = [["Edg", "Edge"], ["OPR", "Opera"], ["Firefox", "Firefox"], ["Chrome", "Chrome"], [
  "Safari",
  "Safari",
]];
const SYSTEMS = [
  ...[["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Tizen", "Tizen"], ["Web0S", "webOS"]],
  ...[["Windows", "Windows"], ["Mac OS X", "macOS"], ["CrOS", "ChromeOS"], ["Linux", "Linux"]],
];

/** What people call the device with that `User-Agent`: `Firefox · Android`; empty when it says neither. */
export function deviceName(userAgent: string): string {
  const first = (names: string[][]) => names.find(([word]) => userAgent.includes(word!))?.[1];
  return [first(BROWSERS), first(SYSTEMS)].filter((name) => name !== undefined).join(" · ");
}
