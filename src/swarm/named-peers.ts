/** The peers that a magnet names (`x.pe`, BEP 9) and the DHT nodes of a transport file, as addresses that can be judged: a name could lead anywhere later. */
import { canonicalHost } from "../discovery/addresses.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import type { ServerScope } from "../discovery/types.ts";
import type { Ports, SocketAddress } from "../ports.ts";
import type { Metainfo } from "../transport/types.ts";
import { parseAddress } from "./address.ts";
import type { SwarmDialRule } from "./dial-rule.ts";

/** Looking one name up may take so long, ms. */
const RESOLVE_DEADLINE_MS = 5_000;

/** Addresses of one name that are taken. */
const MAX_ADDRESSES_PER_NAME = 4;

/** Names of one magnet that are looked up; literal addresses are not counted. */
const MAX_NAMES = 16;

/**
 * Calls `learn` with the literal address of each peer of `texts` (`host:port`): at once where it stands there, after looking
 * the name up otherwise. What cannot be read or found is left out.
 */
export function learnNamedPeers(
  ports: Pick<Ports, "clock" | "network">,
  texts: readonly string[],
  signal: AbortSignal,
  learn: (address: SocketAddress) => void,
): void {
  let names = 0;
  for (const text of texts) {
    const address = parseAddress(text);
    if (address === null) continue;
    const host = canonicalHost(address.host);
    if (host !== null) learn({ host, port: address.port });
    else if (names++ < MAX_NAMES) void resolve(ports, address, signal, learn);
  }
}

/** The DHT nodes (BEP 5) that a transport file names and a caller of `scope` may have asked; none of a private torrent. */
export function namedDhtNodes(
  { isPrivate, nodes }: Pick<Metainfo, "isPrivate" | "nodes">,
  rule: SwarmDialRule,
  scope: ServerScope,
): SocketAddress[] {
  if (isPrivate) return [];
  return nodes.map(parseAddress).filter((address) => address !== null).filter((address) => {
    return rule.allows(address, "magnet", null, scope);
  });
}

async function resolve(
  { clock, network }: Pick<Ports, "clock" | "network">,
  { host, port }: SocketAddress,
  signal: AbortSignal,
  learn: (address: SocketAddress) => void,
): Promise<void> {
  const limit = deadline(clock, RESOLVE_DEADLINE_MS, signal);
  try {
    const found = await withSignal(network.resolve(host, { signal: limit.signal }), limit.signal);
    for (const literal of found.slice(0, MAX_ADDRESSES_PER_NAME)) {
      const canonical = canonicalHost(literal);
      if (canonical !== null) learn({ host: canonical, port });
    }
  } catch {
    // No such name, or the swarm is gone: other peers may do.
  } finally {
    limit.cancel();
  }
}
