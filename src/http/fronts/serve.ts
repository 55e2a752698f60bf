/** Serves the fronts that are turned on: beside the engine's own routes, and each at a listener of its own. */
import { Hono } from "hono";
import type { FrontName, HttpContext, HttpEnv, HttpParts } from "../context.ts";
import { addFailures } from "../failures.ts";
import { addGuard, addPageRule, text } from "../guard.ts";
import { addRequestLog } from "../request-log.ts";
import type { AddRoutes, Front, FrontGround } from "./front.ts";
import { basicCredentials, FrontLogins } from "./logins.ts";
import { FRONTS } from "./registry.ts";

/** The fronts of one engine. */
export class Fronts {
  readonly #ground: FrontGround;
  readonly #open: ReadonlyMap<FrontName, { readonly front: Front; readonly add: AddRoutes }>;
  /** Applications of listeners of their own, made when they are first asked. */
  readonly #apps = new Map<FrontName, Hono<HttpEnv>>();

  constructor(parts: HttpParts) {
    this.#ground = { parts, logins: new FrontLogins(parts.api.signIn, parts.clock) };
    const opened = FRONTS.filter(({ name }) => parts.fronts.includes(name));
    this.#open = new Map(opened.map((front) => [front.name, { front, add: front.open(this.#ground) }]));
  }

  /** Adds all of them to the application of the engine's own port, which has checked the request. */
  addTo(app: Hono<HttpEnv>): void {
    for (const { front, add } of this.#open.values()) {
      const prefix = front.rootPaths === undefined ? `/${front.name}` : "";
      this.#addRules(app, front, front.rootPaths ?? [prefix, `${prefix}/*`]);
      add(app, prefix);
    }
  }

  /** The application of a front's own listener; null when the front is not turned on. */
  at(name: FrontName): Hono<HttpEnv> | null {
    const opened = this.#open.get(name);
    if (opened === undefined) return null;
    const known = this.#apps.get(name);
    if (known !== undefined) return known;
    const app = new Hono<HttpEnv>();
    // Its addresses are those by which it was called: `--public-url` names the engine's own port.
    const parts = { ...this.#ground.parts, publicUrl: null };
    addRequestLog(app, parts);
    addGuard(app, parts);
    this.#addRules(app, opened.front, ["*"]);
    opened.add(app, "");
    addFailures(app, parts);
    this.#apps.set(name, app);
    return app;
  }

  #addRules(app: Hono<HttpEnv>, front: Front, paths: readonly string[]): void {
    const { parts, logins } = this.#ground;
    addPageRule(app, parts, paths, { anyPage: parts.frontPages.includes(front.name), ...front.pages });
    if (front.access === "own") return;
    for (const path of paths) {
      app.use(path, async (c, next) => {
        const refused = await refusal(c, front, logins);
        if (refused === null) return await next();
        c.res = refused;
      });
    }
  }
}

/** The response to a request that may not use the front; null: it may. */
async function refusal(c: HttpContext, front: Front, logins: FrontLogins): Promise<Response | null> {
  const { addressClass, clientHost } = c.get("caller");
  if (addressClass !== "internet") return null;
  if (front.access === "network") return text(`the front ${front.name} is for the local network`, 403);
  const given = basicCredentials(c.req.header("authorization"));
  const outcome = given === null
    ? "wrong"
    : await logins.check(given.user, given.password, clientHost, c.req.raw.signal);
  if (outcome === "right") return null;
  if (outcome === "too_often") return text("too many attempts: try again in a minute", 429, { "retry-after": "60" });
  const realm = { ...front.headers, "www-authenticate": 'Basic realm="millrace", charset="UTF-8"' };
  return text("sign in with an account of this engine: see millrace user add", 401, realm);
}
