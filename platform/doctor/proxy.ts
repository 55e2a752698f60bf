/** Checks of the proxy that all goes through. */
import { describeProxy } from "../../src/bytes/proxy-url.ts";
import type { Proxied } from "../../src/engine/egress.ts";
import type { MillraceError } from "../../src/errors.ts";
import type { Ports, TcpConnection } from "../../src/ports.ts";
import { associateThrough, signIn } from "../../src/egress/handshake.ts";
import { throughProxy } from "../../src/egress/proxied-tcp.ts";
import { type Finding, ok, trouble, warning } from "./finding.ts";

/** Whether the proxy answers, takes the password, and passes datagrams on; null when none is used. Nothing is asked of others. */
export async function checkProxy(
  { tcp, clock }: Pick<Ports, "tcp" | "clock">,
  proxied: Proxied | null,
  signal: AbortSignal,
): Promise<Finding | null> {
  if (proxied === null) return null;
  const { proxy, health } = proxied;
  const server = describeProxy(proxy);
  const parts = { tcp, clock, proxy, health };
  const opened = (connection: TcpConnection) => {
    connection.open({ data() {}, end() {}, drain() {}, close() {} });
    connection.abort();
  };
  try {
    if (proxy.kind === "http") {
      opened(await throughProxy(parts, proxy, signal, () => Promise.resolve()));
      return warning("proxy", `${server} takes connections; it passes no UDP on: no DHT, no UDP trackers`, UDP_REMEDY);
    }
    opened(await throughProxy(parts, proxy, signal, (line) => signIn(line, proxy)));
  } catch (error) {
    const { message } = error as MillraceError;
    return trouble("proxy", message, "start it, or correct --proxy; nothing is sent beside it");
  }
  try {
    opened(await throughProxy(parts, proxy, signal, (line) => associateThrough(line, proxy)));
    return ok("proxy", `${server} answers, and passes UDP on`);
  } catch (error) {
    return warning("proxy", `${server} answers; ${(error as Error).message}: no DHT, no UDP trackers`, UDP_REMEDY);
  }
}

const UDP_REMEDY = "where torrents have no HTTP trackers, use a SOCKS5 proxy that allows UDP ASSOCIATE";
