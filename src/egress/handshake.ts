/**
 * What a client says to a proxy before bytes flow: SOCKS5 (RFC 1928, passwords by RFC 1929) and CONNECT of HTTP (RFC 9110,
 * section 9.3.6). Each step is written whole, and its reply is read before the next: a proxy may take one read for one message
 * and lose what comes early.
 */
import { basicAuthorization } from "../bytes/basic-authorization.ts";
import { concatBytes } from "../bytes/hex.ts";
import { describeProxy } from "../bytes/proxy-url.ts";
import { canonicalHost } from "../discovery/addresses.ts";
import { MillraceError } from "../errors.ts";
import type { ProxyServer, SocketAddress } from "../ports.ts";
import { encodeAddress, hostOf } from "./socks-address.ts";

const SOCKS_VERSION = 5;
const PASSWORD_VERSION = 1;
const METHOD_NONE = 0;
const METHOD_PASSWORD = 2;
const COMMAND = { connect: 1, associate: 3 } as const;

/** Bytes of an address of each type in a reply; a name has its length in front. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 1: 4, 4: 16 };
const TYPE_NAME = 3;

/** Longest head of a response to CONNECT, bytes. */
const MAX_HEAD_BYTES = 8192;

/** Reply codes of RFC 1928, section 6. microsocks reports a name that it does not find as 1. */
const REFUSALS: Readonly<Record<number, string>> = {
  1: "it failed, or knows no such name",
  2: "its rules forbid it",
  3: "the network is unreachable",
  4: "the host is unreachable, or there is no such name",
  5: "the connection was refused",
  6: "the host did not answer in time",
  7: "it does not support the command",
  8: "it does not support the type of address",
};

/** A connection to a proxy before bytes flow. */
export interface HandshakeLine {
  /** Sends a whole step. */
  write(bytes: Uint8Array): void;
  /** Exactly `count` bytes. Rejects when the connection ends before. */
  read(count: number): Promise<Uint8Array>;
}

/** The proxy itself refuses us or speaks another protocol, so that no other target will work either. */
export function isProxyFault(error: unknown): boolean {
  return error instanceof MillraceError && error.detail?.["proxy"] === "fault";
}

/** The error for trouble with the proxy itself. */
export function proxyFault(proxy: ProxyServer, what: string, cause?: unknown): MillraceError {
  return new MillraceError("connection_failed", `the proxy ${describeProxy(proxy)} ${what}`, {
    cause,
    detail: { proxy: "fault" },
  });
}

/**
 * Has `proxy` connect to `target`, whose host may be a name; afterwards the line is the target's. Rejects with
 * `connection_failed` when the proxy refuses (`isProxyFault`: whatever the target), or as the line does.
 */
export async function connectThrough(line: HandshakeLine, proxy: ProxyServer, target: SocketAddress): Promise<void> {
  if (proxy.kind === "http") return await connectHttp(line, proxy, target);
  await signIn(line, proxy);
  await socksCommand(line, proxy, COMMAND.connect, target);
}

/**
 * Has a SOCKS5 proxy pass datagrams on while the line is open; resolves with the address to send them to, a wildcard where the
 * proxy has none but its own. Rejects as `connectThrough`, with `unavailable` when the proxy passes none on.
 */
export async function associateThrough(line: HandshakeLine, proxy: ProxyServer): Promise<SocketAddress> {
  if (proxy.kind === "http") throw new MillraceError("unavailable", "a proxy of HTTP passes no UDP on");
  await signIn(line, proxy);
  // Where our datagrams will come from is unknown here, and some proxies drop in silence what comes from elsewhere.
  return await socksCommand(line, proxy, COMMAND.associate, { host: "0.0.0.0", port: 0 });
}

/** Greets a SOCKS5 proxy, and signs in where it asks for a password. */
export async function signIn(line: HandshakeLine, proxy: ProxyServer): Promise<void> {
  const { credentials } = proxy;
  const methods = credentials === null ? [METHOD_NONE] : [METHOD_NONE, METHOD_PASSWORD];
  line.write(Uint8Array.of(SOCKS_VERSION, methods.length, ...methods));
  const [version, method] = await line.read(2);
  if (version !== SOCKS_VERSION) throw proxyFault(proxy, "does not speak SOCKS5");
  if (method === METHOD_NONE) return;
  if (method !== METHOD_PASSWORD || credentials === null) {
    const wanted = credentials === null ? "a user and a password" : "another way to sign in";
    throw proxyFault(proxy, `wants ${wanted}: correct --proxy`);
  }
  const [user, password] = [credentials.user, credentials.password].map((part) => new TextEncoder().encode(part));
  line.write(concatBytes([
    Uint8Array.of(PASSWORD_VERSION, user!.length),
    user!,
    Uint8Array.of(password!.length),
    password!,
  ]));
  const [, status] = await line.read(2);
  if (status !== 0) throw proxyFault(proxy, "refuses the user or the password: correct --proxy");
}

async function socksCommand(
  line: HandshakeLine,
  proxy: ProxyServer,
  command: number,
  target: SocketAddress,
): Promise<SocketAddress> {
  line.write(concatBytes([Uint8Array.of(SOCKS_VERSION, command, 0), encodeAddress(target)]));
  const [version, reply, , type] = await line.read(4);
  if (version !== SOCKS_VERSION) throw proxyFault(proxy, "does not speak SOCKS5");
  // Refusals, too, have an address of the type that they name. Nobody needs it, and the connection ends.
  if (reply !== 0) throw refusal(command, target, REFUSALS[reply!] ?? `code ${reply}`);
  const length = type === TYPE_NAME ? (await line.read(1))[0]! : ADDRESS_BYTES[type!];
  if (length === undefined) throw proxyFault(proxy, "answers with an unknown type of address");
  const rest = await line.read(length + 2);
  return { host: hostOf(type!, rest.subarray(0, length)), port: rest[length]! * 256 + rest[length + 1]! };
}

function refusal(command: number, target: SocketAddress, why: string): MillraceError {
  if (command === COMMAND.associate) {
    return new MillraceError("unavailable", `the proxy passes no UDP on: ${why}`);
  }
  return new MillraceError("connection_failed", `the proxy cannot connect to ${authority(target)}: ${why}`);
}

async function connectHttp(line: HandshakeLine, proxy: ProxyServer, target: SocketAddress): Promise<void> {
  const at = authority(target);
  const { credentials } = proxy;
  const signedIn = credentials === null
    ? ""
    : `Proxy-Authorization: ${basicAuthorization(credentials.user, credentials.password)}\r\n`;
  line.write(new TextEncoder().encode(`CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${signedIn}\r\n`));
  const head = await readHead(line, proxy);
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(head)?.[1] ?? 0);
  if (status >= 200 && status <= 299) return;
  if (status === 407) throw proxyFault(proxy, "wants another user or password: correct --proxy");
  if (status === 0) throw proxyFault(proxy, "does not speak HTTP");
  throw new MillraceError("connection_failed", `the proxy cannot connect to ${at}: it answered ${status}`);
}

/** Byte by byte: what follows the head is the target's. */
async function readHead(line: HandshakeLine, proxy: ProxyServer): Promise<string> {
  let head = "";
  while (head.length < MAX_HEAD_BYTES) {
    head += String.fromCharCode((await line.read(1))[0]!);
    if (head.endsWith("\r\n\r\n") || head.endsWith("\n\n")) return head;
  }
  throw proxyFault(proxy, "does not speak HTTP");
}

/** `host:port` of a target, with brackets around IPv6. Throws `invalid_argument` for a host that would break a line. */
function authority({ host, port }: SocketAddress): string {
  if (canonicalHost(host) === null && !/^[a-z0-9._-]{1,255}$/i.test(host)) {
    throw new MillraceError("invalid_argument", "that is no name of a host");
  }
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
