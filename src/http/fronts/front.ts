/** What a front is: the interface of another server or device that the engine also shows, for the clients of that one. */
import type { Hono } from "hono";
import type { FrontName, HttpEnv, HttpParts } from "../context.ts";
import type { FrontLogins } from "./logins.ts";

/** What a front is made with. */
export interface FrontGround {
  readonly parts: HttpParts;
  /** Checks the passwords of the engine's accounts. */
  readonly logins: FrontLogins;
}

/** Adds the routes of a front. `prefix` begins all its addresses: empty at a listener of its own, else `/NAME`. */
export type AddRoutes = (app: Hono<HttpEnv>, prefix: string) => void;

/** One front. Its state is shared by all places where it is served. */
export interface Front {
  readonly name: FrontName;
  /** Paths at the engine's own port of a front whose clients can't be given a path; absent: all below `/NAME`. */
  readonly rootPaths?: readonly string[];
  /**
   * Who gets in. `network`: this machine and the local network, nobody beyond it. `account`: those, and from beyond with
   * an account of the engine by HTTP Basic. `own`: the front checks each request itself.
   */
  readonly access: "network" | "account" | "own";
  /** Fields of the response to callers that may not use it; absent: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields that its pages may send besides those of playback, and methods; absent: none more. */
  readonly pages?: { readonly fields: string; readonly methods: string };
  open(ground: FrontGround): AddRoutes;
}
