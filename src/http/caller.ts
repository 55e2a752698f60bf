/** The caller's identity, by which sessions and limits distinguish callers. */
import type { ShareHolder } from "../bytes/shares.ts";
import type { HttpContext } from "./context.ts";
import { sessionOwner } from "./page.ts";

/**
 * The caller's address; a page of another site counts as a different caller from the programs on the same machine, and
 * from the pages of a third site.
 */
export function callerOf(c: HttpContext): string {
  const owner = sessionOwner(c.req.raw, c.get("page"));
  const { clientHost } = c.get("caller");
  return owner === null ? clientHost : `${clientHost} ${owner}`;
}

/**
 * The caller whose share of sessions a start takes. Only sites that the user allowed get that far. Each counts like
 * another machine, because its viewers zap and leave a session behind each time.
 */
export function sessionHolderOf(c: HttpContext): ShareHolder {
  const { holder, page } = c.get("caller");
  return holder.kind === "page" ? { kind: "other", name: `${holder.name} ${page.origin}` } : holder;
}
