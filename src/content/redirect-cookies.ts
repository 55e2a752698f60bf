/** Cookies that servers set while they redirect: some answer the same address only to a client that sends them back. */

/** Most cookies of one chain, and the longest, characters. */
const MAX_COOKIES = 20;
const MAX_COOKIE_CHARS = 4096;

interface Cookie {
  readonly pair: string;
  /** Host that gets it back, or whose subdomains do, too. */
  readonly host: string;
  readonly withSubdomains: boolean;
  readonly isSecure: boolean;
}

/** The cookies of one chain of redirects (RFC 6265), without paths and expiry: the chain is over in seconds. */
export class RedirectCookies {
  /** By name and host. */
  readonly #cookies = new Map<string, Cookie>();

  /** Notes what the answer of `url` sets. */
  note(url: URL, headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
      const at = pair.indexOf("=");
      if (at <= 0 || pair.length > MAX_COOKIE_CHARS || this.#cookies.size >= MAX_COOKIES) continue;
      const domain = attributes.find((one) => /^domain=/i.test(one))?.slice(7).replace(/^\./, "").toLowerCase();
      // A name with one label is a whole country's.
      const isWide = domain !== undefined && domain.includes(".") && /[a-z]$/.test(domain) &&
        covers(domain, url.hostname);
      const host = isWide ? domain : url.hostname;
      const isSecure = attributes.some((one) => /^secure$/i.test(one));
      this.#cookies.set(`${pair.slice(0, at)} ${host}`, { pair, host, withSubdomains: isWide, isSecure });
    }
  }

  /** `headers` with the cookies for `url`. */
  added(headers: Headers, url: URL): Headers {
    const pairs = [...this.#cookies.values()]
      .filter(({ host, withSubdomains }) => withSubdomains ? covers(host, url.hostname) : host === url.hostname)
      .filter(({ isSecure }) => !isSecure || url.protocol === "https:")
      .map(({ pair }) => pair);
    if (pairs.length === 0) return headers;
    const all = new Headers(headers);
    const own = headers.get("cookie");
    all.set("cookie", [...own === null ? [] : [own], ...pairs].join("; "));
    return all;
  }
}

function covers(domain: string, host: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}
