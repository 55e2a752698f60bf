/** Absolute URLs in responses. */
import { trimEndOf } from "../bytes/trim.ts";
import type { RequestInfo } from "../ports.ts";
import { type AccessPolicy, hostField } from "./address.ts";
import { parseForwarded } from "./forwarded.ts";

/** `http://host[:port][/sub-path]` without a trailing slash, from `--public-url`, a trusted proxy or the request. */
export function baseUrl(request: Request, info: RequestInfo, policy: AccessPolicy, publicUrl: string | null): string {
  if (publicUrl !== null) return trimEndOf(publicUrl, "/");
  const url = new URL(request.url);
  let host = hostField(request);
  let scheme = url.protocol.replace(":", "");
  if (policy.believesProxy(info)) {
    // The last element is from the trusted proxy; those before it may come from the caller.
    const element = parseForwarded(request.headers.get("forwarded") ?? "")?.at(-1);
    const forwardedHost = request.headers.get("x-forwarded-host")?.split(",")[0]?.trim() ?? element?.get("host");
    if (forwardedHost !== undefined && policy.allowsHostHeader(forwardedHost)) host = forwardedHost;
    const forwardedScheme = request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim() ?? element?.get("proto");
    if (forwardedScheme === "http" || forwardedScheme === "https") scheme = forwardedScheme;
  }
  return `${scheme}://${host}`;
}
