/** Which addresses may be fetched: B27. */
import { canonicalHost, isPublicHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { Ports } from "../ports.ts";

/** Addresses of one name that are tried at most. */
const MAX_ADDRESSES = 4;

/** `url` parsed. Throws `invalid_argument` for anything but http and https. */
export function parseHttpUrl(url: string): URL {
  if (!URL.canParse(url)) {
    throw new MillraceError("invalid_argument", "invalid url: an http or https address is expected");
  }
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new MillraceError("invalid_argument", "invalid url: only http and https are fetched");
  }
  return parsed;
}

/**
 * Literal addresses to connect to for `url`, at least one. A name is looked up once, here: whoever connects to what is
 * answered cannot be led elsewhere by a second answer. Throws `denied` when `allowPrivate` is false and one of them is not
 * public, `not_found`.
 */
export async function checkedAddresses(
  ports: Pick<Ports, "network">,
  url: URL,
  allowPrivate: boolean,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const found = canonicalHost(host) === null ? await ports.network.resolve(host, { signal }) : [host];
  const addresses = found.filter((address) => canonicalHost(address) !== null);
  if (!allowPrivate && !addresses.every(isPublicHost)) {
    throw new MillraceError(
      "denied",
      `${url.host} is inside a private network: only callers on this machine may name it`,
    );
  }
  if (addresses.length === 0) throw new MillraceError("not_found", `no address is known for ${url.host}`);
  return addresses.slice(0, MAX_ADDRESSES);
}
