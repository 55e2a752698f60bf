/** Decides whether a caller may call a method. Nothing else in the tree does. */
import type { AccessPolicy } from "../address.ts";
import { isUntoldBrowser } from "../page.ts";
import type { RequestCaller } from "../request-caller.ts";
import { isUserToken, type UserTokens } from "../user.ts";
import { API_CODES, ApiError } from "./codes.ts";
import type { Method } from "./method.ts";
import { isStrictlySameOrigin } from "./origin.ts";

/** One call as access sees it. */
export interface MethodCaller {
  readonly request: Request;
  readonly caller: RequestCaller;
  /** The parameter of that name; empty: none came yet. */
  readonly token: string;
}

/** The parts that access depends on. */
export interface MethodAccessParts extends UserTokens {
  readonly policy: Pick<AccessPolicy, "allowsOrigin">;
}

/**
 * Decides about every call twice: by the query alone before its body is read, and by all parameters before the method
 * runs. An upload may take hours, and the token may be replaced or the device removed meanwhile.
 */
export class MethodAccess {
  readonly #parts: MethodAccessParts;

  constructor(parts: MethodAccessParts) {
    this.#parts = parts;
  }

  /**
   * Refuses what no body can make right. Returns whether the caller may send a large body: the method is public, or the
   * query has the token. Otherwise the token may still come in a small body.
   *
   * @throws `ApiError` with `accessDenied`
   */
  async requireBeforeBody(method: Method, call: MethodCaller): Promise<boolean> {
    const hasToken = call.token !== "";
    if (hasToken || method.public || method.openNearby === true) await this.require(method, call);
    else this.#requirePage(method, call);
    return method.public || hasToken;
  }

  /**
   * Refuses callers that may not call `method`. Address first, then the page, then the token: a caller who may not call at
   * all learns nothing about tokens.
   *
   * @throws `ApiError` with `accessDenied`
   */
  async require(method: Method, call: MethodCaller): Promise<void> {
    const { caller, token } = call;
    // The token proves what the address cannot: that is how the user opens an engine behind a proxy to the Internet.
    const isHere = caller.addressClass === "loopback" ||
      (caller.mayBeLocal && !method.public && await this.#isAccessToken(token));
    if (!method.remote && !isHere) throw denied("access denied: this method is for callers on this machine", 403);
    this.#requirePage(method, call);
    const isNear = caller.addressClass !== "internet" && !caller.mayBeLocal;
    if (method.public || (method.openNearby === true && isNear)) return;
    if (token === "") throw denied("access denied: token is missing", 200);
    if (!await isUserToken(this.#parts, token)) throw denied("access denied: token is wrong", 200);
  }

  async #isAccessToken(given: string): Promise<boolean> {
    await this.#parts.token.refresh();
    return this.#parts.token.matches(given);
  }

  #requirePage(method: Method, { request, caller }: MethodCaller): void {
    const { page, ownUrl } = caller;
    const mayCall = page.relation !== "foreign" || method.openToPages === true ||
      (method.public && this.#parts.policy.allowsOrigin(page.origin));
    if (!mayCall || (method.sameOriginOnly && !isStrictlySameOrigin(request, ownUrl))) {
      throw denied("access denied: cross-origin requests are refused; see --allow-origin", 200);
    }
    if (method.needsNamedPage && isUntoldBrowser(request, page)) {
      throw denied("access denied: a browser has to say which page asks; send the request by POST", 200);
    }
  }
}

function denied(message: string, status: 200 | 403): ApiError {
  return new ApiError(API_CODES.accessDenied, message, status);
}
