/** The sender of a request: determined once, by the checks that every request passes. */
import { machineKey } from "../bytes/machine-key.ts";
import { OWN, type ShareHolder } from "../bytes/shares.ts";
import type { RequestInfo } from "../ports.ts";
import type { AccessPolicy, AddressClass, Caller } from "./address.ts";
import { baseUrl } from "./base-url.ts";
import { type Page, pageOf } from "./page.ts";

/** What routes and methods know about the sender of a request. */
export interface RequestCaller {
  /** Its own address. */
  readonly clientHost: string;
  readonly addressClass: AddressClass;
  /** The class is not `loopback` only because a reverse proxy may be there. */
  readonly mayBeLocal: boolean;
  /** Base URL of the engine as this request names it. */
  readonly ownUrl: string;
  /** The page that sent it. */
  readonly page: Page;
  /**
   * The caller is on this machine and no page of another origin, so it may name private addresses: such a page
   * would otherwise borrow the user's place in the network.
   */
  readonly isLocal: boolean;
  /** The caller is local and no page at all, so it may name transport files on this machine's disk. */
  readonly mayReadFiles: boolean;
  /** The holder whose share of calls, bodies and memory it uses: all other sites' pages on one machine share one. */
  readonly holder: ShareHolder;
  /** Identifies the request in the log. */
  readonly requestId: string;
}

/** What is known about a request before. */
export interface ReceivedRequest {
  readonly request: Request;
  readonly info: RequestInfo;
  readonly requestId: string;
  /** As the access policy sees it. */
  readonly caller: Caller;
}

/** The sender of a request that may call. `publicUrl` as in the engine's options. */
export function requestCaller(
  { request, info, requestId, caller: { host, addressClass, mayBeLocal } }: ReceivedRequest,
  policy: AccessPolicy,
  publicUrl: string | null,
): RequestCaller {
  const ownUrl = baseUrl(request, info, policy, publicUrl);
  const page = pageOf(request, ownUrl);
  const isForeign = page.relation === "foreign";
  const isHere = addressClass === "loopback";
  const name = machineKey(host);
  return {
    clientHost: host,
    addressClass,
    mayBeLocal,
    ownUrl,
    page,
    isLocal: isHere && !isForeign,
    mayReadFiles: isHere && !isForeign && !request.headers.has("origin"),
    holder: isForeign ? { kind: "page", name } : isHere ? OWN : { kind: "other", name },
    requestId,
  };
}
