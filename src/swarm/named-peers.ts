/**
 * Resolves peers of magnets (`x.pe`, BEP 9) and DHT nodes of transport files to literal addresses, which the dial rule
 * can judge: a name could resolve to another address later.
 */
import { canonicalHost } from "../discovery/addresses.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import type { ServerScope } from "../discovery/types.ts";
import type { Ports, SocketAddress } from "../ports.ts";
import type { Metainfo } from "../metainfo/types.ts";
import { parseAddress } from "./address.ts";
import type { SwarmDialRule } from "./dial-rule.ts";

/** Time limit for resolving one name, ms. */
const RESOLVE_DEADLINE_MS = 5_000;

/** Addresses used per name. */
const MAX_ADDRESSES_PER_NAME = 4;

/** Names resolved per magnet; literal addresses are not counted. */
const MAX_NAMES = 16;

/**
 * Calls `learn` with the literal address of each peer of `texts` (`host:port`): at once if it is literal, otherwise
 * after resolving the name. Leaves out those that cannot be read or resolved.
 */
export function learnNamedPeers(
  ports: Pick<Ports, "clock" | "network">,
  { infohashHex, texts }: { readonly infohashHex: string; readonly texts: readonly string[] },
  signal: AbortSignal,
  learn: (address: SocketAddress) => void,
): void {
  // Apart from the places of its trackers: those may be silent.
  const holder = `${infohashHex} peers`;
  let names = 0;
  for (const text of texts) {
    const address = parseAddress(text);
    if (address === null) continue;
    const host = canonicalHost(address.host);
    if (host !== null) learn({ host, port: address.port });
    else if (names++ < MAX_NAMES) void resolve(ports, address, holder, signal, learn);
  }
}

/** The DHT nodes (BEP 5) of a transport file that a caller of `scope` may have us ask; none for a private torrent. */
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
  holder: string,
  signal: AbortSignal,
  learn: (address: SocketAddress) => void,
): Promise<void> {
  const limit = deadline(clock, RESOLVE_DEADLINE_MS, signal);
  try {
    const found = await withSignal(network.resolve(host, { signal: limit.signal, holder }), limit.signal);
    for (const literal of found.slice(0, MAX_ADDRESSES_PER_NAME)) {
      const canonical = canonicalHost(literal);
      if (canonical !== null) learn({ host: canonical, port });
    }
  } catch {
    // No such name, or the swarm is gone: other peers may still work.
  } finally {
    limit.cancel();
  }
}
