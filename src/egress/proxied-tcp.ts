/** TCP through a proxy. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { describeProxy } from "../bytes/proxy-url.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { Clock, ProxyServer, SocketAddress, TcpConnection, TcpPort } from "../ports.ts";
import { connectThrough, isProxyFault, proxyFault } from "./handshake.ts";
import { ProxiedConnection } from "./proxied-connection.ts";
import type { ProxyHealth } from "./proxy-health.ts";

/** Longest a proxy may take from its first byte to the target's connection, ms. Callers are mostly less patient. */
export const HANDSHAKE_TIMEOUT_MS = 20_000;

/** What it needs. */
export interface ProxiedTcpParts {
  readonly tcp: Pick<TcpPort, "connect">;
  readonly clock: Clock;
  readonly proxy: ProxyServer;
  readonly health: ProxyHealth;
}

/**
 * Connects to `target`, which may be a name, through the proxy. Rejects as `TcpPort.connect`; with `connection_failed` also when
 * the proxy refuses.
 */
export function connectProxied(
  parts: ProxiedTcpParts,
  target: SocketAddress,
  signal: AbortSignal,
): Promise<TcpConnection> {
  return throughProxy(parts, target, signal, (line) => connectThrough(line, parts.proxy, target));
}

/** Opens a connection to the proxy for `target` and has `handshake` speak on it. The connection is closed when that rejects. */
export async function throughProxy(
  { tcp, clock, proxy, health }: ProxiedTcpParts,
  target: SocketAddress,
  signal: AbortSignal,
  handshake: (line: ProxiedConnection) => Promise<unknown>,
): Promise<ProxiedConnection> {
  const late = deadline(
    clock,
    HANDSHAKE_TIMEOUT_MS,
    signal,
    () => new MillraceError("timeout", `the proxy ${describeProxy(proxy)} does not answer`),
  );
  try {
    const inner = await tcp.connect(proxy, { signal: late.signal }).catch((cause) => {
      if (!late.signal.aborted) throw proxyFault(proxy, "cannot be reached", cause);
      // A caller that gives up early says nothing about the proxy.
      if (hasCode(cause, "timeout")) health.fails(proxyFault(proxy, "does not answer"));
      throw cause;
    });
    const connection = new ProxiedConnection(inner, target);
    try {
      await withSignal(handshake(connection), late.signal);
    } catch (error) {
      connection.open({ data() {}, end() {}, drain() {}, close() {} });
      connection.abort();
      throw error;
    }
    health.works();
    return connection;
  } catch (error) {
    if (isProxyFault(error)) health.fails(error as MillraceError);
    if (signal.aborted) throw abortError(signal);
    throw error;
  } finally {
    late.cancel();
  }
}
