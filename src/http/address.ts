/** Who may call: addresses, Host names and proxies. B2, B24. */
import ipaddr from "ipaddr.js";
import { MillraceError } from "../errors.ts";
import type { NetworkPort, RequestInfo } from "../ports.ts";

/** How near a caller is. */
export type AddressClass = "loopback" | "intranet" | "internet";

/** What decides about callers. */
export interface AccessOptions {
  /** Names besides `localhost` and this machine's addresses that `Host` may carry. */
  readonly allowedHosts: readonly string[];
  /** Full base URL the engine is reached by, or null. Its host is allowed. */
  readonly publicUrl: string | null;
  /** Addresses or CIDR ranges whose `X-Forwarded-*` is believed. */
  readonly trustedProxies: readonly string[];
  readonly allowIntranet: boolean;
  readonly allowInternet: boolean;
}

/** Forwarded hops looked at; longer chains are cut. */
const MAX_FORWARDED = 16;

/** Longest text answered for a caller whose address is not told, characters. */
const MAX_HOP_CHARS = 64;

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Zones of link-local addresses (RFC 4007) name an interface of ours: they do not tell two addresses apart. */
function parse(host: string): Address | null {
  const bare = host.split("%")[0]!;
  // Not 127.1, 0177.0.0.1 or 2130706433, which only some programs take for addresses.
  const isAddress = bare.includes(":") ? ipaddr.IPv6.isValid(bare) : ipaddr.IPv4.isValidFourPartDecimal(bare);
  return isAddress ? ipaddr.process(bare) : null;
}

/** `host:port` and `[host]:port`, as some proxies write it, without the port. */
function withoutPort(hop: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(hop);
  return (match?.[1] ?? match?.[2] ?? hop).slice(0, MAX_HOP_CHARS);
}

/** See the module. Interfaces are asked at each use: laptops move. */
export class AccessPolicy {
  readonly #network: NetworkPort;
  readonly #options: AccessOptions;
  readonly #hosts: ReadonlySet<string>;
  #allowIntranet: boolean;
  #allowInternet: boolean;

  constructor(network: NetworkPort, options: AccessOptions) {
    this.#network = network;
    this.#options = options;
    this.#allowIntranet = options.allowIntranet;
    this.#allowInternet = options.allowInternet;
    const names = options.allowedHosts.map((host) => host.toLowerCase());
    if (options.publicUrl !== null) names.push(new URL(options.publicUrl).hostname.toLowerCase());
    this.#hosts = new Set(names);
    for (const range of options.trustedProxies) {
      if (parse(range) === null && !ipaddr.isValidCIDR(range)) {
        throw new MillraceError("config", `trust-proxy: ${range} is neither an address nor a CIDR range`);
      }
    }
  }

  /**
   * The caller's own address: the socket's, or the nearest untrusted one a trusted proxy forwarded for. A proxy that names
   * no address speaks for somebody all the same: what it says then is answered, and is of the class `internet`.
   */
  clientHost(request: Request, info: RequestInfo): string {
    let host = info.remote.host;
    const forwarded = request.headers.get("x-forwarded-for");
    if (forwarded === null) return host;
    const hops = forwarded.split(",").map((hop) => hop.trim()).slice(-MAX_FORWARDED);
    while (this.#isTrustedProxy(host)) {
      const hop = hops.pop();
      if (hop === undefined) break;
      host = withoutPort(hop);
    }
    return host;
  }

  /** Whether `X-Forwarded-Proto` and `-Host` of this request are believed. */
  believesProxy(info: RequestInfo): boolean {
    return this.#isTrustedProxy(info.remote.host);
  }

  classify(host: string): AddressClass {
    const address = parse(host);
    if (address === null) return "internet";
    if (address.range() === "loopback") return "loopback";
    for (const own of this.#network.interfaces()) {
      const base = parse(own.host);
      if (base === null || base.kind() !== address.kind()) continue;
      if (base.toNormalizedString() === address.toNormalizedString()) return "loopback";
      if (matches(address, base, own.prefixLength)) return "intranet";
    }
    return "internet";
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

  /** Whether `Host` may be answered at all (DNS rebinding): an address of this machine, `localhost` or an allowed name. */
  allowsHostHeader(header: string | null): boolean {
    if (header === null) return false;
    const name = hostName(header);
    if (name === null) return false;
    if (name === "localhost" || name.endsWith(".localhost") || this.#hosts.has(name)) return true;
    const address = parse(name);
    if (address === null) return false;
    if (address.range() === "loopback") return true;
    const wanted = address.toNormalizedString();
    return this.#network.interfaces().some((own) => parse(own.host)?.toNormalizedString() === wanted);
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

function matches(address: Address, base: Address, bits: number): boolean {
  if (address instanceof ipaddr.IPv4 && base instanceof ipaddr.IPv4) return address.match(base, bits);
  if (address instanceof ipaddr.IPv6 && base instanceof ipaddr.IPv6) return address.match(base, bits);
  return false;
}

/** Lower-case name or address of a Host header (RFC 9110 section 7.2) without port and brackets; null when malformed. */
export function hostName(header: string): string | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/?#@[\]\\]+))(?::\d{1,5})?$/.exec(header.trim());
  const name = match?.[1] ?? match?.[2];
  return name === undefined ? null : name.toLowerCase();
}
