/** Proxies as users write them: `socks5://user:password@host:port`. */
import { MillraceError } from "../errors.ts";
import type { ProxyServer } from "../ports.ts";
import { percentDecoded } from "./percent.ts";

/** Longest user and password, bytes (RFC 1929). */
const MAX_CREDENTIAL_BYTES = 255;

/**
 * Scheme to protocol and its usual port. The `h` of `socks5h` asks that the proxy looks names up; `socks5` means the same here,
 * because names that are looked up beside the proxy would reveal to others what is fetched.
 */
const SCHEMES: Readonly<Record<string, { readonly kind: ProxyServer["kind"]; readonly port: number }>> = {
  "socks5:": { kind: "socks5", port: 1080 },
  "socks5h:": { kind: "socks5", port: 1080 },
  "http:": { kind: "http", port: 80 },
};

/** The proxy that `text` names. Throws `config`; the message never repeats the text, which may contain a password. */
export function parseProxy(text: string): ProxyServer {
  const url = URL.canParse(text) ? new URL(text) : null;
  const scheme = url === null || !Object.hasOwn(SCHEMES, url.protocol) ? undefined : SCHEMES[url.protocol];
  const isBare = url !== null && /^\/?$/.test(url.pathname) && url.search === "" && url.hash === "";
  if (url === null || scheme === undefined || url.hostname === "" || !isBare) throw malformed();
  const user = percentDecoded(url.username);
  const password = percentDecoded(url.password);
  const isTooLong = [user, password].some((part) => new TextEncoder().encode(part).length > MAX_CREDENTIAL_BYTES);
  if (isTooLong || (user === "" && password !== "")) throw malformed();
  return {
    kind: scheme.kind,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? scheme.port : Number(url.port),
    credentials: user === "" ? null : { user, password },
  };
}

/** The proxy without its password, for people and logs. */
export function describeProxy({ kind, host, port }: ProxyServer): string {
  return `${kind}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function malformed(): MillraceError {
  return new MillraceError(
    "config",
    "needs socks5://[user:password@]host:port or http://[user:password@]host:port, with special characters percent-encoded",
  );
}
