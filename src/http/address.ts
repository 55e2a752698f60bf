/** Decides which callers are let in, by addresses, Host names and proxies. */
import ipaddr from "ipaddr.js";
import { exactOrigin } from "../bytes/origin.ts";
import { MillraceError } from "../errors.ts";
import type { NetworkPort, RequestInfo } from "../ports.ts";
import { hostKey } from "../swarm/neighbours/address.ts";
import { forwardedChains, isForwarded } from "./forwarded.ts";

/** How near a caller is. */
export type AddressClass = "loopback" | "intranet" | "internet";

/** Settings that decide about callers. */
export interface AccessOptions {
  /** Names besides `localhost` and this machine's addresses that `Host` may carry. */
  readonly allowedHosts: readonly string[];
  /** Full base URL under which the engine is reached, or null. Its host is allowed. */
  readonly publicUrl: string | null;
  /** Addresses or CIDR ranges of proxies whose `X-Forwarded-*`, `Forwarded` and `X-Real-IP` are believed. */
  readonly trustedProxies: readonly string[];
  /** Origins whose pages may play. Default: none but the engine's own. */
  readonly allowedOrigins?: readonly string[];
  readonly allowIntranet: boolean;
  readonly allowInternet: boolean;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Zones of link-local addresses (RFC 4007) name one of our interfaces; two addresses that differ only in the zone are
 * the same.
 */
function parse(host: string): Address | null {
  const bare = host.split("%")[0]!;
  // Refuses 127.1, 0177.0.0.1 and 2130706433, which only some programs take for addresses.
  if (bare.includes(":")) return ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : null;
  // Not `process`: it reads every address as IPv6 first, which a flood of requests makes expensive (`machineKey`).
  return ipaddr.IPv4.isValidFourPartDecimal(bare) ? ipaddr.IPv4.parse(bare) : null;
}

/** From near to far. If a request may belong to two classes, the farther one counts. */
const CLASSES: readonly AddressClass[] = ["loopback", "intranet", "internet"];

/** The caller of a request. */
export interface Caller {
  /**
   * Address of the caller, or a placeholder where a proxy names none. Equal for two requests of one caller: IPv4 as such,
   * also where it comes mapped into IPv6.
   */
  readonly host: string;
  readonly addressClass: AddressClass;
  /**
   * True when the class is not `loopback` only because an unannounced reverse proxy on this machine may have passed the
   * request on: a caller with the access token may do what programs on this machine may.
   */
  readonly mayBeLocal: boolean;
  /** A proxy passed the request on. */
  readonly isForwarded: boolean;
  /**
   * Why nothing is known of the caller behind it: the proxy is not trusted, names no address, or the request has no field of
   * a proxy at all, although it comes from a trusted one (`bare`) or `--public-url` says that there is one (`unmarked`).
   * Absent: it is known.
   */
  readonly unknownBehind?: "untrusted" | "silent" | "bare" | "unmarked";
}

/** Decides which callers may do what. Asks for the interfaces at each use: laptops move. */
export class AccessPolicy {
  readonly #network: NetworkPort;
  readonly #options: AccessOptions;
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  /** A reverse proxy on this machine is expected. */
  readonly #hasProxy: boolean;
  #allowIntranet: boolean;
  #allowInternet: boolean;

  constructor(network: NetworkPort, options: AccessOptions) {
    this.#network = network;
    this.#options = options;
    this.#allowIntranet = options.allowIntranet;
    this.#allowInternet = options.allowInternet;
    const names = options.allowedHosts.map((host) => host.toLowerCase());
    const publicHost = options.publicUrl === null ? null : new URL(options.publicUrl).hostname.replace(/^\[|\]$/g, "");
    if (publicHost !== null) names.push(publicHost.toLowerCase());
    this.#hosts = new Set(names);
    this.#hasProxy = publicHost !== null && publicHost !== "localhost" && parse(publicHost)?.range() !== "loopback";
    this.#origins = new Set((options.allowedOrigins ?? []).map(allowedOrigin));
    for (const range of options.trustedProxies) {
      if (parse(range) === null && !ipaddr.isValidCIDR(range)) {
        throw new MillraceError("config", `trust-proxy: ${range} is neither an address nor a CIDR range`);
      }
    }
  }

  /**
   * The sender of `request`: the socket's other end, or the nearest untrusted hop that a trusted proxy names. Never of
   * the class `loopback` when a proxy passed the request on: a proxy that relays its own callers' claims would let them
   * be anybody. A caller behind an untrusted proxy, or one that names no address, is of the class `internet`.
   */
  callerOf(request: Request, info: RequestInfo): Caller {
    const host = hostKey(info.remote.host);
    const { headers } = request;
    const through = isForwarded(headers);
    if (!this.#isTrustedProxy(host)) {
      if (through) {
        const unknownBehind = "untrusted" as const;
        return {
          host: `${host} forwards`,
          addressClass: "internet",
          mayBeLocal: false,
          isForwarded: true,
          unknownBehind,
        };
      }
      const addressClass = this.classify(host);
      if (!this.#hasProxy || addressClass !== "loopback") {
        return { host, addressClass, mayBeLocal: false, isForwarded: false };
      }
      return this.#unnamed(host, hostField(request), "unmarked");
    }
    const chains = forwardedChains(headers);
    if (chains.length === 0 && !through) return this.#unnamed(host, hostField(request), "bare");
    let nearest: Caller | null = null;
    for (const chain of chains.length === 0 ? [[]] : chains) {
      const hop = this.#behind(host, chain);
      const far = CLASSES.indexOf(hop === null ? "internet" : this.classify(hop));
      const addressClass = CLASSES[Math.max(far, CLASSES.indexOf("intranet"))]!;
      // A field that the proxy does not set comes from the caller, and the caller is at least as far away as the other
      // field says.
      if (nearest === null || far > CLASSES.indexOf(nearest.addressClass)) {
        nearest = hop !== null
          ? { host: hop, addressClass, mayBeLocal: false, isForwarded: true }
          : { host: `${host} forwards`, addressClass, mayBeLocal: false, isForwarded: true, unknownBehind: "silent" };
      }
    }
    return nearest!;
  }

  /**
   * A request without proxy fields when a proxy on this machine is expected. It comes from a player here, or from
   * anybody through a proxy that adds no field. The requested name decides: proxies pass on their own name, or use an
   * address of this machine.
   */
  #unnamed(host: string, name: string, unknownBehind: "bare" | "unmarked"): Caller {
    const isOwnAddress = this.classify(host) === "loopback";
    const addressClass = isOwnAddress && this.#isOwnHost(name) ? "intranet" : "internet";
    return { host, addressClass, mayBeLocal: addressClass === "intranet", isForwarded: false, unknownBehind };
  }

  /** The nearest hop of `chain` that is no trusted proxy, starting from the one at `proxy`; null when there is none. */
  #behind(proxy: string, chain: readonly string[]): string | null {
    let host = proxy;
    for (let i = chain.length - 1; i >= 0; i--) {
      host = hostKey(chain[i]!);
      if (!this.#isTrustedProxy(host)) return host;
    }
    return chain.length > 0 ? host : null;
  }

  /** Whether `X-Forwarded-Proto` and `-Host` of this request are believed. */
  believesProxy(info: RequestInfo): boolean {
    return this.#isTrustedProxy(info.remote.host);
  }

  classify(host: string): AddressClass {
    const address = parse(host);
    if (address === null) return "internet";
    if (address.range() === "loopback") return "loopback";
    const wanted = address.toNormalizedString();
    let isNear = false;
    // A machine may have several addresses in one subnet: all are looked at.
    for (const own of this.#network.interfaces()) {
      const base = parse(own.host);
      if (base === null || base.kind() !== address.kind()) continue;
      if (base.toNormalizedString() === wanted) return "loopback";
      isNear ||= matches(address, base, own.prefixLength);
    }
    return isNear ? "intranet" : "internet";
  }

  /** This machine's address in the network that `host` is in; null when they have none in common. */
  ownAddressNear(host: string): string | null {
    const address = parse(host);
    if (address === null) return null;
    for (const own of this.#network.interfaces()) {
      const base = parse(own.host);
      if (base !== null && matches(address, base, own.prefixLength)) return own.host;
    }
    return null;
  }

  allows(kind: AddressClass): boolean {
    if (kind === "loopback") return true;
    return kind === "intranet" ? this.#allowIntranet : this.#allowInternet;
  }

  /** Allows or refuses callers of one class from now on (section 5). */
  setAllowed(kind: "intranet" | "internet", value: boolean): void {
    if (kind === "intranet") this.#allowIntranet = value;
    else this.#allowInternet = value;
  }

  /** Whether a request for `Host` may be served at all (DNS rebinding): an address of this machine, `localhost` or an allowed name. */
  allowsHostHeader(header: string): boolean {
    const name = hostName(header);
    return name !== null && (this.#hosts.has(name) || this.#isOwnHost(header));
  }

  /**
   * Whether a Host header names this machine: `localhost`, one of its addresses, or its own name, bare or in the local
   * network. A page of somebody else's site cannot have such a name, wherever its own leads.
   */
  #isOwnHost(header: string): boolean {
    const name = hostName(header);
    if (name === null) return false;
    if (name === "localhost" || this.#ownNames().includes(name)) return true;
    const address = parse(name);
    if (address === null) return false;
    if (address.range() === "loopback") return true;
    const wanted = address.toNormalizedString();
    return this.#network.interfaces().some((own) => parse(own.host)?.toNormalizedString() === wanted);
  }

  #ownNames(): readonly string[] {
    // Not with its domain: that name is looked up in the Internet, and a router can give a machine any domain.
    const bare = this.#network.hostName?.().toLowerCase().split(".")[0] ?? "";
    return bare === "" ? [] : [bare, `${bare}.local`];
  }

  /** Whether pages of this origin, as `Page` has it, may play and use public methods. */
  allowsOrigin(origin: string | null): boolean {
    return origin !== null && this.#origins.has(origin);
  }

  #isTrustedProxy(host: string): boolean {
    const address = parse(host);
    if (address === null) return false;
    return this.#options.trustedProxies.some((range) => {
      if (ipaddr.isValidCIDR(range)) {
        const [base, bits] = ipaddr.parseCIDR(range);
        return matches(address, base, bits);
      }
      return parse(range)?.toNormalizedString() === address.toNormalizedString();
    });
  }
}

/**
 * An origin that the user allows, in the form that pages send. `null` and `*` stand for any page, so they would let all
 * pages in.
 */
function allowedOrigin(text: string): string {
  const origin = exactOrigin(text);
  if (origin === null) {
    throw new MillraceError(
      "config",
      `allow-origin: ${text.slice(0, 100)} is no origin such as https://tv.example:8443`,
    );
  }
  return origin;
}

function matches(address: Address, base: Address, bits: number): boolean {
  if (address instanceof ipaddr.IPv4 && base instanceof ipaddr.IPv4) return address.match(base, bits);
  if (address instanceof ipaddr.IPv6 && base instanceof ipaddr.IPv6) return address.match(base, bits);
  return false;
}

/** The Host of a request; requests made without a server may have it only in their URL. */
export function hostField(request: Request): string {
  return request.headers.get("host") ?? new URL(request.url).host;
}

/** Lower-case name or address of a Host header (RFC 9110 section 7.2) without port and brackets; null when malformed. */
export function hostName(header: string): string | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/?#@[\]\\]+))(?::(\d{1,5}))?$/.exec(header.trim());
  const name = match?.[1] ?? match?.[2];
  return name === undefined || Number(match?.[3] ?? 0) > 65535 ? null : name.toLowerCase();
}
