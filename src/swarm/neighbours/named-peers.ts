/**
 * Resolves peers of magnets (`x.pe`, BEP 9) and DHT nodes of transport files to literal addresses, which the dial rule
 * can judge: a name could resolve to another address later.
 */
import { canonicalHost } from "../../discovery/addresses.ts";
import { resolvePeer } from "../../discovery/peer-names.ts";
import type { ServerScope } from "../../discovery/types.ts";
import type { Ports, SocketAddress } from "../../ports.ts";
import type { Metainfo } from "../../metainfo/types.ts";
import { parseAddress } from "./address.ts";
import type { SwarmDialRule } from "./dial-rule.ts";

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
    else if (names++ < MAX_NAMES) {
      void resolvePeer(ports, address, holder, signal).then((found) => found.forEach(learn));
    }
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
