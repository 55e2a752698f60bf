/** Which addresses may be fetched. */
import { canonicalHost, isLocalName, isNearName } from "../discovery/addresses.ts";
import { type Nearness, nearnessOf, type NetworkSurroundings } from "../discovery/nearness.ts";
import { MillraceError } from "../errors.ts";
import type { Ports } from "../ports.ts";

/** Addresses of one name that are tried at most. */
const MAX_ADDRESSES = 4;

/** What looking up an address needs of the machine. */
export interface LookupPorts extends Pick<Ports, "network"> {
  /** Knows the external addresses, too. Default: the interfaces alone. */
  readonly surroundings?: Pick<NetworkSurroundings, "nearness">;
}

/** How near a literal address is; null when it is none. */
export function nearness({ network, surroundings }: LookupPorts, address: string): Nearness | null {
  return surroundings === undefined ? nearnessOf(address, network.interfaces()) : surroundings.nearness(address);
}

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

/** Where a request goes. */
export interface CheckedTarget {
  /** Literal addresses to connect to, at least one. */
  readonly addresses: readonly string[];
  /** One of the host's addresses is of the Internet, so its answers may not lead into a private network. */
  readonly isPublic: boolean;
}

/**
 * Where to connect for `url`. A name is looked up once, here, so that a second lookup cannot lead a connection
 * elsewhere. Throws `denied` when `allowPrivate` is false and one of the addresses is of this machine (also as the
 * Internet sees it), of its subnets or of a private network; `not_found`.
 */
export async function checkedTarget(
  ports: LookupPorts,
  url: URL,
  allowPrivate: boolean,
  signal: AbortSignal,
): Promise<CheckedTarget> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (ports.network.namesAreRemote === true && canonicalHost(host) === null && !isLocalName(host)) {
    return remoteTarget(host);
  }
  const found = canonicalHost(host) === null ? await ports.network.resolve(host, { signal }) : [host];
  const addresses = found.filter((address) => canonicalHost(address) !== null);
  const publicOnes = addresses.filter((address) => nearness(ports, address) === "public").length;
  if (!allowPrivate && publicOnes < addresses.length) {
    throw new MillraceError(
      "denied",
      `${url.host} is inside a private network or on this machine: only callers on this machine may name it, and ` +
        "what came from the Internet may not lead there",
    );
  }
  if (addresses.length === 0) throw new MillraceError("not_found", `no address is known for ${url.host}`);
  return { addresses: addresses.slice(0, MAX_ADDRESSES), isPublic: publicOnes > 0 };
}

/** A name that a proxy looks up. What the proxy finds cannot be checked, so names of local networks are refused. */
function remoteTarget(host: string): CheckedTarget {
  if (isNearName(host)) {
    throw new MillraceError("denied", `${host} is not looked up while --proxy is set: write its address instead`);
  }
  return { addresses: [host], isPublic: true };
}
