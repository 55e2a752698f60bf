/** Who calls, as sessions and limits tell callers apart. */
import { machineKey } from "../bytes/machine-key.ts";
import { type Holder, OWN } from "../playback/shares.ts";
import { baseOf, type HttpContext, type HttpParts } from "./context.ts";
import { pageOf, sessionOwner } from "./page.ts";

/**
 * The caller's address; a page of another site counts as a different caller from the programs on the same machine, and
 * from the pages of a third site.
 */
export function callerOf(c: HttpContext): string {
  const owner = sessionOwner(c.req.raw, c.get("page"));
  return owner === null ? c.get("clientHost") : `${c.get("clientHost")} ${owner}`;
}

/** The caller whose share of calls and bodies a request takes: all other sites' pages on one machine share one. */
export function holderOf(c: HttpContext, parts: HttpParts): Holder {
  const name = machineKey(c.get("clientHost"));
  if (pageOf(c.req.raw, baseOf(c, parts)).relation === "foreign") return { kind: "page", name };
  return c.get("addressClass") === "loopback" ? OWN : { kind: "other", name };
}

/**
 * The caller whose share of sessions a start takes. Only sites that the user allowed get that far, and each counts like
 * another machine: its viewers zap, and leave a session behind each time.
 */
export function sessionHolderOf(c: HttpContext, parts: HttpParts): Holder {
  const holder = holderOf(c, parts);
  const { origin } = pageOf(c.req.raw, baseOf(c, parts));
  return holder.kind === "page" ? { kind: "other", name: `${holder.name} ${origin}` } : holder;
}
