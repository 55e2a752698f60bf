/** Absolute URLs in answers: B1, B2. */
import type { RequestInfo } from "../ports.ts";
import type { AccessPolicy } from "./address.ts";

/** `http://host[:port][/sub-path]` without a trailing slash, from `--public-url`, a trusted proxy or the request. */
export function baseUrl(request: Request, info: RequestInfo, policy: AccessPolicy, publicUrl: string | null): string {
  if (publicUrl !== null) return publicUrl.replace(/\/+$/, "");
  const url = new URL(request.url);
  let host = request.headers.get("host") ?? url.host;
  let scheme = url.protocol.replace(":", "");
  if (policy.believesProxy(info)) {
    const forwardedHost = request.headers.get("x-forwarded-host")?.split(",")[0]?.trim();
    if (forwardedHost !== undefined && policy.allowsHostHeader(forwardedHost)) host = forwardedHost;
    const forwardedScheme = request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim();
    if (forwardedScheme === "http" || forwardedScheme === "https") scheme = forwardedScheme;
  }
  return `${scheme}://${host}`;
}
