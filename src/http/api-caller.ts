/** What the JSON API needs to know about the caller of a request. */
import type { Caller } from "./api/dispatch.ts";
import { holderOf } from "./caller.ts";
import { baseOf, type HttpContext, type HttpParts } from "./context.ts";

/** The caller of the request of `c`. */
export function apiCaller(c: HttpContext, parts: HttpParts): Caller {
  return {
    addressClass: c.get("addressClass"),
    mayBeLocal: c.get("mayBeLocal"),
    clientHost: c.get("clientHost"),
    ownUrl: baseOf(c, parts),
    holder: holderOf(c, parts),
    requestId: c.get("requestId"),
  };
}
